# SPDX-License-Identifier: LGPL-2.1-or-later
# count.py - a fixture's own figures against an independent counter: tests the fixtures

import counted
import ledger
import table
import tap
import tracked


def check(words):
    command = [f"{tracked.BUILD}/fixtures/{words[0]}", *words[1:]]
    alone = tracked.run(command)
    if alone.status:
        yield f"exit status {alone.status}, says {alone.err!r}"
    watched, found = counted.count(command)
    if watched.status:
        yield f"counted: exit status {watched.status}, says {watched.err!r}"
    book = ledger.Ledger(watched.out)
    for size, (_, frees) in book.inherited.items():
        allocations, all_frees = found.get(size, (0, 0))
        found[size] = (allocations, all_frees - frees)
    yield from book.size_problems(found)
    if book.sizes:
        totals = [sum(row[i] for row in book.sizes.values()) for i in (0, 1)]
        if totals != [book.totals["allocations"], book.totals["frees"]]:
            yield f"the ledger's sizes add up to {totals}, not {dict(book.totals)}"


def main():
    results = tap.Tap()
    seen = []
    for program, _, _ in table.rows("fixtures.tab", 3):
        if program not in seen:
            seen.append(program)
            results.attempt(program, check, program.split())
    results.plan()


main()
