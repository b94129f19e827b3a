# SPDX-License-Identifier: LGPL-2.1-or-later
# hold.py - stops and continues of the collector, and of somebody else, in all interleavings
#
# A process, the collector that holds it for one pause or two, memtrack-run that undoes what a
# dead collector has left, and an outsider who sends SIGSTOP and SIGCONT when it likes.  What
# is done is what collector/holds.c does; what the process does is what the kernel does to it:
# a SIGSTOP is pending, for the process or for its main thread; is taken, when it does not
# stand still; a SIGCONT throws away all that are pending.
#
# When nobody has anything left to do, the process stands still if the outsider's last word
# was SIGSTOP, and runs if not.  The windows that are known (collector/holds.h) are marked when
# the outsider acts in one, or the collector dies in one: there a stop of somebody else may be
# undone, but none of ours may stay.  Everything else has to be right.

import collections

import explore

OUTSIDE = 3  # signals of the outsider
PAUSES = 2

# entry: what the page says, memtrack-run's knowledge; plan: what a look has decided
State = collections.namedtuple(
    "State", "run own shared wish outside at pauses entry how plan before window alive")

RUNS, STANDS, GONE = "runs", "stands", "gone"
NONE, PLAIN, SENT, SEALING, SEALED = "none", "plain", "sent", "sealing", "sealed"

Rules = collections.namedtuple("Rules", "look first own seal decide entry_first undo")
RIGHT = Rules(look=True, first=True, own=True, seal=True, decide=True, entry_first=True, undo=True)


def signal_stop(state, own):
    return state._replace(own=True) if own else state._replace(shared=True)


def signal_continue(state):
    if state.run == GONE:
        return state
    return state._replace(own=False, shared=False, run=RUNS)


def process_steps(state):
    if state.run == RUNS and state.own:
        yield state._replace(own=False, run=STANDS)
    if state.run == RUNS and state.shared:
        yield state._replace(shared=False, run=STANDS)
    if state.run == RUNS:
        yield state._replace(run=GONE, own=False, shared=False)


def outsider_steps(rules, state):
    if not state.outside or state.run == GONE:
        return
    state = state._replace(outside=state.outside - 1)
    # Between our look and our SIGCONT.
    window = state.window or state.plan == "continue"
    yield signal_stop(state._replace(wish=STANDS, window=window or state.before == "continued"),
                      False)
    # Continued, and then stopped, between our SIGSTOP and the seal, if one is to come.
    unsealed = rules.seal and state.how in (SENT, SEALING)
    before = "continued" if unsealed else state.before
    yield signal_continue(state._replace(wish=RUNS, before=before))


def decide(rules, state):
    """Whether to continue the process; holds.c has the table."""
    if not rules.decide:
        return True
    how = state.how if state.alive else state.entry
    if state.shared:
        return False
    if how == SENT:
        return not (state.own and state.run == STANDS)
    if how == SEALED:
        return state.own
    return True


def let_go(rules, state, done):
    """A look, then what it says: two steps, with room for the outsider between."""
    if state.plan is None:
        yield state._replace(plan="continue" if decide(rules, state) else "leave")
    elif state.plan == "continue":
        yield done(signal_continue(state)._replace(plan=None))
    else:
        yield done(state._replace(plan=None))


def released(state):
    more = state.pauses > 1
    return state._replace(how=NONE, entry=NONE, before=None, pauses=state.pauses - 1,
                          at="idle" if more else "end")


def take_steps(rules, state):
    if state.at == "idle":
        seen = state.run == STANDS or state.own or state.shared
        if rules.first and seen:
            yield state._replace(at="held")  # somebody else's: nothing of ours
        else:
            yield state._replace(at="enter" if rules.entry_first else "send")
    elif state.at == "enter":
        how = SENT if rules.own else PLAIN
        yield state._replace(entry=how, how=how, at="send" if rules.entry_first else "held")
    elif state.at == "send":
        yield signal_stop(state, rules.own)._replace(at="held" if rules.entry_first else "enter")


def seal_steps(rules, state):
    if not rules.seal or state.how not in (SENT, SEALING):
        return
    if state.how == SEALING and state.own and state.run == STANDS:
        yield state._replace(how=SEALED, entry=SEALED)
    if state.run == STANDS and not state.own:
        yield state._replace(how=SEALING, entry=SEALING, at="seal")


def collector_steps(rules, state):
    if not state.alive:
        return
    if state.at != "end":
        # Killed; between the entry and the signal, nobody knows whether that was sent.
        window = state.window or (state.at == "send" and rules.entry_first)
        yield state._replace(alive=False, plan=None, window=window)
    if state.at in ("idle", "enter", "send"):
        yield from take_steps(rules, state)
    elif state.at == "seal":
        yield signal_stop(state, True)._replace(at="held")
    elif state.at == "held":
        if state.plan is None:
            yield from seal_steps(rules, state)
        if state.how == NONE:
            yield released(state)
        else:
            yield from let_go(rules, state, released)


def undone(state):
    return state._replace(entry=NONE, at="end")


def undo_steps(rules, state):
    if not state.alive and rules.undo and state.entry != NONE and state.run != GONE:
        yield from let_go(rules, state, undone)


def steps_of(rules):
    def steps(state):
        yield from process_steps(state)
        yield from outsider_steps(rules, state)
        yield from collector_steps(rules, state)
        yield from undo_steps(rules, state)
    return steps


def done(rules, state):
    if state.outside and state.run != GONE:
        return False
    if state.alive:
        return state.at == "end"
    return not rules.undo or state.entry == NONE


def judge_of(rules, windows):
    def judge(state, stuck):
        if state.run == GONE or (state.run == RUNS and (state.own or state.shared)):
            return None
        if stuck and not done(rules, state):
            return "somebody waits for ever"
        if not done(rules, state):
            return None
        if state.wish == STANDS and state.run != STANDS and (windows or not state.window):
            return "somebody else's stop is undone"
        if state.wish != STANDS and state.run == STANDS:
            return "a stop that nobody undoes"
        return None
    return judge


def run(rules, windows=False):
    """windows: what happens in the known windows is judged, too."""
    start = State(RUNS, False, False, RUNS, OUTSIDE, "idle", PAUSES, NONE, NONE, None, None,
                  False, True)
    return explore.explore(start, steps_of(rules), judge_of(rules, windows))


RIGHT_ONES = (("as it is", RIGHT),)

WRONG_ONES = (
    ("continued without a look at what is pending", RIGHT._replace(decide=False)),
    ("stopped though somebody else has", RIGHT._replace(first=False, seal=False, decide=False)),
    ("without the seal", RIGHT._replace(seal=False)),
    ("entered in the page after the signal was sent", RIGHT._replace(entry_first=False)),
    ("nobody undoes what a dead collector has left", RIGHT._replace(undo=False)),
)
