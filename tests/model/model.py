# SPDX-License-Identifier: LGPL-2.1-or-later
# model.py - the models of this folder, right and wrong, as TAP

import sys

import hold
import park

sys.path.insert(0, sys.path[0] + "/../integration")
import tap  # noqa: E402  (the folder beside this one)


def right(found):
    if found.problem:
        yield f"{found.problem}, in {found.states} states:"
        yield from found.trace


def wrong(found):
    if not found.problem:
        yield f"nothing is wrong in {found.states} states"


def main():
    results = tap.Tap()
    for n, appends in ((1, 6), (2, 3), (3, 1)):
        for name, rules in park.RIGHT_ONES:
            results.case(f"park, {n} threads: {name}", right(park.run(rules, n, appends)))
    for name, rules in park.WRONG_ONES:
        results.case(f"park, wrong: {name}", wrong(park.run(rules, 2, 3)))
    for name, rules in hold.RIGHT_ONES:
        results.case(f"hold: {name}", right(hold.run(rules)))
        results.case(f"hold: {name}: what is marked as a window is one",
                     wrong(hold.run(rules, windows=True)))
    for name, rules in hold.WRONG_ONES:
        results.case(f"hold, wrong: {name}", wrong(hold.run(rules)))
    results.plan()


main()
