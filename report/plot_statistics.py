# SPDX-License-Identifier: LGPL-2.1-or-later
# plot_statistics.py - a statistics file as columns, and as a table for people
#
# A file (memtrack-run --stats) has a JSON object in each line; "type" says of what kind it
# is.  What is of an unknown kind, and unknown fields, are skipped; what is known has to be
# as it should, or the file is refused: figures that are wrong are worse than none.  Times
# are CLOCK_MONOTONIC in ns, positions count bytes and never wrap.

import array
import dataclasses
import json
import os
import re
import stat

NUMBER_MAX = 2**63 - 1
LINE_MAX_BYTES = 16 << 20
RING_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:._-]{0,63}")
PAUSES = ("futex", "signal")


class Refusal(Exception):
    """Ends the program; the text is what is said."""


def printable(name):
    """A name in one line of plain characters."""
    return re.sub(r"[^ -~]", lambda found: ascii(found[0])[1:-1], name)


def columns(count):
    return dataclasses.field(default_factory=lambda: [array.array("q") for _ in range(count)])


@dataclasses.dataclass
class Ring:
    name: str
    bytes: int = 0  # 0: not known
    watermark: int = 0
    opened: int | None = None
    # start_ns, time_ns, producer and consumer before and after, peak_bytes
    rows: list = columns(7)


@dataclasses.dataclass
class Episode:
    ring: str
    pause: str
    latch: int
    release: int
    processes: list  # (pid, ns)


@dataclasses.dataclass
class Statistics:
    rings: dict = dataclasses.field(default_factory=dict)
    episodes: list = dataclasses.field(default_factory=list)
    backlog: list = columns(4)  # time_ns, drained, encoded, rss_bytes
    resolve: list = columns(5)  # start_ns, time_ns, events, records, chains
    encode: list = columns(7)   # time_ns, wait, encode, write, events, msgpack, zstd bytes
    rows: int = 0
    skipped: int = 0


class Reader:
    """Rows of one file; what is wrong with one is said with its number."""

    def __init__(self):
        self.statistics = Statistics()
        self.line = 0
        self.readers = {"ring_open": self._ring_open, "ring": self._ring,
                        "pressure": self._pressure, "backlog": self._backlog,
                        "resolve": self._resolve, "encode": self._encode}

    def wrong(self, text):
        return Refusal(f"line {self.line}: {text}")

    def _numbers(self, row, *names):
        values = [row.get(name) for name in names]
        for name, value in zip(names, values):
            # Not isinstance(): True is an int, too.
            if type(value) is not int or not 0 <= value <= NUMBER_MAX:
                found = repr(value)[:40] if name in row else "missing"
                raise self.wrong(f"{name} is {found}, not a number from 0 to 2^63 - 1")
        return values

    def _in_order(self, row, *names):
        for one, other in zip(names, names[1:]):
            if row[one] > row[other]:
                raise self.wrong(f"{one} is greater than {other}")

    def _ring_named(self, row):
        name = row.get("ring")
        if not isinstance(name, str) or not RING_NAME.fullmatch(name):
            raise self.wrong(f"ring is {repr(name)[:40]}, not the name of a ring")
        return self.statistics.rings.setdefault(name, Ring(name))

    def _ring_open(self, row):
        ring = self._ring_named(row)
        time, size, watermark = self._numbers(row, "time_ns", "bytes", "watermark_bytes")
        if not size:
            raise self.wrong("bytes is 0, and a ring is not empty")
        self._in_order(row, "watermark_bytes", "bytes")
        ring.bytes, ring.watermark = size, watermark
        if ring.opened is None:
            ring.opened = time

    def _ring(self, row):
        ring = self._ring_named(row)
        values = self._numbers(row, "start_ns", "time_ns", "producer_before", "producer_after",
                               "consumer_before", "consumer_after", "peak_bytes")
        self._in_order(row, "start_ns", "time_ns")
        self._in_order(row, "consumer_before", "producer_before", "producer_after")
        self._in_order(row, "consumer_before", "consumer_after", "producer_after")
        if ring.bytes and row["peak_bytes"] > ring.bytes:
            raise self.wrong("peak_bytes is greater than the ring")
        for column, one, other in ((1, "time_ns", "start_ns"),
                                   (3, "producer_after", "producer_before"),
                                   (5, "consumer_after", "consumer_before")):
            if ring.rows[column] and row[other] < ring.rows[column][-1]:
                raise self.wrong(f"{other} is smaller than {one} of the row of {ring.name}"
                                 " before")
        for column, value in zip(ring.rows, values):
            column.append(value)

    def _pressure(self, row):
        ring = self._ring_named(row)
        latch, release = self._numbers(row, "latch_ns", "release_ns")
        self._in_order(row, "latch_ns", "release_ns")
        pause, processes = row.get("pause"), row.get("processes")
        if pause not in PAUSES:
            raise self.wrong(f"pause is {repr(pause)[:40]}, not one of {', '.join(PAUSES)}")
        if not isinstance(processes, list) or not all(isinstance(p, dict) for p in processes):
            raise self.wrong("processes is not a list of objects")
        paused = [tuple(self._numbers(process, "pid", "paused_ns")) for process in processes]
        self.statistics.episodes.append(Episode(ring.name, pause, latch, release, paused))

    def _append(self, table, row, *names):
        for column, value in zip(table, self._numbers(row, *names)):
            column.append(value)

    def _backlog(self, row):
        self._append(self.statistics.backlog, row, "time_ns", "drained", "encoded", "rss_bytes")

    def _resolve(self, row):
        self._append(self.statistics.resolve, row, "start_ns", "time_ns", "events", "records",
                     "chains")
        self._in_order(row, "start_ns", "time_ns")

    def _encode(self, row):
        names = ("time_ns", "wait_ns", "encode_ns", "write_ns", "events", "msgpack_bytes",
                 "zstd_bytes")
        self._append(self.statistics.encode, row, *names)
        if sum(row[name] for name in names[1:4]) > row["time_ns"]:
            raise self.wrong("wait_ns, encode_ns and write_ns are more than there was time")

    def read(self, file):
        """Returns whether the last line is cut."""
        while line := file.readline(LINE_MAX_BYTES):
            self.line += 1
            try:
                row = json.loads(line.decode())
            except (ValueError, RecursionError):
                if line.startswith(b"{") and not line.endswith(b"\n") and \
                   len(line) < LINE_MAX_BYTES:
                    return True
                raise self.wrong("not JSON: this is no statistics file") from None
            if not isinstance(row, dict) or not isinstance(row.get("type"), str):
                raise self.wrong('no object with a "type": this is no statistics file')
            self.statistics.rows += 1
            if row["type"] in self.readers:
                self.readers[row["type"]](row)
            else:
                self.statistics.skipped += 1
        return False


def read_statistics(path):
    """(statistics, number of a line that is cut or None)"""
    reader = Reader()
    try:
        # A fifo would be waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refusal(f"cannot read '{printable(path)}': it is not a regular file")
            cut = reader.read(file)
    except OSError as error:
        raise Refusal(f"cannot read '{printable(path)}': {error.strerror}") from None
    except Refusal as refusal:
        if not str(refusal).startswith("line "):
            raise
        raise Refusal(f"cannot read '{printable(path)}': {refusal}") from None
    return reader.statistics, reader.line if cut else None


def ring_order(ring):
    """stacks, life, then those of events by their number."""
    slot = ring.name.partition(":")[2]
    return (":" in ring.name, ring.name != "stacks", len(slot), slot, ring.name)


def time_span(statistics):
    """(first, last) ns that anything is known of; equal if there is but one, or none."""
    times = [ring.opened for ring in statistics.rings.values() if ring.opened is not None]
    tables = [statistics.backlog[:1], statistics.resolve[:2], statistics.encode[:1],
              *(ring.rows[:2] for ring in statistics.rings.values())]
    times += [time for rows in tables for column in rows if column
              for time in (min(column), max(column))]
    times += [time for episode in statistics.episodes
              for time in (episode.latch, episode.release)]
    return (min(times), max(times)) if times else (0, 0)


def per_second(amount, ns):
    """MB/s"""
    return f"{amount * 1000 / ns:,.1f}" if ns else "-"


def ring_line(ring, episodes):
    begin, end, producer, written, consumed_before, consumed, peak = ring.rows
    through = sum(consumed) - sum(consumed_before)
    most = max(peak, default=0)
    since = ring.opened if ring.opened is not None else begin[0] if begin else 0
    return (ring.name, f"{ring.bytes:,}" if ring.bytes else "?", f"{through:,}", f"{most:,}",
            f"{100 * most / ring.bytes:.1f} %" if ring.bytes else "?", f"{len(end):,}",
            per_second(written[-1] - producer[0], max(0, end[-1] - since)) if end else "-",
            per_second(through, sum(end) - sum(begin)),
            f"{len(episodes):,}", f"{sum(e.release - e.latch for e in episodes) / 1e6:,.3f}")


def table(heading, lines):
    """The first column to the left, numbers to the right."""
    widths = [max(map(len, cells)) for cells in zip(heading, *lines)]
    for cells in (heading, *lines):
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        yield "  ".join(padded).rstrip()


def summarize(statistics):
    """Lines of text."""
    first, last = time_span(statistics)
    yield f"{statistics.rows:,} rows over {(last - first) / 1e9:.3f} s"
    if statistics.skipped:
        yield f"{statistics.skipped:,} rows of other kinds are skipped"
    _, drained, encoded, rss = statistics.backlog
    if drained:
        in_flight = max(d - e for d, e in zip(drained, encoded))
        yield (f"events: {drained[-1]:,} drained, {encoded[-1]:,} encoded, at most {in_flight:,}"
               f" in flight; collector: at most {max(rss) / 2**20:,.1f} MiB")
    if statistics.encode[0]:
        packed, compressed = map(sum, statistics.encode[5:])
        yield (f"frames: {len(statistics.encode[0]):,}, msgpack {packed:,} bytes, zstd"
               f" {compressed:,} bytes")
    if statistics.episodes:
        pids = {pid for episode in statistics.episodes for pid, _ in episode.processes}
        longest = max(episode.release - episode.latch for episode in statistics.episodes)
        yield (f"pressure: {len(statistics.episodes):,} episodes, the longest of"
               f" {longest / 1e6:,.3f} ms; {len(pids):,} processes were paused")
    of_ring = {}
    for episode in statistics.episodes:
        of_ring.setdefault(episode.ring, []).append(episode)
    lines = [ring_line(ring, of_ring.get(ring.name, ()))
             for ring in sorted(statistics.rings.values(), key=ring_order)]
    if lines:
        yield ""
        yield from table(("ring", "bytes", "through", "peak", "fill", "passes", "written MB/s",
                          "drained MB/s", "episodes", "paused ms"), lines)
