#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# memtrack_plot.py - the statistics of a run as a picture, and as a table for each ring
#
# Rows are read into columns (plot_statistics.py), columns are put into bins of time, bins
# are drawn: the picture of a long run costs what reading its file costs.  The same file
# gives the same picture.

import argparse
import dataclasses
import errno
import io
import logging
import os
import sys

# In a build the module lies beside this file.
sys.path.append("@pkgdatadir@")
sys.dont_write_bytecode = True
# Whatever the user's is: a picture is drawn, and nothing shown.
os.environ["MPLBACKEND"] = "Agg"
# It tells of caches and fonts, which is nobody's business here.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
try:
    import matplotlib
    import numpy as np
    from matplotlib import collections, figure, ticker
    MISSING = None
except ImportError as error:
    MISSING = error
from plot_statistics import (PAUSES, Refusal, printable, read_statistics, ring_order, summarize,
                             time_span)

VERSION = "@VERSION@"
PROGRAM = "memtrack-plot"
FAILED = 1
WRONG_USAGE = 2

BINS = 800
BINS_LEAST = 60
BIN_NS = 5_000_000  # not finer than that, if that gives BINS_LEAST
RINGS_APART = 4     # as many rings of events are drawn one by one
LANES = 24          # as many pids are
BYTES_LEAST = 0.01  # of a bin; what is less is a sum's rounding
PASS_GAP_NS = 100_000  # rows that are closer are of one pass


# Bins --------------------------------------------------------------------------------------


class Bins:
    """The time axis: ns since the first thing that is known of, in bins of a round width."""

    def __init__(self, first, last):
        span = last - first or 1_000_000_000
        self.first = first
        self.span = span
        self.width = self._round(max(span / BINS, min(BIN_NS, span / BINS_LEAST)))
        self.count = int(np.ceil(span / self.width))
        self.edges = np.arange(self.count + 1) * self.width
        # What of a bin there is: the last one may go beyond the end.
        self.lengths = np.diff(np.minimum(self.edges, span))

    @staticmethod
    def _round(least):
        power = 10 ** int(np.floor(np.log10(least)))
        return next(float(power * digit) for digit in (1, 2, 5, 10) if power * digit >= least)

    def times(self, column):
        return (np.asarray(column, dtype=np.int64) - self.first).astype(float)

    def of(self, times):
        return np.clip((times // self.width).astype(int), 0, self.count - 1)

    def sums(self, begin, end, amount):
        """What each bin has of amounts that are spread evenly between two times each."""
        one, other = self.of(begin), self.of(end)
        inside = one == other
        ret = np.bincount(one[inside], amount[inside], self.count).astype(float)
        if not inside.all():
            begin, end, amount = begin[~inside], end[~inside], amount[~inside]
            slope = amount / (end - begin)
            ret += np.diff(self._until(begin, slope) - self._until(end, slope))
        return np.maximum(ret, 0)

    def _until(self, times, slope):
        """At each edge, the sum of slope * (edge - time) over the times before it."""
        order = np.argsort(times, kind="stable")
        slopes = np.concatenate(([0], np.cumsum(slope[order])))
        moments = np.concatenate(([0], np.cumsum((slope * times)[order])))
        before = np.searchsorted(times[order], self.edges, "right")
        return slopes[before] * self.edges - moments[before]

    def covered(self, begin, end):
        """The ns of each bin that lie between two times."""
        return self.sums(begin, end, end - begin)

    def most(self, begin, end, values):
        """The greatest value of those that are valid in a bin; NaN without."""
        ret = np.full(self.count, -np.inf)
        one, other = self.of(begin), self.of(end)
        np.maximum.at(ret, one, values)
        np.maximum.at(ret, other, values)
        for i in np.flatnonzero(other - one > 1):
            inside = ret[one[i] + 1:other[i]]
            np.maximum(inside, values[i], out=inside)
        return np.where(np.isinf(ret), np.nan, ret)

    def levels(self, times, values):
        """(least, greatest, mean) in each bin of what goes straight from point to point, and
        is 0 before the first."""
        points = np.union1d(times, self.edges)
        at = np.interp(points, times, values, left=0)
        edges = np.searchsorted(points, self.edges)
        area = np.concatenate(([0], np.cumsum((at[1:] + at[:-1]) / 2 * np.diff(points))))
        last = at[edges[1:]]
        return (np.minimum(np.minimum.reduceat(at, edges)[:-1], last),
                np.maximum(np.maximum.reduceat(at, edges)[:-1], last),
                np.diff(area[edges]) / self.width)

    def held(self, times, values):
        """The greatest in each bin of values that are so until the next is known."""
        return self.most(times, np.concatenate((times[1:], times[-1:])), values)


def merged(begin, end, gap=0):
    """Intervals without overlaps, and without gaps of up to gap."""
    if not len(begin):
        return begin, end
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    starts = np.flatnonzero(np.concatenate(([True], begin[1:] > reach[:-1] + gap)))
    return begin[starts], reach[np.concatenate((starts[1:] - 1, [-1]))]


@dataclasses.dataclass
class RingSeries:
    """A ring in bins; levels in bytes."""
    ring: object
    written: object
    drained: object
    least: object
    greatest: object
    mean: object
    peak: object


class Passes:
    """When the collector looked at the rings, as far as the rows tell: what moved nothing has
    no row.  A ring without a row in a pass did not move before it, either."""

    def __init__(self, bins, rings):
        begin = np.concatenate([bins.times(ring.rows[0]) for ring in rings] or [np.zeros(0)])
        end = np.concatenate([bins.times(ring.rows[1]) for ring in rings] or [np.zeros(0)])
        self.busy = bins.covered(*merged(begin, end))
        self.begin, self.end = merged(begin, end, PASS_GAP_NS)
        between = self.begin[1:] - self.end[:-1]
        # After a rest of the whole program the last pass was not as long ago as the last row.
        self.horizon = 2 * np.percentile(between, 90) if len(between) else np.inf

    def since(self, begin, end):
        """For each row of a ring, the time from which on what it tells of has happened."""
        before = np.concatenate(([0], end[:-1]))
        last = np.searchsorted(self.begin, begin, "right") - 2
        passed = np.where(last >= 0, self.end[np.maximum(last, 0)], 0)
        return np.minimum(begin, np.maximum.reduce([before, passed, begin - self.horizon]))


def ring_series(bins, passes, ring):
    begin, end = bins.times(ring.rows[0]), bins.times(ring.rows[1])
    p0, p1, c0, c1, peak = (np.asarray(c, dtype=np.int64) for c in ring.rows[2:])
    since = passes.since(begin, end)
    before = np.concatenate(([0], (p1 - c1)[:-1]))
    # What is new came at any time since the row before, and was read in the pass.
    new = (p1 - np.concatenate((p0[:1], p1[:-1]))).astype(float)
    share = (begin - since) / np.maximum(end - since, 1)
    found = np.minimum(before + new * share, np.maximum(peak, before))
    least, greatest, mean = bins.levels(
        np.stack((since, begin, end), 1).ravel(),
        np.stack((before, found, p1 - c1), 1).ravel().astype(float))
    written = bins.sums(since, end, new)
    return RingSeries(ring, written, bins.sums(begin, end, (c1 - c0).astype(float)), least,
                      greatest, mean, bins.most(since, end, peak.astype(float)))


# Drawing -----------------------------------------------------------------------------------

WIDTH_INCHES = 14
LEFT_INCHES, RIGHT_INCHES, TOP_INCHES, BOTTOM_INCHES, GAP_INCHES = 1.15, 2.45, 0.75, 0.6, 0.42
LANE_INCHES = 0.19
COLOURS = {"stacks": "#1f77b4", "life": "#2ca02c", "fullest": "#d95f02", "mean": "#8c564b",
           "written": "#1f77b4", "drained": "#d95f02", "flight": "#1f77b4", "rss": "#9467bd",
           "futex": "#17a2a2", "signal": "#c2185b", "episode": "#d62728"}
APART_COLOURS = ("#d95f02", "#e6ab02", "#8c564b", "#7570b3")
STAGES = (("drain", "#1f77b4"), ("resolve", "#2ca02c"), ("encode", "#d95f02"),
          ("write", "#9467bd"))
SETTINGS = {"font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10,
            "axes.titlelocation": "left", "axes.titlepad": 5, "axes.grid": True,
            "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
            "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "legend.frameon": False,
            "legend.fontsize": 8.5, "svg.fonttype": "none", "svg.hashsalt": PROGRAM}


class Picture:
    """Panels over one axis of time, which is in seconds."""

    def __init__(self, title, bins, heights):
        total = sum(heights) + TOP_INCHES + BOTTOM_INCHES + GAP_INCHES * (len(heights) - 1)
        self.bins = bins
        self.seconds = bins.edges / 1e9
        self.figure = figure.Figure(figsize=(WIDTH_INCHES, total), dpi=100, facecolor="white")
        self.figure.text(LEFT_INCHES / WIDTH_INCHES, 1 - 0.22 / total, title, fontsize=12,
                         fontweight="bold", va="top", parse_math=False)
        self.panels = []
        top = total - TOP_INCHES
        for height in heights:
            width = WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES
            self.panels.append(self.figure.add_axes(
                (LEFT_INCHES / WIDTH_INCHES, (top - height) / total, width / WIDTH_INCHES,
                 height / total), sharex=self.panels[0] if self.panels else None))
            top -= height + GAP_INCHES
        for panel in self.panels[:-1]:
            panel.tick_params(labelbottom=False)
        self.panels[0].set_xlim(0, bins.span / 1e9)
        self.panels[0].xaxis.set_major_locator(ticker.MaxNLocator(12, steps=(1, 2, 5, 10)))
        self.panels[-1].set_xlabel("seconds since the first row")

    def stairs(self, panel, values, **how):
        return panel.stairs(values, self.seconds, **{"linewidth": 1.3, **how})

    def nothing(self, panel, what):
        panel.set_yticks([])
        panel.text(0.5, 0.5, what, transform=panel.transAxes, ha="center", va="center",
                   color="#777777")

    def spans(self, begin, end):
        """Intervals as (begin, length) in seconds: none is too short to be seen, and what is
        too close to be told apart is one."""
        least = self.bins.span / 2000
        begin, end = merged(begin, np.maximum(end, begin + least), least / 2)
        return list(zip(begin / 1e9, (end - begin) / 1e9))

    @staticmethod
    def legend(panel, offset=1.01, **how):
        panel.legend(loc="upper left", bbox_to_anchor=(offset, 1.04), borderaxespad=0, **how)

    def save(self, kind):
        """The picture's bytes; nothing in them says when they were made."""
        file = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        self.figure.savefig(file, format=kind, metadata=metadata)
        return file.getvalue()


def combined(series):
    """The fullest of some rings and all of them, in percent of their sizes."""
    size = sum(s.ring.bytes for s in series)
    share = [100 / s.ring.bytes for s in series]
    peaks = np.array([s.peak * f for s, f in zip(series, share)])
    peak = np.where(np.isnan(peaks), -np.inf, peaks).max(axis=0)
    return (np.max([s.least * f for s, f in zip(series, share)], axis=0),
            np.max([s.greatest * f for s, f in zip(series, share)], axis=0),
            np.where(np.isinf(peak), np.nan, peak),
            100 * sum(s.mean for s in series) / size)


def draw_fill(picture, panel, series, episodes):
    panel.set_title("Ring fill, of each ring's size (line: true peak, as its writers saw it;"
                    " shade: what the collector saw)")
    known = [s for s in series if s.ring.bytes and s.ring.rows[0]]
    if not known:
        picture.nothing(panel, "no rows of rings")
        return
    events = [s for s in known if ":" in s.ring.name]
    apart = len(events) <= RINGS_APART
    colours = iter(APART_COLOURS)
    for s in known:
        if s in events and not apart:
            continue
        colour = next(colours) if s in events else COLOURS.get(s.ring.name, "#555555")
        draw_level(picture, panel, *(v * 100 / s.ring.bytes for v in
                                     (s.least, s.greatest, s.peak)), colour, s.ring.name)
    if not apart:
        least, greatest, peak, mean = combined(events)
        draw_level(picture, panel, least, greatest, peak, COLOURS["fullest"],
                   f"fullest of {len(events):,} events rings")
        picture.stairs(panel, mean, color=COLOURS["mean"], baseline=None, linestyle="--",
                       label=f"all {len(events):,} events rings, mean")
    # Room for the strip of episodes above 100 %; what is low all the time is drawn larger.
    most = max(np.nanmax(100 * s.peak / s.ring.bytes) for s in known)
    top = 108 if most > 50 or episodes else max(1, 1.4 * most)
    for percent in sorted({round(100 * s.ring.watermark / s.ring.bytes, 1) for s in known}):
        if percent < top:
            panel.axhline(percent, color="#888888", linewidth=0.9, linestyle=":",
                          label=f"watermark, {percent:g} %")
    if episodes:
        begin = picture.bins.times([episode.latch for episode in episodes])
        end = picture.bins.times([episode.release for episode in episodes])
        panel.broken_barh(picture.spans(begin, end), (102, 6), color=COLOURS["episode"],
                          label="pressure episode")
    panel.set_ylim(0, top)
    if top == 108:
        panel.set_yticks(range(0, 101, 25))
    panel.yaxis.set_major_formatter("{x:g} %")
    picture.legend(panel)


def draw_level(picture, panel, least, greatest, peak, colour, label):
    panel.stairs(greatest, picture.seconds, baseline=least, fill=True, color=colour, alpha=0.18,
                 linewidth=0)
    picture.stairs(panel, peak, color=colour, baseline=None, label=label)


def draw_rates(picture, panel, series, busy):
    panel.set_title("Bytes per second, all rings together")
    if not series:
        picture.nothing(panel, "no rows of rings")
        return
    # Where there was nothing there is no point on a logarithmic axis.
    written = sum(s.written for s in series)
    written = np.where(written > BYTES_LEAST, written, 0) / picture.bins.lengths * 1e9
    drained = sum(s.drained for s in series)
    drained = np.where(busy > 0, drained, 0) / np.maximum(busy, 1) * 1e9
    for values, key, label in ((written, "written", "written"),
                               (drained, "drained", "drained, while\nthe drain is busy")):
        picture.stairs(panel, np.where(values > 0, values, np.nan), baseline=None,
                       color=COLOURS[key], label=label)
    some = np.concatenate((written[written > 0], drained[drained > 0]))
    if len(some):
        panel.set_yscale("log")
        panel.set_ylim(10 ** np.floor(np.log10(some.min())), 10 ** np.ceil(np.log10(some.max())))
        panel.yaxis.set_major_formatter(ticker.EngFormatter("B/s"))
        panel.yaxis.set_minor_formatter(ticker.NullFormatter())
    picture.legend(panel)


def stage_shares(picture, statistics, busy):
    """{stage: share of each bin}, for the stages that there are rows of."""
    bins = picture.bins
    ret = {"drain": busy} if busy.any() else {}
    if statistics.resolve[0]:
        ret["resolve"] = bins.covered(bins.times(statistics.resolve[0]),
                                      bins.times(statistics.resolve[1]))
    if statistics.encode[0]:
        end = bins.times(statistics.encode[0])
        encode, write = (np.asarray(c, dtype=float) for c in statistics.encode[2:4])
        ret["encode"] = bins.covered(end - write - encode, end - write)
        ret["write"] = bins.covered(end - write, end)
    return {stage: np.clip(ns / bins.lengths, 0, 1) for stage, ns in ret.items()}


def draw_stages(picture, panel, statistics, busy):
    width = picture.bins.width / 1e6
    panel.set_title(f"How busy each stage is, as a share of each {width:,g} ms"
                    " (full height: all of the time)")
    shares = stage_shares(picture, statistics, busy)
    if not shares:
        picture.nothing(panel, "no rows of rings, resolve or encode")
        return
    ticks = []
    for lane, (stage, colour) in enumerate(reversed(STAGES)):
        share = shares.get(stage)
        ticks.append(stage)
        panel.axhline(lane, color="#999999", linewidth=0.6)
        if share is None:
            panel.text(0.5, lane + 0.4, "no rows", color="#777777", ha="center", va="center",
                       transform=panel.get_yaxis_transform())
            continue
        panel.stairs(lane + 0.85 * share, picture.seconds, baseline=lane, fill=True,
                     color=colour)
        mean = 100 * np.average(share, weights=picture.bins.lengths)
        panel.text(1.01, lane + 0.4, f"mean {mean:.1f} %, most {100 * share.max():.1f} %",
                   fontsize=8.5, va="center", transform=panel.get_yaxis_transform())
    panel.set_ylim(0, len(STAGES))
    panel.set_yticks([lane + 0.4 for lane in range(len(STAGES))], ticks)
    panel.tick_params(axis="y", length=0)
    panel.grid(False, axis="y")


def draw_backlog(picture, panel, backlog):
    panel.set_title("Events in flight (drained, not encoded yet), and the collector's memory")
    if not backlog[0]:
        picture.nothing(panel, "no rows of backlog")
        return
    times = picture.bins.times(backlog[0])
    in_flight = (np.asarray(backlog[1]) - np.asarray(backlog[2])).astype(float)
    in_flight = picture.bins.held(times, in_flight)
    panel.stairs(in_flight, picture.seconds, fill=True, color=COLOURS["flight"], alpha=0.25,
                 linewidth=0)
    picture.stairs(panel, in_flight, baseline=None, color=COLOURS["flight"],
                   label="events in flight\n(left axis)")
    panel.set_ylim(min(0, np.nanmin(in_flight)), 1.1 * max(1, np.nanmax(in_flight)))
    panel.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    panel.tick_params(axis="y", colors=COLOURS["flight"])
    other = panel.twinx()
    rss = picture.bins.held(times, np.asarray(backlog[3]) / 2**20)
    picture.stairs(other, rss, baseline=None, color=COLOURS["rss"],
                   label="RSS (right axis)")
    other.set_ylim(0, 1.15 * max(1, np.nanmax(rss)))
    other.yaxis.set_major_formatter("{x:,.0f} MiB")
    other.tick_params(axis="y", colors=COLOURS["rss"], length=0)
    other.grid(False)
    lines = panel.get_legend_handles_labels(), other.get_legend_handles_labels()
    picture.legend(panel, 1.075, handles=lines[0][0] + lines[1][0],
                   labels=lines[0][1] + lines[1][1])


@dataclasses.dataclass
class Lane:
    pid: int | None  # None: the rest
    name: str
    paused: int = 0
    spans: dict = dataclasses.field(default_factory=lambda: {pause: [] for pause in PAUSES})

    def add(self, episode, paused):
        # Who was paused is so to the end; a thread may find out a little before the latch.
        self.paused += paused
        self.spans[episode.pause].append((max(episode.latch, episode.release - paused),
                                          episode.release))


def pause_lanes(episodes):
    """A lane for each pid; of many, for those that were paused longest, and one for the rest."""
    total = {}
    for episode in episodes:
        for pid, paused in episode.processes:
            total[pid] = total.get(pid, 0) + paused
    shown = sorted(total, key=lambda pid: (-total[pid], pid))
    shown = shown if len(shown) <= LANES else shown[:LANES - 1]
    lanes = {pid: Lane(pid, f"pid {pid}") for pid in sorted(shown)}
    rest = Lane(None, f"{len(total) - len(shown):,} others")
    for episode in episodes:
        for pid, paused in episode.processes:
            lanes.get(pid, rest).add(episode, paused)
    return [*lanes.values(), *([rest] if len(total) > len(shown) else [])]


def draw_pauses(picture, panel, lanes, episodes):
    title = "Pauses of processes, how long in all"
    if lanes and lanes[-1].pid is None:
        title += f"; one by one the {len(lanes) - 1} that were paused longest"
    panel.set_title(title)
    if not lanes:
        picture.nothing(panel, "no process was paused")
        return
    for y, lane in enumerate(lanes):
        for pause, spans in lane.spans.items():
            if spans:
                begin, end = (picture.bins.times(column) for column in zip(*spans))
                panel.broken_barh(picture.spans(begin, end), (y - 0.36, 0.72), linewidth=0,
                                  color=COLOURS[pause])
        panel.text(1.01, y, f"{lane.paused / 1e6:,.1f} ms", fontsize=8, va="center",
                   transform=panel.get_yaxis_transform())
    panel.set_yticks(range(len(lanes)), [lane.name for lane in lanes], fontsize=8)
    panel.set_ylim(len(lanes) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)
    used = [pause for pause in PAUSES if any(episode.pause == pause for episode in episodes)]
    handles = [collections.PolyCollection([], facecolor=COLOURS[pause]) for pause in used]
    picture.legend(panel, 1.075, handles=handles, labels=[f"by {pause}" for pause in used])


def draw(statistics, name, kind):
    """The picture's bytes."""
    first, last = time_span(statistics)
    bins = Bins(first, last)
    rings = sorted(statistics.rings.values(), key=ring_order)
    rings = [ring for ring in rings if ring.rows[0]]
    passes = Passes(bins, rings)
    series = [ring_series(bins, passes, ring) for ring in rings]
    episodes, lanes = statistics.episodes, pause_lanes(statistics.episodes)
    title = (f"{name}: {(last - first) / 1e9:,.3f} s, {len(rings):,} rings, "
             f"{len(episodes):,} pressure episodes")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        picture = Picture(title, bins, (2.9, 2.0, 2.1, 1.7, max(0.6, LANE_INCHES * len(lanes))))
        fill, rates, stages, backlog, pauses = picture.panels
        draw_fill(picture, fill, series, episodes)
        draw_rates(picture, rates, series, passes.busy)
        draw_stages(picture, stages, statistics, passes.busy)
        draw_backlog(picture, backlog, statistics.backlog)
        draw_pauses(picture, pauses, lanes, episodes)
        return picture.save(kind)


# Command -----------------------------------------------------------------------------------


class WrongUsage(Refusal):
    """What was asked for makes no sense."""


class Parser(argparse.ArgumentParser):
    """What is wrong is said in one line."""

    def error(self, message):
        raise WrongUsage(f"{printable(message)}; try {PROGRAM} --help")


def parse_arguments(arguments):
    parser = Parser(prog=PROGRAM, allow_abbrev=False, add_help=False,
                    usage="%(prog)s FILE -o PICTURE.png|svg",
                    description="Draws the statistics of a run (memtrack-run --stats=FILE), and"
                    " prints a summary of each ring.")
    parser.add_argument("file", metavar="FILE", nargs="?", help="the statistics")
    parser.add_argument("-o", "--output", metavar="PICTURE", help="what is written, *.png or *.svg")
    parser.add_argument("-h", "--help", action="store_true", help="print this")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    options = parser.parse_args(arguments)
    if options.help:
        return options, parser.format_help()
    if options.version:
        return options, f"{PROGRAM} {VERSION}\n"
    if options.file is None:
        parser.error("without a FILE there is nothing to draw")
    if options.output is None:
        parser.error("without -o PICTURE.png or PICTURE.svg there is nowhere to draw to")
    if not options.output.endswith((".png", ".svg")):
        parser.error(f"-o {options.output}: the name of a picture ends in .png or .svg")
    return options, None


def print_out(text):
    if sys.stdout is None:
        raise Refusal(f"cannot write to standard output: {os.strerror(errno.EBADF)}")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Or the interpreter tries again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Refusal(f"cannot write to standard output: {error.strerror}") from None


def write_picture(path, picture):
    file = None
    try:
        with open(path, "wb") as file:
            file.write(picture)
    except OSError as error:
        # A part of a picture is none.
        if file is not None and os.path.isfile(path):
            os.unlink(path)
        raise Refusal(f"cannot write '{printable(path)}': {error.strerror}") from None


def run(arguments):
    options, text = parse_arguments(arguments)
    if text is not None:
        print_out(text)
        return
    if MISSING:
        raise Refusal(f"cannot draw without matplotlib ({MISSING}); install python3-matplotlib")
    statistics, cut_line = read_statistics(options.file)
    if cut_line:
        print(f"{PROGRAM}: '{printable(options.file)}' is cut in line {cut_line}, which is left"
              " out", file=sys.stderr)
    name = printable(os.path.basename(options.file))
    write_picture(options.output, draw(statistics, name[:80], options.output[-3:]))
    print_out("".join(f"{line}\n" for line in summarize(statistics)))


def main():
    try:
        run(sys.argv[1:])
    except Refusal as refusal:
        print(f"{PROGRAM}: {refusal}", file=sys.stderr)
        return WRONG_USAGE if isinstance(refusal, WrongUsage) else FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
