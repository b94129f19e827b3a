# SPDX-License-Identifier: LGPL-2.1-or-later
# ledger.py - what a fixture printed of what it did; fixtures/ledger.h has the format
#
# The images of a process tree print a ledger each: they are added up.

import collections

CUT = "-"
ANY = "?"
END = "."

Chain = collections.namedtuple("Chain", "allocations bytes")


class Ledger:
    def __init__(self, output):
        self.totals = collections.Counter()
        self.sizes = {}   # size: (allocations, frees)
        self.inherited = {}  # as sizes: frees of what a parent had allocated
        self.chains = {}  # (function, root): Chain
        self.least = {}   # as sizes, where the fixture knows no more than bounds
        self.most = {}
        for line in output.decode().splitlines():
            self._read(line.split())

    def _read(self, words):
        key = words[0] if words else ""
        if key in ("allocations", "frees", "bytes"):
            self.totals[key] += int(words[1])
        elif key == "size":
            self._add(self.sizes, int(words[1]), int(words[3]), int(words[5]))
        elif key == "chain":
            at = (words[1], words[2])
            before = self.chains.get(at, Chain(0, 0))
            self.chains[at] = Chain(before.allocations + int(words[4]),
                                    before.bytes + int(words[6]))
        elif key == "inherited":
            self._add(self.inherited, int(words[2]), 0, int(words[4]))
        elif key in ("least", "most"):
            bounds = self.least if key == "least" else self.most
            self._add(bounds, int(words[2]), int(words[4]), int(words[6]))

    @staticmethod
    def _add(table, size, allocations, frees):
        before = table.get(size, (0, 0))
        table[size] = (before[0] + allocations, before[1] + frees)

    def sites(self):
        """{function: Chain}, whatever the roots."""
        sums = {}
        for (function, _), chain in self.chains.items():
            before = sums.get(function, Chain(0, 0))
            sums[function] = Chain(before.allocations + chain.allocations,
                                   before.bytes + chain.bytes)
        return sums

    def roots(self, function):
        return {root for site, root in self.chains if site == function}

    def size_problems(self, found):
        """found: {size: (allocations, frees)}, which may have other sizes besides."""
        for size, expected in sorted(self.sizes.items()):
            if found.get(size) != expected:
                yield f"size {size}: {found.get(size)}, not {expected}"
        for size, (allocations, frees) in sorted(self.least.items()):
            got = found.get(size, (0, 0))
            if got[0] < allocations or got[1] < frees:
                yield f"size {size}: {got}, at least {(allocations, frees)}"
        for size, (allocations, frees) in sorted(self.most.items()):
            got = found.get(size, (0, 0))
            if got[0] > allocations or got[1] > frees:
                yield f"size {size}: {got}, at most {(allocations, frees)}"
        if not self.sizes and not self.least:
            yield "the fixture printed no ledger"
