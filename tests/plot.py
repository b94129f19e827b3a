# SPDX-License-Identifier: LGPL-2.1-or-later
# plot.py - memtrack-plot on statistics of runs that never were: its summary, its pictures,
# and what it refuses
#
# The summary is compared with figures that are computed here, from the rows as they are.

import json
import os
import re
import resource
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib

SOURCE, BUILD = os.environ["srcdir"], os.environ["builddir"]
sys.path += [f"{SOURCE}/tests", f"{SOURCE}/tests/integration", f"{SOURCE}/report"]

import made_statistics  # noqa: E402
import memtrack_plot  # noqa: E402
import plot_statistics  # noqa: E402
import tap  # noqa: E402

PLOT = f"{BUILD}/report/memtrack-plot"
SECONDS = 300
# Of a shape, so that all tests together do not take long.
PLAYED_SECONDS = {"storm": 1.0, "steady": 0.5, "single": 2.0, "crowd": 1.0, "slow": 1.0}
PANELS = ("Ring fill", "Bytes per second", "How busy each stage is", "Events in flight",
          "Pauses of processes")
SVG = "{http://www.w3.org/2000/svg}"

RING_OPEN = {"type": "ring_open", "time_ns": 1000, "ring": "stacks", "bytes": 4096,
             "watermark_bytes": 3072}
RING = {"type": "ring", "time_ns": 3000, "ring": "stacks", "start_ns": 2000,
        "producer_before": 1000, "producer_after": 1200, "consumer_before": 0,
        "consumer_after": 1000, "peak_bytes": 1200}
PRESSURE = {"type": "pressure", "time_ns": 3000, "ring": "stacks", "slot": 0, "pause": "futex",
            "latch_ns": 2000, "release_ns": 3000, "processes": [{"pid": 7, "paused_ns": 900}]}
BACKLOG = {"type": "backlog", "time_ns": 3000, "drained": 10, "encoded": 5, "rss_bytes": 4096}
RESOLVE = {"type": "resolve", "time_ns": 3000, "start_ns": 2000, "events": 1, "records": 1,
           "chains": 1}
ENCODE = {"type": "encode", "time_ns": 3000, "wait_ns": 10, "encode_ns": 20, "write_ns": 30,
          "events": 1, "msgpack_bytes": 9, "zstd_bytes": 8}
KINDS = (RING_OPEN, RING, PRESSURE, BACKLOG, RESOLVE, ENCODE)
HOSTILE = (-1, 2**63, 10**400, 1.5, float("nan"), float("inf"), "12", None, True, [], {})


def write_rows(name, rows):
    with open(name, "w", encoding="ascii") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return name


def plot(*arguments, **options):
    return subprocess.run([PLOT, *arguments], capture_output=True, text=True, check=False,
                          timeout=SECONDS, **options)


def drawn(file, picture, **options):
    """The summary's lines; anything on stderr is an error."""
    done = plot(file, "-o", picture, **options)
    if done.returncode or done.stderr:
        raise RuntimeError(f"{file}: exit status {done.returncode}, {done.stderr}")
    return done.stdout.splitlines()


def png_problems(path):
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        yield f"{path} is no PNG"
        return
    at, pixels, kind = 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + length]
        if zlib.crc32(kind + body) != struct.unpack_from(">I", data, at + 8 + length)[0]:
            yield f"{path}: {kind} has another checksum"
        if kind == b"IHDR":
            width, height = struct.unpack_from(">II", body)
        pixels += body if kind == b"IDAT" else b""
        at += 12 + length
    if kind != b"IEND" or len(zlib.decompress(pixels)) < width * height:
        yield f"{path} is cut"
    if width < 800 or height < 800 or len(set(zlib.decompress(pixels))) < 10:
        yield f"{path}: {width} x {height}, or blank"


def svg_texts(path):
    tree = ElementTree.parse(path)
    return ["".join(element.itertext()).strip() for element in tree.iter(f"{SVG}text")]


def texts_missing(path, *wanted):
    texts = svg_texts(path)
    for text in wanted:
        if not any(text in found for found in texts):
            yield f"{path} has no {text!r} in {texts}"


def expected_line(name, rows):
    """What the summary has to say of a ring, as words."""
    opened = next(row for row in rows if row["type"] == "ring_open" and row["ring"] == name)
    passes = [row for row in rows if row["type"] == "ring" and row["ring"] == name]
    episodes = [row for row in rows if row["type"] == "pressure" and row["ring"] == name]
    through = passes[-1]["consumer_after"] - passes[0]["consumer_before"]
    written = passes[-1]["producer_after"] - passes[0]["producer_before"]
    took = sum(row["time_ns"] - row["start_ns"] for row in passes)
    peak = max(row["peak_bytes"] for row in passes)
    alive = passes[-1]["time_ns"] - opened["time_ns"]
    paused = sum(row["release_ns"] - row["latch_ns"] for row in episodes)
    return [name, f"{opened['bytes']:,}", f"{through:,}", f"{peak:,}",
            f"{100 * peak / opened['bytes']:.1f}", "%", f"{len(passes):,}",
            f"{written / alive * 1e3:,.1f}", f"{through / took * 1e3:,.1f}", str(len(episodes)),
            f"{paused / 1e6:,.3f}"]


def summary(shape):
    rows = made_statistics.made(shape, PLAYED_SECONDS[shape])
    lines = [line.split() for line in drawn(write_rows(f"{shape}.json", rows), f"{shape}.png")]
    if lines[0][:2] != [f"{len(rows):,}", "rows"]:
        yield f"{len(rows)} rows: {lines[0]}"
    names = list(dict.fromkeys(row["ring"] for row in rows if row["type"] == "ring"))
    for name in names:
        expected = expected_line(name, rows)
        if expected not in lines:
            yield f"no {expected} in {lines}"
    found = [line[0] for line in lines[lines.index([]) + 2:]]
    slots = sorted(int(name.partition(":")[2]) for name in names if ":" in name)
    if found != ["stacks", "life", *(f"events:{slot}" for slot in slots)]:
        yield f"the rings are {found}"
    backlog = [row for row in rows if row["type"] == "backlog"]
    in_flight = max(row["drained"] - row["encoded"] for row in backlog)
    if not any(f"at most {in_flight:,} in flight" in " ".join(line) for line in lines):
        yield f"not {in_flight} in flight: {lines[:5]}"
    yield from png_problems(f"{shape}.png")


def panels(shape, *texts):
    drawn(f"{shape}.json", f"{shape}.svg")
    yield from texts_missing(f"{shape}.svg", *PANELS, "seconds since the first row", "encode",
                             *texts)


def short_of_rows(name, rows, *texts):
    for kind in ("png", "svg"):
        lines = drawn(write_rows(f"{name}.json", rows), f"{name}.{kind}")
        if lines[0] != f"{len(rows)} rows over 0.000 s":
            yield f"says {lines}"
    yield from png_problems(f"{name}.png")
    yield from texts_missing(f"{name}.svg", *PANELS, "no process was paused", *texts)


def cut():
    """In the middle of a line, the rest is drawn; behind one, or before its end, nothing is
    missing."""
    rows = [RING_OPEN, RING, PRESSURE]
    whole = "".join(f"{json.dumps(row)}\n" for row in rows)
    start = len(whole) - len(json.dumps(PRESSURE)) - 1
    write_rows("less.json", rows[:2])
    less, more = drawn("less.json", "less.png"), drawn(write_rows("more.json", rows), "more.png")
    for length in (*range(start, len(whole), 40), len(whole) - 2, len(whole) - 1, len(whole)):
        with open("cut.json", "w", encoding="ascii") as file:
            file.write(whole[:length])
        done = plot("cut.json", "-o", "cut.svg")
        complete = length >= len(whole) - 1
        if done.returncode or done.stdout.splitlines() != (more if complete else less):
            yield f"after {length}: exit status {done.returncode}, {done.stdout}{done.stderr}"
        said = "" if complete or length == start else \
            "memtrack-plot: 'cut.json' is cut in line 3, which is left out\n"
        if done.stderr != said:
            yield f"after {length}: says {done.stderr!r}"


def unknown():
    rows = [{"type": "weather", "time_ns": "fine"}, *({**row, "more": "x"} for row in KINDS)]
    known = drawn(write_rows("known.json", KINDS), "known.svg")
    lines = drawn(write_rows("unknown.json", rows), "unknown.svg")
    if lines[1] != "1 rows of other kinds are skipped" or lines[2:] != known[1:]:
        yield f"{lines}, not {known}"


def deterministic():
    """Whatever the surroundings are."""
    os.mkdir("odd")
    with open("odd/matplotlibrc", "w", encoding="ascii") as file:
        file.write("lines.linewidth: 9\nfont.size: 30\n")
    env = {**os.environ, "MPLBACKEND": "TkAgg", "HOME": "/dev/null", "TZ": "Asia/Tokyo"}
    for kind in ("png", "svg"):
        drawn("crowd.json", f"one.{kind}")
        drawn("../crowd.json", f"../other.{kind}", cwd="odd", env=env)
        with open(f"one.{kind}", "rb") as one, open(f"other.{kind}", "rb") as other:
            if one.read() != other.read():
                yield f"two {kind} of one file differ"


def bins():
    """Nothing is lost between rows and bins, and a peak is where it was."""
    statistics, _ = plot_statistics.read_statistics("storm.json")
    made = memtrack_plot.Bins(*plot_statistics.time_span(statistics))
    rings = list(statistics.rings.values())
    passes = memtrack_plot.Passes(made, rings)
    if (passes.busy > made.lengths + 1).any():
        yield "passes take longer than there is time"
    for ring in rings:
        series = memtrack_plot.ring_series(made, passes, ring)
        for what, values, before, after in (("written", series.written, 2, 3),
                                            ("drained", series.drained, 4, 5)):
            moved = ring.rows[after][-1] - ring.rows[before][0]
            if abs(values.sum() - moved) > 1:
                yield f"{ring.name}: {values.sum()} bytes {what}, not {moved}"
        peak = max(ring.rows[6])
        at = made.of(made.times([ring.rows[1][ring.rows[6].index(peak)]]))[0]
        if series.peak[at] != peak:
            yield f"{ring.name}: {series.peak[at]} in bin {at}, not {peak}"
        if (series.greatest > ring.bytes).any() or (series.least < 0).any():
            yield f"{ring.name} is drawn beyond its size"


def between_passes():
    """Writing takes all of the time between two passes, also where that is long."""
    second, passes = 1_000_000_000, 10
    rows = [RING_OPEN]
    for i in range(passes):
        rows.append({**RING, "start_ns": (i + 1) * second, "time_ns": (i + 1) * second + 1000,
                     "producer_before": 3000 * i, "producer_after": 3000 * (i + 1),
                     "consumer_before": 3000 * i, "consumer_after": 3000 * (i + 1),
                     "peak_bytes": 3000})
    statistics, _ = plot_statistics.read_statistics(write_rows("seldom.json", rows))
    made = memtrack_plot.Bins(*plot_statistics.time_span(statistics))
    rings = list(statistics.rings.values())
    series = memtrack_plot.ring_series(made, memtrack_plot.Passes(made, rings), rings[0])
    rates = series.written[:-1] * second / made.width
    if rates.min() < 2900 or rates.max() > 3100:
        yield f"between {rates.min()} and {rates.max()} bytes a second, not 3000"
    # It was full right before each pass.
    levels = series.greatest[made.of(made.times(rings[0].rows[0]))]
    if levels.min() < 2900 or levels.max() > 3000:
        yield f"the ring is filled to {levels}, not to 3000"


def refused(status, words, *arguments, **options):
    done = plot(*arguments, **options)
    if done.returncode != status:
        yield f"exit status {done.returncode}, not {status}"
    if done.stderr.count("\n") != 1 or not done.stderr.startswith("memtrack-plot: ") or \
       words not in done.stderr or done.stdout:
        yield f"says {done.stderr!r}, prints {done.stdout!r}, expected {words!r}"
    if os.path.exists("none.png"):
        os.unlink("none.png")
        yield "a picture was made"


def hostile():
    """Each number of each kind of row, with each value that is none."""
    for kind in KINDS:
        for field, value in kind.items():
            if not isinstance(value, int) or field in ("slot", "time_ns") and kind is PRESSURE:
                continue
            for bad in HOSTILE:
                write_rows("bad.json", [{**kind, field: bad}])
                yield from in_process("bad.json", f"line 1: {field} is ")
            write_rows("bad.json", [RING_OPEN, {k: v for k, v in kind.items() if k != field}])
            yield from in_process("bad.json", f"line 2: {field} is missing")


def in_process(path, words):
    """As refused(), where starting the program each time takes too long."""
    try:
        plot_statistics.read_statistics(path)
        yield f"not refused: {words}"
    except plot_statistics.Refusal as refusal:
        if words not in str(refusal) or "\n" in str(refusal) or len(str(refusal)) > 200:
            yield f"says {str(refusal)!r}, expected {words!r}"


def contradictions():
    for words, *rows in (
            ("start_ns is greater than time_ns", {**RING, "start_ns": 3001}),
            ("producer_before is greater", {**RING, "producer_before": 1201}),
            ("consumer_after is greater", {**RING, "consumer_after": 1201}),
            ("peak_bytes is greater", RING_OPEN, {**RING, "peak_bytes": 4097}),
            ("start_ns is smaller", RING, RING),
            ("producer_before is smaller", RING, {**RING, "start_ns": 3000, "time_ns": 4000}),
            ("watermark_bytes is greater", {**RING_OPEN, "watermark_bytes": 4097}),
            ("bytes is 0", {**RING_OPEN, "bytes": 0}),
            ("not the name of a ring", {**RING_OPEN, "ring": "no\nname"}),
            ("not the name of a ring", {**RING_OPEN, "ring": 5}),
            ("latch_ns is greater", {**PRESSURE, "latch_ns": 3001}),
            ("pause is 'x'", {**PRESSURE, "pause": "x"}),
            ("not a list", {**PRESSURE, "processes": 3}),
            ("not a list", {**PRESSURE, "processes": [3]}),
            ("pid is missing", {**PRESSURE, "processes": [{"paused_ns": 3}]}),
            ("more than there was time", {**ENCODE, "encode_ns": 3000}),
            ('no object with a "type"', {"time_ns": 3}),
            ('no object with a "type"', ["ring"])):
        yield from in_process(write_rows("bad.json", rows), words)


def far_apart():
    """The greatest numbers that are allowed are no error, nor do they take for ever."""
    most = 2**63 - 1
    rows = [{**RING_OPEN, "bytes": most, "time_ns": 0}, {**RING, "time_ns": most},
            {**PRESSURE, "release_ns": most, "processes": [{"pid": most, "paused_ns": most}]},
            {**BACKLOG, "drained": most, "encoded": 0, "rss_bytes": most},
            {**BACKLOG, "drained": 0, "encoded": most, "rss_bytes": 0}, RESOLVE,
            {**ENCODE, "time_ns": most, "encode_ns": most - 100}]
    drawn(write_rows("far.json", rows), "far.png")
    yield from png_problems("far.png")


def bad_files(results):
    for name, content in (("text", b"hello\n"), ("short-text", b"hello"), ("zeros", bytes(5000)),
                          ("binary", bytes(range(256)) * 99), ("deep", b"[" * 99999 + b"\n"),
                          ("split", b'{"type": "x"\n{"type": "x"}\n')):
        with open(name, "wb") as file:
            file.write(content)
        results.attempt(f"a file that is {name}", refused, 1, "not JSON", name, "-o", "none.png")
    os.mkfifo("fifo")
    for path, words in (("missing", "cannot read 'missing': No such file"), (".", "cannot read"),
                        ("fifo", "not a regular file"), ("/dev/zero", "not a regular file"),
                        ("a\nb", "cannot read 'a\\nb'")):
        results.attempt(f"as a file {path!r}", refused, 1, words, path, "-o", "none.png")


def bad_usage(results):
    for words, *arguments in (("without a FILE",), ("without -o", "storm.json"),
                              ("--odd", "storm.json", "--odd"), ("-o", "storm.json", "-o"),
                              (".png or .svg", "storm.json", "-o", "none.jpg"),
                              (".png or .svg", "storm.json", "-o", "png"),
                              ("two", "one", "two", "-o", "none.png")):
        results.attempt(f"usage {arguments}", refused, 2, words, *arguments)
    for path, words in (("no/x.png", "cannot write 'no/x.png': No such"),
                        ("full.png", "cannot write 'full.png': No space"),
                        ("folder.svg", "cannot write 'folder.svg': Is a directory")):
        results.attempt(f"output to {path}", refused, 1, words, "known.json", "-o", path)


def no_matplotlib():
    os.mkdir("without")
    with open("without/matplotlib.py", "w", encoding="ascii") as file:
        file.write('raise ImportError("No module named \'matplotlib\'")\n')
    yield from refused(1, "install python3-matplotlib", "storm.json", "-o", "none.png",
                       env={**os.environ, "PYTHONPATH": os.path.abspath("without")})
    for option, words in (("--help", "memtrack-plot FILE -o"),
                          ("--version", "^memtrack-plot [0-9]")):
        done = plot(option, env={**os.environ, "PYTHONPATH": os.path.abspath("without")})
        if done.returncode or not re.search(words, done.stdout) or done.stderr:
            yield f"{option}: {done}"


def full_device():
    for arguments in (("known.json", "-o", "x.png"), ("--help",)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PLOT, *arguments], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        if done.returncode != 1 or done.stderr.count(b"\n") != 1:
            yield f"{arguments}: exit status {done.returncode}, {done.stderr!r}"


def short_of_room():
    """A picture that could not be written whole is not left behind."""
    few_bytes = (1000, 1000)
    done = subprocess.run([PLOT, "known.json", "-o", "part.png"], stderr=subprocess.PIPE,
                          check=False, preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_FSIZE, few_bytes))
    if done.returncode != 1 or b"cannot write 'part.png': File too large" not in done.stderr:
        yield f"exit status {done.returncode}, {done.stderr!r}"
    if os.path.exists("part.png"):
        yield "a part is left"


def closed_output():
    for arguments in (("known.json", "-o", "x.png"), ("--help",)):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", PLOT, *arguments],
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 1 or done.stderr.count(b"\n") != 1:
            yield f"{arguments}: exit status {done.returncode}, {done.stderr!r}"


def main():
    results = tap.Tap()
    for shape in PLAYED_SECONDS:
        results.attempt(f"summary and picture, {shape}", summary, shape)
    results.attempt("panels, with pauses", panels, "storm", "pid 40000", "by futex",
                    "fullest of 16 events rings", "pressure episode", "watermark, 75 %")
    results.attempt("panels, without", panels, "single", "no process was paused", "events:0")
    results.attempt("panels, of a crowd", panels, "crowd", "fullest of 64 events rings",
                    "41 others", "by signal")
    results.attempt("an empty file", short_of_rows, "empty", [], "no rows of rings")
    results.attempt("a file with ring_open only", short_of_rows, "opened", [RING_OPEN])
    results.attempt("a file that is cut", cut)
    results.attempt("rows and fields of unknown kinds", unknown)
    results.attempt("the same picture again", deterministic)
    results.attempt("bins", bins)
    results.attempt("what is written between passes", between_passes)
    results.attempt("values that are no numbers", hostile)
    results.attempt("values that contradict each other", contradictions)
    results.attempt("values that are far apart", far_apart)
    results.attempt("as a program", refused, 1, "line 1: encoded is missing",
                    write_rows("short.json", [{"type": "backlog", "time_ns": 1, "drained": 1}]),
                    "-o", "none.png")
    bad_files(results)
    os.mkdir("folder.svg")
    os.symlink("/dev/full", "full.png")
    bad_usage(results)
    results.attempt("no matplotlib", no_matplotlib)
    results.attempt("standard output to a full device", full_device)
    results.attempt("no room for the picture", short_of_room)
    results.attempt("standard output that is closed", closed_output)
    results.plan()


main()
