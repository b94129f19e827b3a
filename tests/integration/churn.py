# SPDX-License-Identifier: LGPL-2.1-or-later
# churn.py - thousands of stacks that all differ, each decoded and checked by its digest, in
# records that are small at any budget; and thousands that are the same, or one of a few
# hundred, of which one record each tells
#
# What was decoded is in memtrack-run's summary: "stack records: N for S stacks, R raw, mean
# M bytes for W", "stack records: mismatches K, ...".

import re
import sys

import ledger
import tap
import tracked

SUMMARY = re.compile(r"stack records: (\d+) for \d+ stacks, \d+ raw, mean (\d+) bytes")
MISMATCHES = re.compile(r"stack records: mismatches (\d+)")
MOST_BYTES = 160

# Command; the least and the most records of it.
COMMANDS = (
    (["stack_churn"], 8000, sys.maxsize),
    (["same_stack"], 1, 10),
    (["churn", "--stacks=300", "--pairs=50000"], 300, 330),
)


def check(command, capture, budget, least, most, means):
    artifact = f"{command[0]}.{capture}.{budget}.mtk"
    result = tracked.track([f"{tracked.BUILD}/fixtures/{command[0]}", *command[1:]], capture,
                           artifact, [f"--stack-size={budget}", "--no-learned-stacks", "-v"],
                           preexec_fn=tracked.keep_places)
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
    said = result.err.decode()
    summary, mismatches = SUMMARY.search(said), MISMATCHES.search(said)
    if not summary or not mismatches:
        yield f"no summary of stack records in {result.err!r}"
        return
    records, mean = map(int, summary.groups())
    print(f"# {' '.join(command)}, {capture}, {budget}: {records} records of {mean} bytes")
    if not least <= records <= most:
        yield f"{records} stack records, not {least} to {most}"
    if int(mismatches[1]):
        yield f"{mismatches[1]} mismatches"
    if command[0] == "stack_churn" and mean > means.setdefault(capture, MOST_BYTES):
        yield f"{mean} bytes a record, more than {means[capture]}"
    means[capture] = min(mean + 1, MOST_BYTES)
    yield from tracked.losses(artifact)
    yield from ledger.Ledger(result.out).size_problems(tracked.sizes(artifact))


def main():
    results = tap.Tap()
    for command, least, most in COMMANDS:
        means = {}
        for capture in tracked.CAPTURES:
            reason = tracked.missing(capture)
            # The smaller budget first: records are to be no larger with the other.
            for budget in ("8K", "32K"):
                title = f"{' '.join(command)}, {capture}, {budget}"
                if reason:
                    results.skip(title, reason)
                else:
                    results.attempt(title, check, command, capture, budget, least, most, means)
    results.plan()


main()
