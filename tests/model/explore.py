# SPDX-License-Identifier: LGPL-2.1-or-later
# explore.py - every interleaving of a few small programs, state by state
#
# A model is a start, which can be hashed, and steps(state), which gives the states that one
# step of one of the programs makes of it.  judge(state, stuck) says what is wrong with a
# state, or None; stuck: no program can take a step from there.

import collections

STATES_MAX = 300_000

Found = collections.namedtuple("Found", "states problem trace")


def trace_of(state, came_from):
    trace = []
    while state is not None:
        trace.append(state)
        state = came_from[state]
    return trace[::-1]


def explore(start, steps, judge):
    """The first problem by the shortest way to it, or None."""
    came_from = {start: None}
    queue = collections.deque([start])
    while queue:
        state = queue.popleft()
        following = list(steps(state))
        problem = judge(state, not following)
        if problem:
            return Found(len(came_from), problem, trace_of(state, came_from))
        for after in following:
            if after not in came_from:
                came_from[after] = state
                queue.append(after)
        if len(came_from) > STATES_MAX:
            raise RuntimeError(f"more than {STATES_MAX} states")
    return Found(len(came_from), None, [])
