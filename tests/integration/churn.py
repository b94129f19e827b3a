# SPDX-License-Identifier: LGPL-2.1-or-later
# churn.py - thousands of stacks that all differ, each decoded and checked by its digest;
# and thousands that are all the same, of which one record tells
#
# What was decoded is in memtrack-run's summary: "stack records: N, mean M bytes,
# ..., mismatches K, ...".

import re
import sys

import ledger
import tap
import tracked

LEAST_RECORDS = 8000
MOST_KNOWN_RECORDS = 10
SUMMARY = re.compile(r"stack records: (\d+), mean (\d+) bytes.*, mismatches (\d+)")


def check(fixture, capture, budget, least, most):
    artifact = f"{fixture}.{capture}.{budget}.mtk"
    result = tracked.track([f"{tracked.BUILD}/fixtures/{fixture}"], capture, artifact,
                           [f"--stack-size={budget}", "-v"])
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
    summary = SUMMARY.search(result.err.decode())
    if not summary:
        yield f"no summary of stack records in {result.err!r}"
        return
    records, mean, mismatches = map(int, summary.groups())
    print(f"# {fixture}, {capture}, {budget}: {records} records of {mean} bytes")
    if not least <= records <= most:
        yield f"{records} stack records, not {least} to {most}"
    if mismatches:
        yield f"{mismatches} mismatches"
    yield from tracked.losses(artifact)
    yield from ledger.Ledger(result.out).size_problems(tracked.sizes(artifact))


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        for budget in ("8K", "32K"):
            for fixture, least, most in (("stack_churn", LEAST_RECORDS, sys.maxsize),
                                         ("same_stack", 1, MOST_KNOWN_RECORDS)):
                title = f"{fixture}, {capture}, {budget}"
                if reason:
                    results.skip(title, reason)
                else:
                    results.attempt(title, check, fixture, capture, budget, least, most)
    results.plan()


main()
