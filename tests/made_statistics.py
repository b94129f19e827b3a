# SPDX-License-Identifier: LGPL-2.1-or-later
# made_statistics.py - statistics files of runs that never were, of several shapes
#
#   python3 made_statistics.py SHAPE [SECONDS] >FILE
#
# A run is played: processes write to their rings and to "stacks" at changing rates, a
# collector passes at its interval or when a ring is filled to its watermark, and an encoder
# follows behind a bounded queue.  The same shape is the same file.

import dataclasses
import json
import math
import random
import sys

START_NS = 5_000_000_000_000
STEP_NS = 250_000
BACKLOG_NS = 10_000_000
FRAME_NS = 250_000_000
CELL_BYTES = 32
QUEUE_EVENTS = 400_000


@dataclasses.dataclass
class Shape:
    seconds: float
    processes: int
    interval_ns: int
    events_per_second: float    # of each process
    stacks_bytes: int = 4 << 20
    events_bytes: int = 128 << 10
    record_bytes: float = 90.0  # of stacks, an event
    drain_bytes_per_ns: float = 1.2
    pauses: tuple = ("futex",)
    rests: bool = False         # all processes rest for a while, twice


SHAPES = {
    # 16 processes at once, a collector that hardly looks: pauses all the time.
    "storm": Shape(10.0, 16, 2_000_000_000, 180_000.0),
    # The same at the usual interval: none.
    "steady": Shape(10.0, 16, 1_000_000, 60_000.0),
    # One process, and all of it at rest for a while.
    "single": Shape(6.0, 1, 1_000_000, 400_000.0, rests=True),
    # More rings and processes than a picture has room for, and both kinds of pause.
    "crowd": Shape(8.0, 64, 500_000_000, 30_000.0, stacks_bytes=2 << 20,
                   pauses=("futex", "signal")),
    # A slow disk: the queue before the encoder fills, and the drain waits for it.
    "slow": Shape(5.0, 4, 1_000_000, 150_000.0, drain_bytes_per_ns=0.02),
    # Done before it is long.
    "short": Shape(0.03, 2, 1_000_000, 300_000.0),
}


class MadeRing:
    def __init__(self, name, size):
        self.name, self.size = name, size
        self.watermark = size * 3 // 4
        self.producer = self.consumer = self.peak = 0.0
        self.told = (0, 0)  # producer and consumer, in the last row
        self.opened = False

    def write(self, amount):
        """What there is room for is written."""
        self.producer += min(amount, self.size - (self.producer - self.consumer))
        self.peak = max(self.peak, self.producer - self.consumer)

    def is_latched(self):
        return self.producer - self.consumer >= self.watermark


class Run:
    def __init__(self, shape, seed=4711):
        self.shape = shape
        self.random = random.Random(seed)
        self.stacks = MadeRing("stacks", shape.stacks_bytes)
        self.life = MadeRing("life", 256 << 10)
        self.rings = [MadeRing(f"events:{slot}", shape.events_bytes)
                      for slot in range(shape.processes)]
        self.now = START_NS
        self.drained = self.encoded = 0.0
        self.next_backlog = self.next_frame = START_NS
        self.frame_events = 0.0
        self.rows = []

    def row(self, kind, **fields):
        self.rows.append({"type": kind, "time_ns": int(self.now), **fields})

    def _rate(self, process):
        """How busy a process is now: 0 to 1."""
        since = (self.now - START_NS) / 1e9 / self.shape.seconds
        if self.shape.rests and (0.3 < since < 0.5 or 0.7 < since < 0.75):
            return 0.0
        wave = 0.55 + 0.45 * math.sin(9 * since * math.pi + process)
        return wave * self.random.uniform(0.5, 1.0)

    def _write(self, ns):
        for process, ring in enumerate(self.rings):
            events = self.shape.events_per_second * ns / 1e9 * self._rate(process)
            ring.write(events * CELL_BYTES)
            self.stacks.write(events * self.shape.record_bytes)
        if self.random.random() < 0.02:
            self.life.write(96)

    def _backlog(self):
        while self.next_backlog <= self.now:
            rss = 18 << 20
            rss += int(20 * (1 << 20) * (1 - math.exp((START_NS - self.now) / 1e9)))
            rss += int(40 * (self.drained - self.encoded))
            self.row("backlog", drained=int(self.drained), encoded=int(self.encoded),
                     rss_bytes=rss)
            self.next_backlog += BACKLOG_NS

    def _encode(self):
        """A frame of what has come since the last one."""
        self.next_frame = self.now + FRAME_NS
        events = int(self.drained - self.encoded)
        if not events:
            return
        encode, write = int(events * 260), int(events * 45 + 90_000)
        self.encoded += events
        self.row("encode", wait_ns=max(0, FRAME_NS - encode - write), encode_ns=encode,
                 write_ns=write, events=events, msgpack_bytes=events * 6,
                 zstd_bytes=events * 5 // 2)

    def pass_(self):
        begin = self.now
        moved = [ring for ring in (self.stacks, self.life, *self.rings)
                 if ring.producer > ring.consumer]
        found = [ring.producer for ring in moved]
        amount = sum(ring.producer - ring.consumer for ring in moved)
        events = sum(ring.producer - ring.consumer for ring in self.rings) / CELL_BYTES
        took = int(20_000 + amount / self.shape.drain_bytes_per_ns)
        self._write(took / 8)
        self.now += took
        for ring, producer in zip(moved, found):
            if not ring.opened:
                self.row("ring_open", ring=ring.name, bytes=ring.size,
                         watermark_bytes=ring.watermark)
                ring.opened = True
            ring.consumer = producer
            now = int(ring.producer), int(ring.consumer)
            self.row("ring", ring=ring.name, start_ns=int(begin), producer_before=ring.told[0],
                     producer_after=now[0], consumer_before=ring.told[1], consumer_after=now[1],
                     peak_bytes=int(ring.peak))
            ring.told = now
            ring.peak = ring.producer - ring.consumer
        if events:
            self.row("resolve", start_ns=int(begin + took // 5), events=int(events),
                     records=int(events * 0.4), chains=int(40 * self.random.random()))
        self.drained += events
        if self.now >= self.next_frame or self.drained - self.encoded > QUEUE_EVENTS:
            self._encode()

    def _episode(self, ring):
        latch = self.now
        self.now += self.random.randrange(30_000, 400_000)
        self.pass_()
        self.now += self.random.randrange(10_000, 80_000)
        length = self.now - latch
        self.row("pressure", ring=ring.name, slot=0, pause=self.random.choice(self.shape.pauses),
                 latch_ns=int(latch), release_ns=int(self.now),
                 processes=[{"pid": 40_000 + 3 * process,
                             "paused_ns": int(length * self.random.uniform(0.5, 1.0))}
                            for process in range(self.shape.processes)])

    def play(self):
        next_pass = self.now
        end = START_NS + int(self.shape.seconds * 1e9)
        while self.now < end:
            self._write(STEP_NS)
            self.now += STEP_NS
            self._backlog()
            latched = next((ring for ring in (self.stacks, *self.rings) if ring.is_latched()),
                           None)
            if latched:
                self._episode(latched)
            elif self.now >= next_pass:
                self.pass_()
                next_pass = self.now + self.shape.interval_ns
        self.pass_()
        self._encode()
        self.next_backlog = self.now
        self._backlog()
        return self.rows


def made(name, seconds=None):
    """The rows of a shape, as dicts."""
    shape = SHAPES[name]
    return Run(dataclasses.replace(shape, seconds=seconds or shape.seconds)).play()


def main():
    for row in made(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else None):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
