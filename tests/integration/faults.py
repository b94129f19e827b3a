# SPDX-License-Identifier: LGPL-2.1-or-later
# faults.py - stack records lost, repeated, swapped and damaged on purpose: every event is
# there, what has lost its chain says so, nobody has another's, and then all is well again

import collections
import re

import tap
import tracked

# Program; the functions whose chains are compared, where the C library's differ from run to
# run.  The ledger's blocks are never freed or made elsewhere.
FIXTURES = (
    (("stack_churn", "60"), None),
    (("same_stack",), None),
    (("cxx_exceptions",), None),
    (("threads", "8"), {"take_in_thread", "take_in_main"}),
)
KINDS = ("drop", "duplicate", "swap", "corrupt", "corrupt-head")
HARMLESS = ("duplicate",)
STATUS_LOST = 121
RAW = "--no-stack-compression"
NEW = "--no-learned-stacks"  # each stack has its record

# Cells of a ring: what a thread can have in flight when it is told to send a key frame, and
# then again what it sent before it was told that this one is stale.
IN_FLIGHT = 2 * 256 * 1024 // 32

Outcome = collections.namedtuple("Outcome", "result records chains sizes lost done")


def chain_of(entry):
    return tuple((frame["module"], frame["offset"], frame["function"])
                 for frame in entry["chain"]), entry["stop"]


def track(words, capture, options=(NEW,)):
    command = [f"{tracked.BUILD}/fixtures/{words[0]}", *words[1:]]
    artifact = "faults.mtk"
    result = tracked.track(command, capture, artifact, ["-v", *options])
    err = result.err.decode()
    totals = tracked.report(artifact)
    if totals["lost_events"]:
        raise RuntimeError(f"{totals['lost_events']} events were lost")
    chains = collections.Counter()
    for entry in tracked.allocation_chains(artifact):
        chains[chain_of(entry)] += entry["count"]
    return Outcome(result, int(re.search(r"stack records: (\d+) for", err)[1]), chains,
                   tracked.sizes(artifact), totals["lost_stacks"],
                   sum(int(n) for n in re.findall(r"faults injected: \S+ (\d+)", err)))


def is_lost(chain):
    return chain[1] == "lost"


def compared(chains, functions):
    """Those of the program, with a chain."""
    return {chain: count for chain, count in chains.items() if not is_lost(chain) and
            (functions is None or functions & {frame[2] for frame in chain[0]})}


def said(outcome, whole):
    err = outcome.result.err.decode()
    told = re.search(r"(\d+) allocations have no stack", err)
    if (int(told[1]) if told else 0) != outcome.lost:
        yield f"{outcome.lost} stacks were lost, but it says {err!r}"
    expected = STATUS_LOST if outcome.lost else whole.result.status
    if outcome.result.status != expected:
        yield f"exit status {outcome.result.status}, not {expected}"
    if outcome.result.out != whole.result.out:
        yield f"prints {outcome.result.out!r}, not {whole.result.out!r}"


def same_chains(outcome, whole, functions):
    before, after = (compared(run.chains, functions) for run in (whole, outcome))
    for chain, count in after.items():
        if count > before.get(chain, 0):
            names = " < ".join(str(frame[2]) for frame in chain[0])
            yield f"{count} have the chain {names}: {chain[1]}, not {before.get(chain, 0)}"
    missing = sum(before.values()) - sum(after.values())
    in_file = sum(count for chain, count in outcome.chains.items() if is_lost(chain))
    if in_file != outcome.lost:
        yield f"{in_file} allocations are without a chain, not {outcome.lost}"
    if functions is None and missing != outcome.lost:
        yield f"{missing} chains are missing, {outcome.lost} are said to be lost"
    if missing > outcome.lost:
        yield f"{missing} chains are missing, only {outcome.lost} are said to be lost"


def same_events(outcome, whole, functions):
    if functions is None:
        yield from tracked.differences("size", whole.sizes, outcome.sizes)
    elif sum(outcome.chains.values()) < sum(compared(whole.chains, functions).values()):
        yield "events are missing"


def judge(words, functions, capture, spec, whole, options=(NEW,), most=None):
    outcome = track(words, capture, [f"--inject-faults={spec}", *options])
    yield from said(outcome, whole)
    yield from same_events(outcome, whole, functions)
    yield from same_chains(outcome, whole, functions)
    kind = re.match(r"[a-z-]+", spec)[0]
    number = int(re.search(r"\d+", spec)[0])
    if number <= whole.records // 2 and not outcome.done:
        yield "nothing was done to any record"
    if kind in HARMLESS and outcome.lost:
        yield f"{outcome.lost} chains were lost although each record came"
    if kind not in (*HARMLESS, "swap") and outcome.done and not outcome.lost:
        yield "no chain was lost"
    if most is not None and outcome.lost > most:
        yield f"{outcome.lost} chains were lost, more than {most}"


def check(results, capture, words, functions):
    whole = track(words, capture)
    late = max(1, whole.records * 3 // 4)
    title = " ".join(words)

    results.case(f"{title}, {capture}: without a fault nothing is lost",
                 [f"{whole.lost} are"] if whole.lost else [])
    for kind in KINDS:
        for spec in (f"{kind}:1", f"{kind}:{late}", f"{kind}/7"):
            most = None if "/" in spec else IN_FLIGHT
            results.attempt(f"{title}, {capture}: {spec}", judge, words, functions, capture,
                            spec, whole, (NEW,), most)
        # Of those that a thread has learned there is no record.
        results.attempt(f"{title}, {capture}, learned: {kind}/3", judge, words, functions,
                        capture, f"{kind}/3", whole, ())
    whole = track(words, capture, [RAW])
    for kind in KINDS:
        # Raw records do not depend on one another.
        results.attempt(f"{title}, {capture}, raw: {kind}:9", judge, words, functions, capture,
                        f"{kind}:9", whole, (RAW,), 1)


def check_recovery(results, capture):
    """Of many more stacks than can be in flight, a fault costs those that are."""
    for words in (("stack_churn", "1500"), ("same_stack", "400000")):
        whole = track(words, capture)
        for spec in ("drop:1", "corrupt:1", "corrupt-head:1", "drop:1,corrupt:2"):
            results.attempt(f"{' '.join(words)}, {capture}: recovers from {spec}", judge, words,
                            None, capture, spec, whole, (NEW,), IN_FLIGHT)


def texts(results):
    for text in ("", "drop", "drop:0", "lose:1", "drop:1;swap:2"):
        result = tracked.track(["/bin/true"], "inline", "none.mtk", [f"--inject-faults={text}"])
        problems = []
        if result.status == 0 or b"--inject-faults" not in result.err:
            problems = [f"exit status {result.status}, says {result.err!r}"]
        results.case(f"'{text}' is no fault", problems)


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        if reason:
            results.skip(f"faults, {capture}", reason)
            continue
        for words, functions in FIXTURES:
            check(results, capture, words, functions)
        check_recovery(results, capture)
    texts(results)
    results.plan()


main()
