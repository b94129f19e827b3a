# SPDX-License-Identifier: LGPL-2.1-or-later
# stats.py - what --stats writes adds up, and a file that can not be written harms nobody
#
# The rows are doc/STATS.md's.  High-water marks are compared with what is known without
# them: what a ring's position says where nothing was read before the end, how much more N
# more events of a program are, and a ring that is too small for it.

import fcntl
import json
import os
import re
import signal
import subprocess

import relatives
import tap
import tracked

FIXTURES = f"{tracked.BUILD}/fixtures"
STORM = [f"{FIXTURES}/alloc_storm_procs", "16", "20000"]
STORM_EVENTS = 16 * 20000 * 2
CELL = 32
F_SETPIPE_SZ = 1031  # not in fcntl before Python 3.10
MOST_MEMORY = 96 << 20
MOST_GROWTH = 1.1  # of the memory, where there are four times the events
BATCHES = 3 << 20  # made when they are needed first (collector/encode.h)
NEVER = "--drain-interval=60000"  # but at the end, and where a ring is full

NUMBERS = {
    "ring_open": ["bytes", "watermark_bytes"],
    "ring": ["start_ns", "producer_before", "producer_after", "consumer_before",
             "consumer_after", "peak_bytes"],
    "pressure": ["slot", "latch_ns", "release_ns"],
    "backlog": ["drained", "encoded", "rss_bytes"],
    "resolve": ["start_ns", "wait_ns", "events", "records", "chains"],
    "encode": ["wait_ns", "encode_ns", "write_ns", "events", "msgpack_bytes", "zstd_bytes"],
}


def of_kind(rows, kind):
    return [row for row in rows if row["type"] == kind]


def run(capture, command, *options, name="stats"):
    """The rows and memtrack-run's result; the artifact is NAME.mtk."""
    result = tracked.track(command, capture, f"{name}.mtk", [f"--stats={name}.json", *options])
    if result.status or b"statistics" in result.err:
        raise RuntimeError(f"exit status {result.status}, says {result.err!r}")
    return tracked.statistics(f"{name}.json"), result


def forms(rows):
    """Each row has what its kind has, and no other kind is there."""
    for row in rows:
        if row["type"] not in NUMBERS:
            yield f"no such type: {row}"
            continue
        for key in ["time_ns", *NUMBERS[row["type"]]]:
            if not isinstance(row.get(key), int) or row[key] < 0:
                yield f"{key} is no number: {row}"
    for kind in ("ring_open", "ring", "backlog", "resolve", "encode"):
        if not of_kind(rows, kind):
            yield f"no {kind}"


def rings(rows):
    """Rows of a ring follow one another, after its ring_open, and no fill is impossible."""
    opened, last = {}, {}
    for row in rows:
        name = row.get("ring")
        if row["type"] == "ring_open":
            if name in opened:
                yield f"opened twice: {name}"
            opened[name] = row
        if row["type"] != "ring":
            continue
        if name not in opened:
            yield f"not opened: {name}"
            return
        size = opened[name]["bytes"]
        before = last.get(name, {"producer_after": 0, "consumer_after": 0, "time_ns": 0})
        for end in ("producer", "consumer"):
            if row[f"{end}_before"] != before[f"{end}_after"]:
                yield f"{end}_before is not what it was: {before} {row}"
            if row[f"{end}_after"] < row[f"{end}_before"]:
                yield f"{end} goes back: {row}"
        fill = row["producer_after"] - row["consumer_after"]
        if not 0 <= fill <= row["peak_bytes"] <= size:
            yield f"a fill that can not be, of {size}: {row}"
        if not before["time_ns"] <= row["start_ns"] <= row["time_ns"]:
            yield f"passes overlap: {before} {row}"
        last[name] = row
    for name, row in last.items():
        if row["producer_after"] != row["consumer_after"]:
            yield f"not all was read: {row}"
        if not opened[name]["watermark_bytes"] <= opened[name]["bytes"]:
            yield f"a watermark above the ring: {opened[name]}"


def sums(rows, events):
    """Resolved and encoded, in frames and in the backlog: all events, in step."""
    for kind in ("resolve", "encode"):
        total = sum(row["events"] for row in of_kind(rows, kind))
        if total != events:
            yield f"{kind}: {total} events, not {events}"
    before = {"drained": 0, "encoded": 0, "time_ns": 0}
    for row in of_kind(rows, "backlog"):
        if not row["encoded"] <= row["drained"] <= events:
            yield f"encoded before drained, or too many of {events}: {row}"
        for key, value in before.items():
            if row[key] < value:
                yield f"{key} goes back: {row}"
        if not row["rss_bytes"]:
            yield f"no memory: {row}"
        before = {key: row[key] for key in before}
    if (before["drained"], before["encoded"]) != (events, events):
        yield f"at the end of {events}: {before}"


def artifact_sums(rows, artifact):
    """Header and footer are no rows; all else is."""
    frames = sum(row["zstd_bytes"] for row in of_kind(rows, "encode"))
    size = os.stat(artifact).st_size
    if not frames < size < frames + 2000:
        yield f"frames of {frames} bytes in a file of {size}"
    for row in of_kind(rows, "encode"):
        if not 0 < row["zstd_bytes"] or not 0 < row["msgpack_bytes"]:
            yield f"a frame of nothing: {row}"


def chain_sums(rows, artifact):
    """Chains, not their parts: those of the artifact, but for what has none."""
    total = sum(row["chains"] for row in of_kind(rows, "resolve"))
    chains = [row for row in tracked.allocation_chains(artifact) if row["chain"]]
    if total != len(chains):
        yield f"{total} chains, in the artifact {len(chains)}"


def consistent(capture, *options):
    rows, _ = run(capture, STORM, *options)
    events = tracked.report("stats.mtk")
    yield from tracked.losses("stats.mtk")
    total = events["allocations"] + events["frees"]
    if total < STORM_EVENTS:
        yield f"{total} events in the artifact, not {STORM_EVENTS}"
    yield from forms(rows)
    yield from rings(rows)
    yield from sums(rows, sum(row["events"] for row in of_kind(rows, "encode")))
    yield from artifact_sums(rows, "stats.mtk")
    yield from chain_sums(rows, "stats.mtk")
    said = tracked.run([tracked.REPORT, "stats.mtk"])
    if said.status:
        yield f"memtrack-report exits with {said.status}"


def counted(capture):
    """As many events as memtrack-run says."""
    rows, result = run(capture, [f"{FIXTURES}/stack_churn", "60"], "-v")
    events = int(re.search(rb"events: (\d+),", result.err)[1])
    yield from rings(rows)
    yield from sums(rows, events)


def peak_of(rows, name):
    return max(row["peak_bytes"] for row in of_kind(rows, "ring") if row["ring"] == name)


def same_at_the_end(capture):
    """Where nothing is read before the end, a ring's greatest fill is all that was on it."""
    rows, _ = run(capture, [f"{FIXTURES}/alloc_storm_procs", "3", "200"], NEVER)
    cells = 0
    for row in of_kind(rows, "ring"):
        if row["peak_bytes"] != row["producer_after"]:
            yield f"not all that was on the ring: {row}"
        if row["ring"].startswith("events:"):
            cells += row["producer_after"] // CELL
    if cells < 3 * 2 * 200:
        yield f"{cells} cells"


def more_events_more_fill(capture):
    """Two runs that differ by a known number of events differ by as many cells at the peak."""
    peaks = []
    for pairs in (300, 1300):  # below the watermark
        rows, _ = run(capture, [f"{FIXTURES}/alloc_storm_procs", "1", str(pairs)], NEVER,
                      "--no-stacks")
        peaks.append(max(peak_of(rows, row["ring"]) for row in of_kind(rows, "ring_open")
                         if row["ring"].startswith("events:")))
    if peaks[1] - peaks[0] != 2 * 1000 * CELL:
        yield f"peaks of {peaks}: not {2 * 1000 * CELL} more"


def full_ring(capture):
    """A ring that is too small is at its watermark at its peak, or over it, and no fuller than
    full; nothing is lost."""
    rows, _ = run(capture, [f"{FIXTURES}/alloc_storm_procs", "2", "3000"], NEVER, "--no-stacks",
                  "--event-ring=4K")
    yield from tracked.losses("stats.mtk")
    yield from rings(rows)
    full = [row["ring"] for row in of_kind(rows, "ring_open")
            if row["ring"].startswith("events:") and
            row["watermark_bytes"] <= peak_of(rows, row["ring"]) <= 4096]
    if len(full) < 2:
        yield f"full were {full}"


def stack_ring(*options):
    """The BPF ring's greatest fill, where it is read at the end, is its records' length."""
    rows, result = run("ebpf", [f"{FIXTURES}/stack_churn", "20"], NEVER, "-v",
                       "--stack-ring=64M", "--event-ring=4M", *options)
    records, mean = (int(n) for n in re.search(
        rb"stack records: (\d+) for \d+ stacks, \d+ raw, mean (\d+) bytes", result.err).groups())
    peak = peak_of(rows, "stacks")
    if not records:
        yield "no stack record"
    if "--no-stack-compression" not in options and \
            not records * (mean + 8) <= peak < records * (mean + 9):
        yield f"a peak of {peak} bytes, of {records} records of {mean} bytes and 8 each"
    if peak != [row for row in of_kind(rows, "ring") if row["ring"] == "stacks"][-1][
            "producer_after"]:
        yield f"a peak of {peak} bytes, not all that was on the ring"


def memory(capture):
    """What the collector needs does not depend on how long the run is."""
    if "ASAN_OPTIONS" in os.environ:
        return  # freed memory is not used again there
    peaks = []
    for pairs in (20000, 80000):
        rows, _ = run(capture, [f"{FIXTURES}/alloc_storm_procs", "16", str(pairs)])
        peaks.append(max(row["rss_bytes"] for row in of_kind(rows, "backlog")))
    if peaks[1] > MOST_MEMORY or peaks[1] > peaks[0] * MOST_GROWTH + BATCHES:
        yield f"peaks of {peaks} bytes"


def by_variable(capture):
    """MEMTRACK_STATS, which the option wins over; an empty one is none."""
    command = ["/bin/true"]
    env = {**os.environ, "MEMTRACK_STATS": "variable.json"}
    tracked.track(command, capture, "variable.mtk", env=env)
    if not of_kind(tracked.statistics("variable.json"), "backlog"):
        yield "no rows"
    os.unlink("variable.json")
    tracked.track(command, capture, "variable.mtk", ["--stats=option.json"], env=env)
    if os.path.exists("variable.json") or not os.path.exists("option.json"):
        yield "the option does not win"
    env["MEMTRACK_STATS"] = ""
    result = tracked.track(command, capture, "variable.mtk", env=env)
    if result.status:
        yield f"an empty variable: exit status {result.status}, says {result.err!r}"


def overwritten(capture):
    """What was in the file is gone, but not where the run could not begin."""
    with open("old.json", "w", encoding="ascii") as file:
        file.write("old\n" * 100000)
    tracked.track(["./no-such-command"], capture, "old.mtk", ["--stats=old.json"])
    tracked.track(["./no-such-command"], capture, "new.mtk", ["--stats=new.json"])
    if os.path.exists("new.json"):
        yield "a run that could not begin leaves a file"
    tracked.track(["/bin/true"], capture, "old.mtk", ["--stats=old.json"])
    tracked.statistics("old.json")


def one_message(result, what):
    lines = [line for line in result.err.decode().splitlines() if "statistics" in line]
    if len(lines) != 1 or what not in lines[0]:
        yield f"says {result.err!r}"


def unharmed(result, alone, artifact):
    if (result.status, result.out) != (alone.status, alone.out):
        yield f"{result}, without: {alone}"
    yield from tracked.losses(artifact)


def full_disk(capture):
    """One message; all else is as it would be."""
    alone = tracked.track(STORM, capture, "alone.mtk")
    result = tracked.track(STORM, capture, "full.mtk", ["--stats=/dev/full"])
    yield from one_message(result, os.strerror(28))
    yield from unharmed(result, alone, "full.mtk")


def stuck_reader(capture):
    """Of a fifo that nobody reads: rows are given up after a while."""
    os.mkfifo(f"fifo.{capture}")
    reader = os.open(f"fifo.{capture}", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, F_SETPIPE_SZ, 4096)  # a run has more rows than that
    alone = tracked.track(STORM, capture, "alone.mtk")
    result = tracked.track(STORM, capture, "stuck.mtk", [f"--stats=fifo.{capture}"])
    os.close(reader)
    yield from one_message(result, "statistics")
    yield from unharmed(result, alone, "stuck.mtk")


def killed_collector(capture):
    """The file has whole lines, but perhaps for the last."""
    command = [tracked.RUN, "-o", "killed.mtk", "--stats=killed.json", f"--capture={capture}",
               "--", f"{FIXTURES}/long_runner"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            process.stdout.readline()
            while not os.path.getsize("killed.json"):
                pass
            os.kill(relatives.find_collector(process.pid), signal.SIGKILL)
            process.communicate(b"", tracked.SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    with open("killed.json", encoding="ascii") as file:
        lines = file.read().split("\n")
    for line in lines[:-1]:
        json.loads(line)
    if len(lines) < 2:
        yield "no row"


def same_file():
    result = tracked.track(["/bin/true"], "inline", "same.mtk", ["--stats=same.mtk"])
    if result.status != 125 or b"statistics go there" not in result.err:
        yield f"exit status {result.status}, says {result.err!r}"


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        if reason:
            results.skip(f"statistics, {capture}", reason)
            continue
        for options in ((), ("--drain-interval=2000",),
                        ("--drain-interval=2000", "--stack-ring=64K", "--event-ring=4K"),
                        ("--no-stack-compression",), ("--no-stacks",)):
            results.attempt(f"{capture} {' '.join(options)}: rows add up", consistent, capture,
                            *options)
        for case in (counted, memory, same_at_the_end, more_events_more_fill, full_ring,
                     by_variable, overwritten, full_disk, stuck_reader, killed_collector):
            results.attempt(f"{capture}: {case.__name__.replace('_', ' ')}", case, capture)
        if capture == "ebpf":
            results.attempt("ebpf: the stack ring's peak", stack_ring)
            results.attempt("ebpf: the stack ring's peak, raw", stack_ring,
                            "--no-stack-compression")
    results.attempt("the artifact's own file is refused", same_file)
    results.plan()


main()
