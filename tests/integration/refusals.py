# SPDX-License-Identifier: LGPL-2.1-or-later
# refusals.py - bad input: one clear line on standard error, the status that the manual
# gives, and the command was not run; refusals.tab has the cases
#
# Then artifacts that are cut: whatever is left of one can be read.

import os
import re
import resource
import shutil
import subprocess

import table
import tap
import tracked

NOBODY = 65534
CUTS = 60
ROUNDS = 10


def make_files():
    with open("never", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\ntouch was-run\n")
    for name, interpreter in (("lost", "/no/such/interpreter"), ("twice-lost", " ./lost\t-x"),
                              ("in-folder", f"{os.getcwd()}/folder")):
        with open(name, "w", encoding="ascii") as file:
            file.write(f"#!{interpreter}\ntouch was-run\n")
    for name in "never", "lost", "twice-lost", "in-folder":
        os.chmod(name, 0o755)
    for name, content in (("plain", b"text"), ("empty", b""), ("garbage", b"no artifact\n" * 999)):
        with open(name, "wb") as file:
            file.write(content)
    os.mkdir("folder")
    os.mkfifo("folder/fifo")
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


def environment():
    """With a folder in PATH that may not be searched, a command that is not there might be."""
    folders = os.environ["PATH"].split(":")
    return {**os.environ, "PATH": ":".join(f for f in folders if os.access(f, os.X_OK))}


def check(program, arguments, status, pattern):
    result = tracked.run(command_of(program, arguments), env=environment())
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
        result = tracked.run([tracked.REPORT, "cut.mtk"])
        if result.status not in (1, tracked.STATUS_INCOMPLETE):
            yield f"cut after {length} bytes: exit status {result.status}, {result.err!r}"
        if len(result.err.splitlines()) != 1:
            yield f"cut after {length} bytes: not one line: {result.err!r}"


def control_characters():
    """A name is one line, and no order to a terminal, whatever is in it."""
    for command in ([tracked.RUN, "-o", "no\nsuch/\x1b[2Jx", "./never"],
                    [tracked.REPORT, "no\nsuch/\x1b[2Jx"]):
        said = tracked.run(command).err
        if said.count(b"\n") != 1 or b"no\\x0asuch/\\x1b[2Jx" not in said:
            yield f"{command[0]}: {said!r}"


def no_collector():
    """What is missing is named, and how to name another; whoever is first at the channel."""
    for _ in range(ROUNDS):
        result = tracked.run([tracked.RUN, "-o", "none.mtk", "./never"],
                             env={**os.environ, "MEMTRACK_COLLECTOR": "./no-such-collector"})
        said = (rb"memtrack-run: cannot .*'\./no-such-collector': No such file .*"
                rb"MEMTRACK_COLLECTOR.*\n")
        if result.status != 125 or not re.fullmatch(said, result.err):
            yield f"exit status {result.status}, {result.err!r}"
        if os.path.exists("none.mtk") or os.path.exists("was-run"):
            yield "something was left behind, or run"


def no_library():
    """The same of the library; a variable that is empty names none."""
    for named, status, said in (
            ("./no-such-shim", 125, rb"memtrack-run: cannot .*'\./no-such-shim': No such file .*"
             rb"MEMTRACK_PRELOAD.*\n"), ("", 0, b"")):
        result = tracked.run([tracked.RUN, "--quiet", "-o", "none.mtk", "true"],
                             env={**os.environ, "MEMTRACK_PRELOAD": named,
                                  "MEMTRACK_COLLECTOR": ""})
        if result.status != status or not re.fullmatch(said, result.err):
            yield f"{named!r}: exit status {result.status}, {result.err!r}"


def earlier_files():
    """A run that can not begin leaves what an earlier one wrote."""
    earlier = {"earlier.mtk": b"an artifact", "earlier.stats": b"statistics"}
    ways = [({"MEMTRACK_PRELOAD": "./no-such-shim"}, f"--capture={capture}", "./never", 125)
            for capture in ("auto", "inline", "ebpf")]
    ways.append(({"MEMTRACK_COLLECTOR": "./no-such-collector"}, "--quiet", "./never", 125))
    ways.append(({}, "--inject-faults=none", "./never", 125))
    if not tracked.missing("ebpf"):
        ways.append(({"MEMTRACK_PRELOAD": "/bin/true"}, "--capture=ebpf", "./never", 125))
    ways += [({"PATH": "/usr/bin:/bin"}, "--quiet", command, status)
             for command, status in (("no-such-command", 127), ("./no-such-command", 127),
                                     ("", 127), ("./plain", 126), ("./folder", 126),
                                     ("./lost", 127), ("./twice-lost", 127),
                                     ("./in-folder", 126))]
    for variables, option, command, status in ways:
        for path, content in earlier.items():
            with open(path, "wb") as file:
                file.write(content)
        result = tracked.run([tracked.RUN, option, "--stats=earlier.stats", "-o", "earlier.mtk",
                              "--", command], env={**os.environ, **variables})
        if result.status != status or result.err.count(b"\n") != 1:
            yield f"{variables} {option} {command}: exit status {result.status}, {result.err!r}"
        for path, content in earlier.items():
            with open(path, "rb") as file:
                if file.read() != content:
                    yield f"{variables} {option}: {path} is another"


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (13, 13))


def no_files():
    """Too few descriptors to begin with are told of, and nothing is lost by them."""
    with open("earlier.mtk", "wb") as file:
        file.write(b"an artifact")
    result = tracked.run([tracked.RUN, "--capture=inline", "-o", "earlier.mtk", "./never"],
                         preexec_fn=few_files)
    if result.status != 125 or b"ulimit -n" not in result.err:
        yield f"exit status {result.status}, {result.err!r}"
    with open("earlier.mtk", "rb") as file:
        if file.read() != b"an artifact":
            yield "the artifact is another"


def full_output():
    """Help that could not be written is no success."""
    for command, status in ((tracked.RUN, 125), (tracked.REPORT, 1)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([command, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        if done.returncode != status or done.stderr.count(b"\n") != 1:
            yield f"{command}: exit status {done.returncode}, {done.stderr!r}"


def closed_output():
    for command, status in ((tracked.RUN, 125), (tracked.REPORT, 1)):
        done = tracked.run(["sh", "-c", 'exec "$1" --help >&-', "sh", command])
        if done.status != status or done.err.count(b"\n") != 1:
            yield f"{command}: exit status {done.status}, {done.err!r}"


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
    results.attempt("names with control characters", control_characters)
    results.attempt("no collector", no_collector)
    results.attempt("no library", no_library)
    results.attempt("files of an earlier run", earlier_files)
    results.attempt("too few descriptors", no_files)
    results.attempt("help, to a full device", full_output)
    results.attempt("help, to a closed descriptor", closed_output)
    results.attempt("artifacts that are cut", read_cut)
    results.plan()


main()
