# SPDX-License-Identifier: LGPL-2.1-or-later
# pressure.py - rings that fill up: nothing is lost, nobody hangs, nobody stays stopped
#
# MEMTRACK_PRESSURE_ROUNDS: how often each disturbed run is made; four times where it is not set.

import os
import random
import re
import select
import signal
import subprocess
import sys
import time

import ledger
import relatives
import tap
import tracked

ROUNDS = int(os.environ.get("MEMTRACK_PRESSURE_ROUNDS", "4"))
PAUSES = ("futex", "signal")
STATUS_LOST = 121
# More than a hand-shake or two take.
PATIENCE_SECONDS = 11
PROCESSES = 16
STORM = f"{tracked.BUILD}/fixtures/alloc_storm_procs"
# A stop that comes right before a pause's end, between a look and a signal, is undone with it: no
# signal can close that window (collector/holds.h), and the scheduler may make it a long one.
STOPS = 5
# Whose CLOCK_MONOTONIC is minutes behind, as far as that can be.
OTHER_CLOCK = ("unshare", "--time", "--fork", "--monotonic", "-300")
SMALL = ("--event-ring=16K", "--drain-interval=2000")


def storm(pairs, program=STORM):
    return [program, str(PROCESSES), str(pairs)]


def own_storm(name):
    """A program that no other test runs at the same time: for living()."""
    program = os.path.abspath(f"storm.{name}")
    if not os.path.exists(program):
        os.link(STORM, program)
    return program


def episodes(err):
    """Of the summary: how many, and the most processes that one of them paused."""
    found = re.search(r"pressure: episodes (\d+), processes paused at most (\d+)", err.decode())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def whole(result, artifact):
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
        return
    yield from ledger.Ledger(result.out).size_problems(tracked.sizes(artifact))
    yield from tracked.losses(artifact)


def pause_rows(path):
    """The processes of each pause, in turn."""
    for row in tracked.statistics(path):
        if row["type"] == "pressure":
            if row["latch_ns"] >= row["release_ns"]:
                raise ValueError(f"latched after its release: {row}")
            yield {process["pid"] for process in row["processes"]}


def rows_without(rows):
    """In how many rows a process is missing that is in one before and in one after."""
    first, last = {}, {}
    for i, row in enumerate(rows):
        for pid in row:
            first.setdefault(pid, i)
            last[pid] = i
    return sum(1 for i, row in enumerate(rows)
               if any(first[pid] < i < last[pid] and pid not in row for pid in first))


def check_storm(capture, pause):
    artifact = f"storm.{capture}.{pause}.mtk"
    statistics = f"storm.{capture}.{pause}.json"
    result = tracked.track(storm(10000), capture, artifact,
                           ["-v", f"--pause={pause}", f"--stats={statistics}", *SMALL])
    yield from whole(result, artifact)
    rows = list(pause_rows(statistics))
    # Who has no turn to run for a fiftieth of the interval is not waited for.
    without = rows_without(rows)
    if without > len(rows) / 10:
        yield f"{without} of {len(rows)} pauses are without a process that goes on after them"
    n, most = episodes(result.err)
    if not n:
        yield "no ring was ever full, or nearly"
    if most < PROCESSES:
        yield f"{most} processes were paused at most, not {PROCESSES}"


def check_watermark(capture, pause):
    """A lower watermark is another figure, and as good."""
    artifact = f"watermark.{capture}.{pause}.mtk"
    result = tracked.track(storm(3000), capture, artifact,
                           ["-v", f"--pause={pause}", "--pressure-watermark=10", *SMALL])
    yield from whole(result, artifact)
    # 32 bytes an event: who parks does so each time that a tenth of 16 KiB is full; who is
    # stopped from outside may have filled much more by then.
    least = 2 * 3000 // (16384 // 10 // 32) // 2 if pause == "futex" else 1
    if episodes(result.err)[0] < least:
        yield f"too few episodes: {episodes(result.err)}"


def check_never(capture):
    """Nobody waits: what is lost is counted."""
    artifact = f"never.{capture}.mtk"
    options = ["-v", "--pressure-timeout=0", "--stack-ring=256K", "--event-ring=4K",
               "--inject-faults=slow-pass:50"]
    result = tracked.track(storm(10000), capture, artifact, options)
    said = re.search(r"(\d+) events were lost", result.err.decode())
    if result.status != STATUS_LOST or not said:
        yield f"exit status {result.status}, says {result.err!r}"
        return
    totals = tracked.report(artifact)
    book = ledger.Ledger(result.out)
    if totals["lost_events"] != int(said[1]):
        yield f"{totals['lost_events']} events lost in the artifact, but it says {result.err!r}"
    # The report can not tell the size of a block whose allocation was lost: its free is not
    # among those of any size.
    events = int(re.search(r"events: (\d+), lost", result.err.decode())[1])
    expected = book.totals["allocations"] + book.totals["frees"]
    if events + int(said[1]) < expected:
        yield f"{events} events and {said[1]} that were lost are fewer than {expected}"


def living(name):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    line = file.read().split(b"\0")
            except OSError:
                continue
            if line[0] == name.encode() and relatives.state_of(entry) not in ("Z", ""):
                found.append(entry)
    return found


def check_timeout(capture, pause):
    """An episode that lasts too long ends the tree, not the artifact."""
    artifact = f"timeout.{capture}.{pause}.mtk"
    program = own_storm(f"{capture}.{pause}")
    result = tracked.track([program, "8", "1000000"], capture, artifact,
                           [f"--pause={pause}", "--pressure-timeout=0.5", "--event-ring=16K",
                            "--inject-faults=slow-pass:2000"])
    if result.status != STATUS_LOST or b"--pressure-timeout=0.5" not in result.err:
        yield f"exit status {result.status}, says {result.err!r}"
    left = living(program)
    if left:
        yield f"processes of the tree are left: {left}"
    if not tracked.report(artifact)["allocations"]:
        yield "no allocation is in the artifact"


def check_stopped_collector(capture):
    """One that does nothing at all: its master ends the tree, and then itself."""
    artifact = f"stopped.{capture}.mtk"
    command = [tracked.RUN, "-o", artifact, f"--capture={capture}", "--pressure-timeout=0.5",
               "--", f"{tracked.BUILD}/fixtures/long_runner"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            process.stdout.readline()
            collector = relatives.find_collector(process.pid)
            os.kill(collector, signal.SIGSTOP)
            process.wait(tracked.SECONDS)  # its input does not end
            err = process.stderr.read()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            send(collector, signal.SIGCONT)
            raise
    if process.returncode != STATUS_LOST or b"--pressure-timeout" not in err:
        yield f"exit status {process.returncode}, says {err!r}"
    tracked.run([tracked.REPORT, artifact])


class Disturbed:
    """A tracked storm, with something done to it from outside while it runs."""

    def __init__(self, capture, pause, artifact, command, options=()):
        self.process = subprocess.Popen(
            [tracked.RUN, "-v", "-o", artifact, f"--capture={capture}", f"--pause={pause}",
             "--event-ring=16K", *options, "--", *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
        self.end = time.monotonic() + tracked.SECONDS

    def wait(self, seconds):
        """Whether it has ended, or is about to, within that time."""
        if time.monotonic() > self.end:
            self.give_up()
        return bool(select.select([self.process.stderr], [], [], seconds)[0])

    def give_up(self):
        below = relatives.descendants(self.process.pid)
        states = {name + str(tgid): relatives.state_of(tgid) for tgid, name in below.items()}
        states["memtrack-run"] = relatives.state_of(self.process.pid)
        for tgid in (self.process.pid, *below):
            try:
                os.kill(tgid, signal.SIGKILL)
            except OSError:
                pass
        raise RuntimeError(f"does not end: {states}")

    def victims(self):
        """The collector first, then the command's processes."""
        below = relatives.descendants(self.process.pid)
        return sorted(below, key=lambda tgid: below[tgid] != "memtrack-collector"[:15])

    def result(self):
        try:
            out, err = self.process.communicate(timeout=max(1, self.end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.give_up()
        return tracked.Result(tracked.shell_status(self.process.returncode), out, err)


def send(tgid, signo):
    try:
        os.kill(tgid, signo)
    except ProcessLookupError:
        pass


def disturb(run, dice):
    """Stops whom it likes, and continues them."""
    while not run.wait(dice.random() * 0.02):
        victims = run.victims()
        if not victims:
            continue
        victim = victims[0] if dice.random() < 0.3 else dice.choice(victims)
        send(victim, signal.SIGSTOP)
        over = run.wait(dice.random() * 0.03)
        send(victim, signal.SIGCONT)
        if over:
            break


def check_outsider(capture, pause):
    for i in range(ROUNDS):
        dice = random.Random(f"{capture} {pause} {i}")
        artifact = f"outsider.{capture}.{pause}.mtk"
        run = Disturbed(capture, pause, artifact, storm(3000))
        disturb(run, dice)
        for problem in whole(run.result(), artifact):
            yield f"round {i}: {problem}"


def check_killed(capture, pause):
    """The collector dies at any moment: the command ends by itself, with its own status."""
    program = own_storm(f"{capture}.{pause}")
    for i in range(ROUNDS):
        dice = random.Random(f"killed {capture} {pause} {i}")
        run = Disturbed(capture, pause, "killed.mtk", storm(3000, program))
        run.wait(dice.random() * 0.3)
        try:
            send(relatives.find_collector(run.process.pid), signal.SIGKILL)
        except RuntimeError:
            pass  # not yet, or not any more
        result = run.result()
        # Before there was a run, or in the middle of it.
        if result.status not in (0, STATUS_LOST, 125) or (
                result.status != 125 and not ledger.Ledger(result.out).totals["allocations"]):
            yield f"round {i}: exit status {result.status}, prints {result.out!r}, {result.err!r}"
        left = living(program)
        if left:
            yield f"round {i}: processes are left: {[(t, relatives.state_of(t)) for t in left]}"


def check_stops_itself(capture, pause):
    """Who waits for memtrack-run is told that the command stands still, also where it stops
    itself as soon as it goes on after a pause."""
    artifact = f"itself.{capture}.{pause}.mtk"
    most = 10 * ROUNDS
    program = ("import os, signal\n"
               f"for _ in range({most}):\n"
               "    for _ in range(300):\n"
               "        bytes(1000)\n"
               "    os.kill(os.getpid(), signal.SIGSTOP)\n")
    run = Disturbed(capture, pause, artifact, [sys.executable, "-S", "-c", program],
                    ["--drain-interval=50", "--event-ring=4K"])
    stops = 0
    while not run.wait(0.001):
        if os.waitid(os.P_PID, run.process.pid, os.WSTOPPED | os.WNOHANG):
            stops += 1
            os.killpg(run.process.pid, signal.SIGCONT)
    result = run.result()
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
    yield from tracked.losses(artifact)
    # The group's SIGCONT comes twice, memtrack-run passes it on: the second may end a next stop.
    if not 0 < stops <= most:
        yield f"{stops} stops were seen of {most}"
    if not episodes(result.err)[0]:
        yield "no ring was ever full, or nearly"


def check_late_start(capture):
    """A program that starts while the collector stands still waits for it, and is one process."""
    artifact = f"late.{capture}.mtk"
    command = [tracked.RUN, "-o", artifact, f"--capture={capture}", "--", "sh", "-c",
               "echo; read line; ls /; :"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            process.stdout.readline()
            collector = relatives.find_collector(process.pid)
            os.kill(collector, signal.SIGSTOP)
            process.stdin.write(b"\n")
            process.stdin.flush()
            if select.select([process.stdout], [], [], PATIENCE_SECONDS)[0]:
                yield "a program has run that nobody tracks"
            os.kill(collector, signal.SIGCONT)
            process.communicate(b"", tracked.SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        yield f"exit status {process.returncode}"
    yield from tracked.losses(artifact)
    processes = tracked.report(artifact)["processes"]
    if processes != 2:
        yield f"{processes} processes instead of the shell and its child"


def missing_clock():
    """Why there can be no other clock; None: there can."""
    result = tracked.run([*OTHER_CLOCK, "true"])
    return f"no time namespace: {result.err!r}" if result.status else None


def check_clock(capture):
    """Where the targets' clock is behind, a pause does not seem to last for ever."""
    artifact = f"clock.{capture}.mtk"
    result = tracked.track([*OTHER_CLOCK, *storm(300)], capture, artifact,
                           ["-v", "--pressure-timeout=100", *SMALL])
    yield from whole(result, artifact)
    if not episodes(result.err)[0]:
        yield "no ring was ever full, or nearly"


def stays_stopped(tgid):
    """Stops it; whether it stays so through many pauses."""
    os.kill(tgid, signal.SIGSTOP)
    while relatives.state_of(tgid) != "T":
        pass
    for _ in range(200):
        select.select([], [], [], 0.005)
        if relatives.state_of(tgid) != "T":
            return False
    return True


def check_stopped_before(capture):
    """Who is stopped before a pause stays so after it, through many."""
    artifact = f"before.{capture}.mtk"
    command = [tracked.RUN, "-v", "-o", artifact, f"--capture={capture}", "--pause=signal",
               "--event-ring=4K", "--", f"{tracked.BUILD}/fixtures/long_runner"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            process.stdout.readline()
            parent = [tgid for tgid, name in relatives.children(process.pid).items()
                      if name == "long_runner"][0]
            child = list(relatives.children(parent))[0]
            if not any(stays_stopped(child) for _ in range(STOPS)):
                yield "the process that was stopped before goes on"
            os.kill(child, signal.SIGCONT)
            out, err = process.communicate(b"", tracked.SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if episodes(err)[0] < 10:
        yield f"too few pauses: {err!r}"
    yield from whole(tracked.Result(process.returncode, out, err), artifact)


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        if reason:
            results.skip(f"pressure, {capture}", reason)
            continue
        for pause in PAUSES:
            for title, function in (("a storm", check_storm), ("a low watermark", check_watermark),
                                    ("a time-out", check_timeout),
                                    ("stops from outside", check_outsider),
                                    ("the collector is killed", check_killed),
                                    ("the command stops itself", check_stops_itself)):
                results.attempt(f"{title}, {capture}, {pause}", function, capture, pause)
        results.attempt(f"nobody waits, {capture}", check_never, capture)
        results.attempt(f"the collector is stopped, {capture}", check_stopped_collector, capture)
        results.attempt(f"stopped before, {capture}", check_stopped_before, capture)
        results.attempt(f"a late start, {capture}", check_late_start, capture)
        reason = missing_clock()
        if reason:
            results.skip(f"another clock, {capture}", reason)
        else:
            results.attempt(f"another clock, {capture}", check_clock, capture)
    results.plan()


main()
