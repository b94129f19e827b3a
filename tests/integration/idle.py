# SPDX-License-Identifier: LGPL-2.1-or-later
# idle.py - a collector whose program does nothing does hardly anything

import os
import re
import signal
import subprocess
import sys
import time

import ledger
import relatives
import tap
import tracked

FORGOTTEN_SECONDS = 3  # until nothing is left of the rate at which the program began
WATCHED_SECONDS = 3
MOST_SHARE = 0.1  # of a processor, in a build with sanitizers on a busy machine, too
MOST_SLEEPS = 200  # a second; where the collector looks each millisecond, there are near a thousand
WAITS = ["sh", "-c", "echo ready; read line"]
# A thread that works now and then, as a server's does.
TICKS = [sys.executable, "-S", "-c",
         "import json, sys, threading, time\n"
         "def tick():\n"
         "    while True:\n"
         "        time.sleep(0.01)\n"
         "        json.dumps({'a': [1, 2, 3]})\n"
         "threading.Thread(target=tick, daemon=True).start()\n"
         "print('ready', flush=True)\n"
         "sys.stdin.readline()\n"]


def cpu_seconds(tgid):
    """Of all of its threads."""
    return time.clock_gettime(~tgid << 3 | 2)  # as clock_getcpuclockid(3) has it


def sleeps(tgid):
    with open(f"/proc/{tgid}/status", encoding="utf-8", errors="replace") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.MULTILINE)[1])


def stays_idle(capture, program):
    """It looks at the rings now and then, however long nothing has come."""
    artifact = f"idle.{capture}.mtk"
    command = [tracked.RUN, "-o", artifact, f"--capture={capture}", "--", *program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            if process.stdout.readline() != b"ready\n":
                yield "the program did not become ready"
            collector = relatives.find_collector(process.pid)
            time.sleep(FORGOTTEN_SECONDS)
            before, slept_before = cpu_seconds(collector), sleeps(collector)
            time.sleep(WATCHED_SECONDS)
            taken, slept = cpu_seconds(collector) - before, sleeps(collector) - slept_before
            process.communicate(b"\n", tracked.SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if taken > MOST_SHARE * WATCHED_SECONDS:
        yield f"{taken} seconds of processor time in {WATCHED_SECONDS}"
    if slept > MOST_SLEEPS * WATCHED_SECONDS:
        yield f"it slept {slept} times in {WATCHED_SECONDS} seconds"
    yield from tracked.losses(artifact)


def bursts(capture, *options):
    """What comes all at once where nothing was is all there, with its stacks; so is a program
    that is executed then."""
    artifact = f"bursts.{capture}.mtk"
    fixtures = f"{tracked.BUILD}/fixtures"
    script = (f"{fixtures}/bursts 10 10000 150; sleep 0.2; {fixtures}/alloc_storm_procs 16 3000;"
              f" sleep 0.2; {fixtures}/malloc_free")
    result = tracked.track(["sh", "-c", script], capture, artifact, options)
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
        return
    book = ledger.Ledger(result.out)
    yield from book.size_problems(tracked.sizes(artifact))
    yield from tracked.losses(artifact)
    found = sum(row["count"] for row in tracked.allocation_chains(artifact)
                if "take_in_burst" in map(tracked.short_name, row["chain"]))
    if found != book.sites()["take_in_burst"].allocations:
        yield f"{found} allocations have take_in_burst() in their chain"


CASES = (
    ("the program sleeps", stays_idle, WAITS),
    ("the program does little", stays_idle, TICKS),
    ("bursts", bursts),
    ("bursts, the smallest rings", bursts, "--event-ring=4K", "--stack-ring=64K"),
    ("bursts, who is stopped", bursts, "--event-ring=64K", "--pause=signal"),
)


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        for title, function, *arguments in CASES:
            if reason:
                results.skip(f"{title}, {capture}", reason)
            else:
                results.attempt(f"{title}, {capture}", function, capture, *arguments)
    results.plan()


main()
