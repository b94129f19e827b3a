# SPDX-License-Identifier: LGPL-2.1-or-later
# churn.py - thousands of stacks that all differ, each decoded and checked by its digest
#
# What was decoded is in memtrack-run's summary: "stack records: N, mean M bytes,
# ..., mismatches K, ...".

import re

import ledger
import tap
import tracked

LEAST_RECORDS = 8000
SUMMARY = re.compile(r"stack records: (\d+), mean (\d+) bytes.*, mismatches (\d+)")


def check(capture, budget):
    artifact = f"churn.{capture}.{budget}.mtk"
    result = tracked.track([f"{tracked.BUILD}/fixtures/stack_churn", "300"], capture, artifact,
                           [f"--stack-size={budget}", "-v"])
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
    summary = SUMMARY.search(result.err.decode())
    if not summary:
        yield f"no summary of stack records in {result.err!r}"
        return
    records, mean, mismatches = map(int, summary.groups())
    print(f"# {capture}, {budget}: {records} records of {mean} bytes")
    if records < LEAST_RECORDS:
        yield f"{records} stack records, at least {LEAST_RECORDS}"
    if mismatches:
        yield f"{mismatches} mismatches"
    yield from tracked.losses(artifact)
    yield from ledger.Ledger(result.out).size_problems(tracked.sizes(artifact))


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        for budget in ("8K", "32K"):
            title = f"{capture}, {budget}"
            if reason:
                results.skip(title, reason)
            else:
                results.attempt(title, check, capture, budget)
    results.plan()


main()
