# SPDX-License-Identifier: LGPL-2.1-or-later
# killed.py - the target is killed in mid-storm, and the collector is

import os
import signal
import subprocess

import ledger
import relatives
import tap
import tracked

LOST_STATUS = 121  # a run that lost something
ROUNDS = 3


def kill_target(capture):
    """All that the target knew to be done is in the file, which is complete."""
    for i in range(ROUNDS):
        artifact = f"target.{capture}.{i}.mtk"
        result = tracked.track([f"{tracked.BUILD}/fixtures/kill_me", "20000"], capture, artifact)
        if result.status != 128 + signal.SIGKILL:
            yield f"exit status {result.status}, not 137; says {result.err!r}"
        yield from ledger.Ledger(result.out).size_problems(tracked.sizes(artifact))
        yield from tracked.losses(artifact)


def kill_collector(capture):
    """The target goes on and ends as it would; memtrack-run says what happened."""
    artifact = f"collector.{capture}.mtk"
    command = [tracked.RUN, "-o", artifact, f"--capture={capture}", "--",
               f"{tracked.BUILD}/fixtures/long_runner"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            if process.stdout.readline() != b"ready\n":
                yield "the target did not become ready"
            os.kill(relatives.find_collector(process.pid), signal.SIGKILL)
            out, err = process.communicate(b"", tracked.SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    book = ledger.Ledger(out)
    if not book.totals["allocations"] or book.totals["allocations"] != book.totals["frees"]:
        yield f"the target printed {out!r}"
    if process.returncode != LOST_STATUS:
        yield f"exit status {process.returncode}, not {LOST_STATUS}"
    said = [line for line in err.decode().splitlines() if "collector" in line]
    if len(said) != 1:
        yield f"not one line about the collector on standard error: {err!r}"
    tracked.report(artifact)


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        for title, function in ((f"the target is killed, {capture}", kill_target),
                                (f"the collector is killed, {capture}", kill_collector)):
            if reason:
                results.skip(title, reason)
            else:
                results.attempt(title, function, capture)
    results.plan()


main()
