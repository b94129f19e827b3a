# SPDX-License-Identifier: LGPL-2.1-or-later
# chains.py - whether an artifact's chains are those that a ledger claims: whole, named, and
# with the lines of the program's source

import collections
import os
import re

import ledger
import tracked


def source_lines(path):
    """(file, {function: (first line, last line)}) of a source; of no path, no lines."""
    lines, name, first = {}, None, 0
    if path is None:
        return None, lines
    with open(path, encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            start = re.match(r"\S.*?(\w+)\([^()]*\)?$", line)
            if start:
                name, first = start[1], number
            elif line.startswith("}") and name:
                lines[name] = (first, number)
                name = None
    return os.path.basename(path), lines


def frame_problems(frame, name, source):
    file, lines = source
    if name not in lines:
        return
    first, last = lines[name]
    if os.path.basename(frame["file"] or "") != file:
        yield f"{name}: in file {frame['file']}, not {file}"
    elif not first <= (frame["line"] or 0) <= last:
        yield f"{name}: at line {frame['line']}, which is not of {first} to {last}"


def chain_problems(entry, name, names, roots):
    told = " < ".join(names)
    if roots == {ledger.CUT}:
        if entry["stop"] != "truncated":
            yield f"{name}: stop {entry['stop']}, not truncated: {told}"
    elif ledger.ANY not in roots:
        if entry["stop"] != "end":
            yield f"{name}: stop {entry['stop']}, not end: {told}"
        if ledger.END not in roots and not roots & set(names):
            yield f"{name}: none of {sorted(roots)} in {told}"


def problems(book, artifact, path):
    """path: of the program's source, or None."""
    sites = book.sites()
    found = collections.Counter()
    sizes = collections.Counter()
    source = source_lines(path)
    for entry in tracked.allocation_chains(artifact):
        names = [tracked.short_name(frame) for frame in entry["chain"]]
        at = next((i for i, name in enumerate(names) if name in sites), None)
        if at is None:
            continue
        found[names[at]] += entry["count"]
        sizes[names[at]] += entry["bytes"]
        yield from frame_problems(entry["chain"][at], names[at], source)
        yield from chain_problems(entry, names[at], names, book.roots(names[at]))
    for name, chain in sites.items():
        if (found[name], sizes[name]) != chain:
            yield f"{name}: {(found[name], sizes[name])}, not {tuple(chain)}"


def named(artifact):
    """{names of the functions, innermost first, and the stop: allocations}

    Where a chain is cut follows from the stack's place in its page: only its beginning is
    compared."""
    sums = collections.Counter()
    for entry in tracked.allocation_chains(artifact):
        names = [tracked.short_name(frame) for frame in entry["chain"]]
        if entry["stop"] == "truncated":
            names = names[:1]
        sums[" < ".join(names) + ": " + entry["stop"]] += entry["count"]
    return sums
