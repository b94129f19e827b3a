# SPDX-License-Identifier: LGPL-2.1-or-later
# park.py - the latch, the futex and the release, in all interleavings
#
# Threads append to rings of their own, latch, park or wait for room, as preload/ring.c does;
# the coordinator drains a snapshot, clears the latch, moves the futex word and wakes, as
# collector/pressure.c does.  There are no time-outs: the 100 ms of the real ones only hide
# what is wrong here.  The coordinator acts on a latch and on nothing else, so that a thread
# which sleeps while nothing is latched sleeps for ever.  It may rest where nothing is latched, as
# collector/rest.h does, and then acts on the bell and on nothing else: a rest has no end of its
# own here.  The order of what each program does to memory is the order here: that is what the
# barriers in the files are for.
#
# With other orders the same must fail: a model that can not fail shows nothing.

import collections

import explore

CAPACITY = 2
WATERMARK = 1
FUTEX, SIGNAL = "futex", "signal"

# at: the next step; f: whether the futex word still is what was read of it, None: it was not
# read; fill: cells on its ring
Thread = collections.namedtuple("Thread", "at f fill left asleep")
# drained: rings that this episode has drained
Coordinator = collections.namedtuple("Coordinator", "at drained")
# rests: the coordinator has said so; rung: the bell, since it was made quiet
State = collections.namedtuple("State", "latch threads coordinator rests rung")

Rules = collections.namedtuple("Rules", "pause park full release rest level full_latches")
RIGHT = Rules(FUTEX, ("f", "latch", "ring"), ("f", "latch", "look", "ring"),
              ("drain", "clear", "move", "wake"), ("quiet", "say", "latch"), True, True)


def after_heed(thread):
    return thread._replace(at="append" if thread.left else "done", f=None)


def heed(rules, thread):
    """Behind an append, or a sleep: the first of the steps that look whether to park."""
    if rules.pause == SIGNAL:
        return after_heed(thread)
    return thread._replace(at=("park", 0), f=None)


def ring(state):
    return state._replace(rung=state.rung or state.rests)


def append(rules, state, thread):
    if thread.fill == CAPACITY:
        return state, thread._replace(at=("full", 0), f=None)
    thread = thread._replace(fill=thread.fill + 1, left=thread.left - 1)
    over = thread.fill >= WATERMARK if rules.level else thread.fill == WATERMARK
    return state, thread._replace(at="latch") if over else heed(rules, thread)


def park_step(rules, state, thread):
    i = thread.at[1]
    if i == len(rules.park):
        if not thread.f:
            return state, heed(rules, thread)
        return state, thread._replace(asleep=True)
    if rules.park[i] == "f":
        thread = thread._replace(f=True)
    elif rules.park[i] == "ring":
        state = ring(state)
    elif not state.latch:
        return state, after_heed(thread)
    return state, thread._replace(at=("park", i + 1))


def full_step(rules, state, thread):
    i = thread.at[1]
    if i == len(rules.full):
        if not thread.f:
            return state, thread._replace(at="append", f=None)
        return state, thread._replace(asleep=True)
    if rules.full[i] == "f":
        thread = thread._replace(f=True)
    elif rules.full[i] == "ring":
        state = ring(state)
    elif rules.full[i] == "latch":
        state = state._replace(latch=state.latch or rules.full_latches)
    elif thread.fill < CAPACITY:
        return state, thread._replace(at="append", f=None)
    return state, thread._replace(at=("full", i + 1))


def thread_step(rules, state, thread):
    """(state, thread) after its next step, or None: it sleeps, or is done."""
    if thread.asleep or thread.at == "done":
        return None
    if thread.at == "append":
        return append(rules, state, thread)
    if thread.at == "latch":
        return state._replace(latch=True), heed(rules, thread)
    if thread.at[0] == "park":
        return park_step(rules, state, thread)
    return full_step(rules, state, thread)


def wake(thread):
    if not thread.asleep:
        return thread
    return thread._replace(asleep=False, at="append" if thread.at[0] == "full" else ("park", 0),
                           f=None)


LOOK = Coordinator("look", frozenset())


def rest_step(rules, state):
    i = state.coordinator.at[1]
    after = state._replace(coordinator=Coordinator(("rest", i + 1), frozenset()))
    if i == len(rules.rest):
        if state.rung:
            yield state._replace(rests=False, coordinator=LOOK)
    elif rules.rest[i] == "quiet":
        yield after._replace(rung=False)
    elif rules.rest[i] == "say":
        yield after._replace(rests=True)
    else:
        yield state._replace(rests=False, coordinator=LOOK) if state.latch else after


def coordinator_steps(rules, state):
    at, drained = state.coordinator
    if at == "look":
        if state.latch:
            yield state._replace(coordinator=Coordinator(0, frozenset()))
        elif rules.pause == FUTEX:
            yield state._replace(coordinator=Coordinator(("rest", 0), frozenset()))
        return
    if isinstance(at, tuple):
        yield from rest_step(rules, state)
        return
    step = rules.release[at]
    after = Coordinator(at + 1 if at + 1 < len(rules.release) else "look", drained)
    if step == "drain":
        left = [i for i in range(len(state.threads)) if i not in drained]
        if not left:
            yield state._replace(coordinator=after)
        for i in left:  # the heads are taken in any order, as far as threads can tell
            threads = list(state.threads)
            threads[i] = threads[i]._replace(fill=0)
            yield state._replace(threads=tuple(threads),
                                 coordinator=Coordinator(at, drained | {i}))
    elif step == "clear":
        yield state._replace(latch=False, coordinator=after)
    elif step == "move":
        threads = tuple(thread._replace(f=False) if thread.f else thread
                        for thread in state.threads)
        yield state._replace(threads=threads, coordinator=after)
    else:
        yield state._replace(threads=tuple(wake(thread) for thread in state.threads),
                             coordinator=after)


def steps_of(rules):
    def steps(state):
        for i, thread in enumerate(state.threads):
            made = thread_step(rules, state, thread)
            if made:
                threads = state.threads[:i] + (made[1],) + state.threads[i + 1:]
                yield made[0]._replace(threads=threads)
        yield from coordinator_steps(rules, state)
    return steps


def judge(state, stuck):
    if stuck and any(thread.at != "done" for thread in state.threads):
        return "a thread sleeps for ever"
    if stuck and state.latch:
        return "an episode is not released"
    return None


def run(rules, n_threads, appends):
    thread = Thread("append", None, 0, appends, False)
    start = State(False, (thread,) * n_threads, LOOK, False, False)
    return explore.explore(start, steps_of(rules), judge)


RIGHT_ONES = (
    ("as it is, futex", RIGHT),
    ("as it is, signal", RIGHT._replace(pause=SIGNAL)),
)

WRONG_ONES = (
    ("the latch is read before the futex word", RIGHT._replace(park=("latch", "f", "ring"))),
    ("the futex word moves before the latch is cleared",
     RIGHT._replace(release=("drain", "move", "clear", "wake"))),
    ("woken before the futex word moves",
     RIGHT._replace(release=("drain", "clear", "wake", "move"))),
    ("woken before the latch is cleared",
     RIGHT._replace(release=("drain", "wake", "clear", "move"))),
    ("nobody is woken", RIGHT._replace(release=("drain", "clear", "move"))),
    ("a full ring is latched before the futex word is read",
     RIGHT._replace(pause=SIGNAL, full=("latch", "look", "f", "ring"))),
    ("the watermark is an edge, and a full ring does not latch",
     RIGHT._replace(pause=SIGNAL, level=False, full_latches=False)),
    ("the latch is looked at before the rest is told of",
     RIGHT._replace(rest=("quiet", "latch", "say"))),
    ("the bell is made quiet when the rest was told of",
     RIGHT._replace(rest=("say", "latch", "quiet"))),
    ("who parks does not ring", RIGHT._replace(park=("f", "latch"))),
)
