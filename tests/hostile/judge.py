# SPDX-License-Identifier: LGPL-2.1-or-later
# judge.py - whether a run under memtrack was as it should be: problems, or none
#
# Used by hostile.py for the rows of cases.tab, and by the scenarios for what they run
# themselves.

import collections
import ctypes
import glob
import os
import re
import shlex
import signal

import chains
import ledger
import needs
import tracked

HERE = f"{tracked.BUILD}/tests/hostile"
SOURCES = f"{os.environ['srcdir']}/tests/hostile"
SHIM = f"{tracked.BUILD}/preload/.libs/libmemtrack-preload.so"
PLACES = {"srcdir": os.environ["srcdir"], "builddir": tracked.BUILD, "here": HERE, "shim": SHIM}
GOOD_STOPS = {"none", "end", "truncated", "bootstrap"}
NOT_TRACKED = re.compile(rb"^memtrack-\w+: not tracked: \d+ (.*)\n", re.MULTILINE)
PR_SET_CHILD_SUBREAPER = 36

Size = collections.namedtuple("Size", "size count freed leaf root", defaults=(None, None))


class Expectation:
    """The words of a row's last column, of which some are for one capture only."""

    def __init__(self, words="", capture=None):
        self.sizes = []
        self.not_tracked = []
        self.may_not_be_tracked = []
        self.stops = set(GOOD_STOPS)
        self.options = []
        self.flags = set()
        self.status = 0
        self.output = None
        self.unseen_frees = 0
        for word in shlex.split(words):
            only, colon, rest = word.partition(":")
            if not colon or only not in tracked.CAPTURES:
                self._read(*word.partition("=")[::2])
            elif capture in (None, only):
                self._read(*rest.partition("=")[::2])

    def _read(self, key, value):
        if key == "size":
            self.sizes.append(Size(int(value), 0, None))
        elif key in ("count", "freed"):
            self.sizes[-1] = self.sizes[-1]._replace(**{key: int(value)})
        elif key in ("leaf", "root"):
            self.sizes[-1] = self.sizes[-1]._replace(**{key: value})
        elif key == "not-tracked":
            self.not_tracked.append(value)
        elif key == "maybe-not-tracked":
            self.may_not_be_tracked.append(value)
        elif key == "stops":
            self.stops.update(value.split(","))
        elif key == "options":
            self.options.append(value)
        elif key == "status":
            self.status = int(value)
        elif key == "output":
            self.output = re.compile(value.encode(), re.DOTALL)
        elif key == "unseen-frees":
            self.unseen_frees = None if value == "any" else int(value)
        elif key in ("ledger", "open-output", "lost-ok", "contradictions-ok"):
            self.flags.add(key)
        else:
            raise ValueError(f"cases.tab: unknown word {key}")


def adopt():
    """What a run leaves behind becomes a child of this process."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_children():
    """{tgid: name} of children that have not ended; those that have are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return {}
    found = {}
    for path in glob.glob(f"/proc/{os.getpid()}/task/*/children"):
        with open(path, encoding="ascii") as file:
            for tgid in file.read().split():
                try:
                    with open(f"/proc/{tgid}/comm", encoding="utf-8", errors="replace") as comm:
                        found[int(tgid)] = comm.read().strip()
                except OSError:
                    pass
    return found


def directories():
    return set(glob.glob("/tmp/memtrack-??????"))


class Leftovers:
    """Begun before a run; problems() after it says what stayed behind, and ends it."""

    def __init__(self):
        self.before = directories()

    def problems(self):
        if not tracked.eventually(lambda: not own_children()):
            for tgid, name in own_children().items():
                yield f"process left behind: {tgid} {name}"
                os.kill(tgid, signal.SIGKILL)
        # Runs besides this one have directories too, which go as well.
        new = directories() - self.before
        if not tracked.eventually(lambda: not any(map(os.path.exists, new))):
            yield from (f"left behind: {path}" for path in sorted(new) if os.path.exists(path))


def environment(settings=(), words=()):
    env = {**os.environ, **{f"HOSTILE_{key}": value for key, value in PLACES.items()},
           **dict(settings)}
    env.update({f"HOSTILE_{word}": needs.library(word) for word in words
                if word in needs.LIBRARIES})
    return env


def output_problems(alone, result, expected):
    """A tracked program's status and output are those that it has alone."""
    if alone.status != expected.status:
        yield f"untracked: exit status {alone.status}, not {expected.status}; says {alone!r}"
    if result.status != expected.status and not ("lost-ok" in expected.flags and
                                                 result.status == 121):
        yield f"exit status {result.status}, not {expected.status}; prints {result.out!r}, " \
              f"says {result.err!r}"
    if expected.output:
        for what, out in (("untracked ", alone.out), ("", result.out)):
            if not expected.output.fullmatch(out):
                yield f"{what}prints {out!r}"
    elif "open-output" not in expected.flags and result.out != alone.out:
        yield f"prints {result.out!r}, not {alone.out!r}"
    said = result.err
    if expected.not_tracked or expected.may_not_be_tracked:
        said = NOT_TRACKED.sub(b"", said)
    if "lost-ok" not in expected.flags and "open-output" not in expected.flags and \
       said != alone.err:
        yield f"says {result.err!r}, not {alone.err!r}"


def of_place(frame, place):
    """Whether a frame is that of FUNCTION or MODULE:FUNCTION."""
    module, _, function = place.rpartition(":")
    return tracked.short_name(frame) == function and \
        (not module or os.path.basename(frame["module"] or "") == module)


def size_problems(artifact, size):
    found = tracked.sizes(artifact).get(size.size, (0, 0))
    if found != (size.count, found[1] if size.freed is None else size.freed):
        yield f"size {size.size}: {found}, not {(size.count, size.freed)}"
    if not size.leaf and not size.root:
        return
    rows = [row for row in tracked.allocation_chains(artifact)
            if row["bytes"] == size.size * row["count"]]
    for row in rows:
        told = " < ".join(tracked.short_name(frame) or "?" for frame in row["chain"])
        if size.leaf and not (row["chain"] and of_place(row["chain"][0], size.leaf)):
            yield f"size {size.size}: {told} does not begin with {size.leaf}"
        if size.root and (row["stop"] != "end" or
                          not any(of_place(frame, size.root) for frame in row["chain"])):
            yield f"size {size.size}: {told}, {row['stop']}, is not whole with {size.root}"
    if sum(row["count"] for row in rows) != size.count:
        yield f"size {size.size}: {rows} are not {size.count} allocations"


def artifact_problems(artifact, expected, out=b"", source=None):
    """out: the program's output, with a ledger; source: of the program, whose lines the
    frames of its functions have."""
    totals = tracked.report(artifact)
    if not totals["complete"]:
        yield f"the artifact is not complete: {totals['problem']}"
    if "lost-ok" not in expected.flags:
        yield from tracked.losses(artifact)
    if totals["contradictions"] and "contradictions-ok" not in expected.flags:
        yield f"{totals['contradictions']} contradictions"
    for stop, count in totals["stops"].items():
        if count and stop not in expected.stops:
            yield f"{count} chains stop as {stop}"
    reasons = [entry["reason"] for entry in totals["not_tracked"]]
    for wanted in expected.not_tracked:
        if not any(wanted in reason for reason in reasons):
            yield f"nothing is not tracked for {wanted!r}: {totals['not_tracked']}"
    known = expected.not_tracked + expected.may_not_be_tracked
    for entry in totals["not_tracked"]:
        if not any(wanted in entry["reason"] for wanted in known):
            yield f"not tracked: {entry}"
    for size in expected.sizes:
        yield from size_problems(artifact, size)
    unseen = expected.unseen_frees
    if "ledger" in expected.flags:
        book = ledger.Ledger(out)
        yield from book.size_problems(tracked.sizes(artifact))
        yield from chains.problems(book, artifact, source)
        if unseen is not None:
            unseen += sum(frees for _, frees in book.inherited.values())
    if unseen not in (None, totals["untracked_frees"]):
        yield f"frees of unknown blocks: {totals['untracked_frees']}, not {unseen}"


def check(command, capture, expected, env=None, source=None):
    """COMMAND alone and tracked, in an empty directory each; gives the problems."""
    artifact = os.path.abspath("run.mtk")
    leftovers = Leftovers()
    for directory in ("alone", "tracked"):
        os.mkdir(directory)
    alone = tracked.run(command, env=env, cwd="alone")
    result = tracked.track(command, capture, artifact, expected.options, env=env, cwd="tracked")
    yield from leftovers.problems()
    yield from output_problems(alone, result, expected)
    differences = set(os.listdir("alone")) ^ set(os.listdir("tracked"))
    if differences:
        yield f"only one of both runs left {sorted(differences)}"
    if os.path.exists(artifact):
        yield from artifact_problems(artifact, expected, result.out, source)
    else:
        yield "there is no artifact"
