# SPDX-License-Identifier: LGPL-2.1-or-later
# fixtures.py - each fixture, in both captures: behaves as untracked, is counted exactly,
# loses nothing, and its chains are whole and named; both captures tell the same
#
# Arguments: the fixtures to test, where not all.

import os
import sys

import chains
import counted
import ledger
import table
import tap
import tracked


class Row:
    """A line of fixtures.tab, with what its program does when it is not tracked."""

    def __init__(self, program, options, traits):
        self.name = program.split()[0]
        self.title = " ".join([program, *options.split()])
        self.command = [f"{tracked.BUILD}/fixtures/{self.name}", *program.split()[1:]]
        self.options = options.split()
        self.open = "open" in traits.split()
        self.races = "races" in traits.split()
        self.bare = "bare" in traits.split()
        self.alone = tracked.run(self.command)

    def artifact(self, capture):
        return os.path.abspath(f"{self.name}.{capture}.mtk")


def behaves(row, result):
    if result.status != row.alone.status:
        yield f"exit status {result.status}, not {row.alone.status}; says {result.err!r}"
    if not row.open and result.out != row.alone.out:
        yield f"prints {result.out!r}, not {row.alone.out!r}"
    if result.err != row.alone.err:
        yield f"says {result.err!r}, not {row.alone.err!r}"


def counts(row, result, capture):
    book = ledger.Ledger(result.out)
    yield from book.size_problems(tracked.sizes(row.artifact(capture)))
    inherited = sum(frees for _, frees in book.inherited.values())
    untracked = tracked.report(row.artifact(capture))["untracked_frees"]
    if untracked != inherited:
        yield f"frees of unknown blocks: {untracked}, not {inherited}"


def totals(row, capture):
    """The report's totals are the sums of its sizes."""
    found = tracked.sizes(row.artifact(capture))
    sums = {"allocations": sum(size[0] for size in found.values()),
            "frees": sum(size[1] for size in found.values()),
            "bytes_allocated": sum(size * row[0] for size, row in found.items())}
    said = tracked.report(row.artifact(capture))
    return tracked.differences("total", sums, {key: said[key] for key in sums})


def as_counted(row, capture):
    """Every size, also those of the C library, as a counter has it in a run of its own."""
    _, expected = counted.count(row.command)
    return tracked.differences("size", expected, tracked.sizes(row.artifact(capture)))


def source_of(row):
    here = os.environ["srcdir"]
    return next(path for path in (f"{here}/fixtures/{row.name}{suffix}"
                                  for suffix in (".c", ".cpp")) if os.path.exists(path))


def agree(row):
    one, other = (tracked.sizes(row.artifact(capture)) for capture in tracked.CAPTURES)
    yield from tracked.differences(f"size (not in {tracked.CAPTURES[0]})", one, other)
    one, other = (chains.named(row.artifact(capture)) for capture in tracked.CAPTURES)
    yield from tracked.differences(f"chain (not in {tracked.CAPTURES[0]})", one, other)


def no_chains(row, capture):
    for entry in tracked.allocation_chains(row.artifact(capture)):
        if entry["chain"] or entry["stop"] != "none":
            yield f"{entry['count']} allocations with stop {entry['stop']}: {entry['chain']}"


def check_capture(results, row, capture):
    """True if there is an artifact."""
    title = f"{row.title}, {capture}"
    result = tracked.track(row.command, capture, row.artifact(capture), row.options)
    results.case(f"{title}: behaves as untracked", behaves(row, result))
    if not os.path.exists(row.artifact(capture)):
        results.case(f"{title}: leaves an artifact", [f"it does not, says {result.err!r}"])
        return False
    results.attempt(f"{title}: loses nothing", tracked.losses, row.artifact(capture))
    results.attempt(f"{title}: counted exactly", counts, row, result, capture)
    results.attempt(f"{title}: totals add up", totals, row, capture)
    if not row.races:
        results.attempt(f"{title}: as an independent counter has it", as_counted, row, capture)
    if row.bare:
        results.attempt(f"{title}: has no chains", no_chains, row, capture)
    elif not row.open:
        results.attempt(f"{title}: chains are whole", chains.problems,
                        ledger.Ledger(result.out), row.artifact(capture), source_of(row))
    return True


def main():
    results = tap.Tap()
    reasons = {capture: tracked.missing(capture) for capture in tracked.CAPTURES}
    for cells in table.rows("fixtures.tab", 3):
        row = Row(*cells)
        if sys.argv[1:] and row.name not in sys.argv[1:]:
            continue
        made = 0
        for capture, reason in reasons.items():
            if reason:
                results.skip(f"{row.title}, {capture}", reason)
            else:
                made += check_capture(results, row, capture)
        if made == len(reasons) and not row.races:
            results.attempt(f"{row.title}: both captures agree", agree, row)
    results.plan()


main()
