# SPDX-License-Identifier: LGPL-2.1-or-later
# killed.py - the target is killed in mid-storm, and the collector is

import os
import signal
import subprocess
import time

import ledger
import relatives
import tap
import tracked

LOST_STATUS = 121  # a run that lost something
ROUNDS = 3
RUNNERS = 60
RUNNER_STEP = 0.0001  # seconds; the end takes about 3 ms


def kill_target(capture):
    """All that the target knew to be done is in the file, which is complete."""
    for i in range(ROUNDS):
        artifact = f"target.{capture}.{i}.mtk"
        result = tracked.track([f"{tracked.BUILD}/fixtures/kill_me", "20000"], capture, artifact)
        if result.status != 128 + signal.SIGKILL:
            yield f"exit status {result.status}, not 137; says {result.err!r}"
        yield from ledger.Ledger(result.out).size_problems(tracked.sizes(artifact))
        yield from tracked.losses(artifact)


def kill_waiting(capture):
    """The command's process is killed before it executes: an end like any other."""
    collector = f"{tracked.BUILD}/collector/memtrack-collector"
    with open("killing", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nread -r others </proc/$PPID/task/$PPID/children\n"
                   "for child in $others; do\n"
                   "\t[ $child = $$ ] || kill -KILL $child\ndone\n"
                   f"exec '{collector}' \"$@\"\n")
    os.chmod("killing", 0o755)
    artifact = f"waiting.{capture}.mtk"
    result = tracked.track(["echo", "begun"], capture, artifact,
                           env={**os.environ, "MEMTRACK_COLLECTOR": os.path.abspath("killing")})
    if result.status != 128 + signal.SIGKILL or result.out or result.err:
        yield f"exit status {result.status}, prints {result.out!r}, says {result.err!r}"
        return
    totals = tracked.report(artifact)
    if not totals["complete"] or totals["exit_signal"] != signal.SIGKILL:
        yield f"complete: {totals['complete']}, signal {totals['exit_signal']}"


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


def kill_runner(capture):
    """Killed at the run's end, or on the way to it, it leaves its directory to the collector."""
    command = [tracked.RUN, "-q", "-o", f"runner.{capture}.mtk", f"--capture={capture}", "--",
               "printenv", "MEMTRACK_RUN"]
    env = dict(os.environ)
    if "ASAN_OPTIONS" in env:
        # Its look for leaks, at the end, complains of being killed, too.
        env["ASAN_OPTIONS"] += ":detect_leaks=0"
    for i in range(RUNNERS):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
            directory = os.path.dirname(process.stdout.readline().rsplit(":", 1)[-1])
            time.sleep(i * RUNNER_STEP)
            process.kill()
        if not directory.startswith("/"):
            yield f"no directory is told of: {directory!r}"
        elif not tracked.eventually(lambda path=directory: not os.path.exists(path)):
            yield f"killed after {i * RUNNER_STEP:.4f} s, it leaves {os.listdir(directory)}"


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        for title, function in ((f"the target is killed, {capture}", kill_target),
                                (f"the target is killed early, {capture}", kill_waiting),
                                (f"the collector is killed, {capture}", kill_collector),
                                (f"memtrack-run is killed late, {capture}", kill_runner)):
            if reason:
                results.skip(title, reason)
            else:
                results.attempt(title, function, capture)
    results.plan()


main()
