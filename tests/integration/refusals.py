# SPDX-License-Identifier: LGPL-2.1-or-later
# refusals.py - bad input: one clear line on standard error, the status that the manual
# gives, and the command was not run; refusals.tab has the cases
#
# Then artifacts that are cut: whatever is left of one can be read.

import json
import os
import re
import shutil
import subprocess

import table
import tap
import tracked

NOBODY = 65534
CUTS = 60


def make_files():
    with open("never", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\ntouch was-run\n")
    os.chmod("never", 0o755)
    for name, content in (("plain", b"text"), ("empty", b""), ("garbage", b"no artifact\n" * 999)):
        with open(name, "wb") as file:
            file.write(content)
    os.mkdir("folder")
    result = tracked.track([f"{tracked.BUILD}/fixtures/malloc_free"], "inline", "good.mtk")
    if result.status:
        raise RuntimeError(f"no good artifact: {result.err!r}")
    make_newer("newer.mtk")


def make_newer(path):
    made = tracked.run([f"{tracked.BUILD}/tests/make_artifact"], b"signature 999\n")
    if made.status:
        raise RuntimeError(f"make_artifact: {made.err!r}")
    with open(path, "wb") as file:
        file.write(made.out)


def as_nobody(command):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]


def command_of(program, arguments):
    words = [re.sub("^never$", "./never", word) for word in arguments.split()]
    return {"run": [tracked.RUN, *words],
            "nobody": as_nobody([tracked.RUN, *words]),
            "report": [tracked.REPORT, *words]}[program]


def check(program, arguments, status, pattern):
    result = tracked.run(command_of(program, arguments))
    if result.status != int(status):
        yield f"exit status {result.status}, not {status}"
    said = result.err.decode(errors="replace")
    if len(said.splitlines()) != 1 or not said.endswith("\n"):
        yield f"not one line on standard error: {said!r}"
    elif not said.startswith("memtrack-") or not re.search(pattern, said):
        yield f"no {pattern} in {said!r}"
    if result.out:
        yield f"prints {result.out!r}"
    if os.path.exists("was-run"):
        os.unlink("was-run")
        yield "the command was run"


def can_be_nobody():
    """Why a row can not be run as somebody without rights, or None."""
    if os.geteuid():
        return "not root"
    if not shutil.which("setpriv"):
        return "no setpriv"
    there = subprocess.run(as_nobody(["test", "-x", tracked.RUN]), check=False,
                           capture_output=True)
    return None if there.returncode == 0 else "the build is out of nobody's reach"


def read_cut():
    """Cut anywhere, a report of the rest or one line, and never a crash."""
    with open("good.mtk", "rb") as file:
        whole = file.read()
    for length in sorted({len(whole) * i // CUTS for i in range(CUTS)} |
                         {len(whole) - i for i in range(1, 9)}):
        with open("cut.mtk", "wb") as file:
            file.write(whole[:length])
        result = tracked.run([tracked.REPORT, "--json", "cut.mtk"])
        if result.status not in (0, 1):
            yield f"cut after {length} bytes: exit status {result.status}, {result.err!r}"
        # One that is cut behind the footer is complete.
        lines = 1 if result.status or not json.loads(result.out)["complete"] else 0
        if len(result.err.splitlines()) != lines:
            yield f"cut after {length} bytes: not {lines} lines: {result.err!r}"


def main():
    results = tap.Tap()
    make_files()
    os.chmod(".", 0o777)
    reason = can_be_nobody()
    for program, arguments, status, pattern in table.rows("refusals.tab", 4):
        title = f"memtrack-{program} {arguments}"
        if program == "nobody" and reason:
            results.skip(title, reason)
        else:
            results.attempt(title, check, program, arguments, status, pattern)
    results.attempt("artifacts that are cut", read_cut)
    results.plan()


main()
