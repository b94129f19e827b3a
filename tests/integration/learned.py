# SPDX-License-Identifier: LGPL-2.1-or-later
# learned.py - programs with and without learned stacks: each chain as often, to the last one;
# and most of them need no record where they are learned
#
# The programs have one thread and do the same each time; where they lie must not matter.

import collections
import os
import re
import shutil

import tap
import tracked

SUMMARY = re.compile(r"stack records: (\d+) for (\d+) stacks")

PYTHON = """\
import json, re
for i in range(1500):
    json.loads(json.dumps({"a": [i, str(i)], "b": {"c": [i] * 5}}))
    re.sub("[0-9]+", lambda match: match.group(0) * 2, "abc 12 def %d" % i)
"""

PERL = """\
my %words;
for my $i (1 .. 20000) { push @{$words{$i % 97}}, join("-", "word", $i); }
print scalar(map { sort @$_ } values %words), "\\n";
"""

SQL = b"""\
CREATE TABLE t(number INTEGER PRIMARY KEY, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
  INSERT INTO t SELECT i, 'row ' || i FROM n;
SELECT name FROM t ORDER BY name DESC LIMIT 3;
"""

# needless: the share of allocations that is to need no record.  A thread is never further ahead
# of what it could have learned than its ring has room, which is 4096 events.
Program = collections.namedtuple("Program", "name command stdin needless")

PROGRAMS = (
    Program("python3", ["/usr/bin/python3", "-S", "-c", PYTHON], b"", 0.5),
    Program("perl", ["/usr/bin/perl", "-e", PERL], b"", 0.5),
    Program("sqlite3", ["/usr/bin/sqlite3", ":memory:"], SQL, 0.5),
    Program("churn", [f"{tracked.BUILD}/fixtures/churn", "--pairs=60000", "--branch=6"], b"", 0.8),
)

# Python looks for modules where it was started, too, and again when that has changed.
ENVIRONMENT = dict(os.environ, PYTHONHASHSEED="0", PYTHONMALLOC="malloc", PYTHONSAFEPATH="1",
                   PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0")


def chains(artifact):
    found = collections.Counter()
    for entry in tracked.allocation_chains(artifact):
        frames = tuple((frame["module"], frame["offset"]) for frame in entry["chain"])
        found[frames, entry["stop"], entry["bytes"] // entry["count"]] += entry["count"]
    return found


def track(program, capture, options):
    result = tracked.track(program.command, capture, "learned.mtk", ["-v", *options],
                           stdin=program.stdin, env=ENVIRONMENT, preexec_fn=tracked.keep_places)
    if result.status:
        raise RuntimeError(f"exit status {result.status}, says {result.err!r}")
    records, stacks = map(int, SUMMARY.search(result.err.decode()).groups())
    losses = list(tracked.losses("learned.mtk"))
    if losses:
        raise RuntimeError("; ".join(losses))
    return chains("learned.mtk"), 1 - records / stacks


def check(program, capture):
    expected, _ = track(program, capture, ["--no-learned-stacks"])
    found, needless = track(program, capture, [])
    print(f"# {program.name}, {capture}: {sum(found.values())} stacks, {len(found)} chains, "
          f"{100 * needless:.1f} % without a record")
    if needless < program.needless:
        yield f"{needless:.2f} of the stacks needed no record, not {program.needless} or more"
    yield from list(tracked.differences("chain", expected, found))[:5]


def main():
    results = tap.Tap()
    for program in PROGRAMS:
        for capture in tracked.CAPTURES:
            reason = tracked.missing(capture)
            if not shutil.which(program.command[0]):
                reason = f"no {program.command[0]}"
            title = f"{program.name}, {capture}"
            if reason:
                results.skip(title, reason)
            else:
                results.attempt(title, check, program, capture)
    results.plan()


main()
