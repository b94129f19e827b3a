# SPDX-License-Identifier: LGPL-2.1-or-later
# idle.py - a collector whose program does nothing does hardly anything

import os
import signal
import subprocess
import time

import relatives
import tap
import tracked

FORGOTTEN_SECONDS = 3  # until nothing is left of the rate at which the program began
WATCHED_SECONDS = 1
MOST_SECONDS = 0.5  # of those, on a slow machine, too


def cpu_seconds(tgid):
    with open(f"/proc/{tgid}/stat", encoding="utf-8", errors="replace") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def stays_idle(capture):
    """It looks at the rings now and then, however long nothing has come."""
    command = [tracked.RUN, "-o", f"idle.{capture}.mtk", f"--capture={capture}", "--",
               "sh", "-c", "echo ready; read line"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            if process.stdout.readline() != b"ready\n":
                yield "the program did not become ready"
            collector = relatives.find_collector(process.pid)
            time.sleep(FORGOTTEN_SECONDS)
            before = cpu_seconds(collector)
            time.sleep(WATCHED_SECONDS)
            taken = cpu_seconds(collector) - before
            process.communicate(b"\n", tracked.SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if taken > MOST_SECONDS:
        yield f"{taken} seconds of processor time in {WATCHED_SECONDS}"


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        title = f"the program sleeps, {capture}"
        reason = tracked.missing(capture)
        if reason:
            results.skip(title, reason)
        else:
            results.attempt(title, stays_idle, capture)
    results.plan()


main()
