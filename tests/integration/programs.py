# SPDX-License-Identifier: LGPL-2.1-or-later
# programs.py - programs that people run, in both captures: same output and status as
# untracked, nothing lost, and figures equal to valgrind's and to an independent counter's
#
# Arguments: the programs to test, where not all.
#
# The counter runs natively, as memtrack does, and so must agree to the byte: in either run
# the heap lies at the same place, because an int of Python's that holds an address has another
# size on either side of 2^30.  Under
# valgrind a program has other addresses, of fewer bits, and some ask for memory by them:
#   python3  an int that holds an address has one digit of 4 bytes less there
#   perl     grows a string by another step: one block of 128 bytes
#   cc1      takes one or two chunks of 32 KiB more or less, and does so from one native run
#            to the next

import collections
import os
import shutil
import sys

import compare_valgrind
import counted
import tap
import tracked

# slack: by how many blocks valgrind's figures may differ, for the reasons above;
# drift: by how many the program's own do from run to run.
Program = collections.namedtuple("Program", "name command stdin made slack drift exact_bytes")

PYTHON = """\
names = {str(i): "value %d" % i for i in range(100000)}
print(len(names), names["99999"])
"""

PERL = """\
my %words;
for my $i (1 .. 20000) { push @{$words{$i % 997}}, "word $i" x 3; }
my $length = 0;
for my $key (sort keys %words) { $length += length join ",", @{$words{$key}}; }
print "$length\\n";
"""

FUNCTION = """\
int area_{0}(int x, int y)
{{
	int width = x + {0};
	int height = y - {0};

	return width > {0} ? width * height : width;
}}

"""


def make_source():
    with open("area.c", "w", encoding="ascii") as file:
        for i in range(250):
            file.write(FUNCTION.format(i))


def make_repository():
    stream = []
    for i in range(1, 61):
        message = f"commit number {i}\n\nIts text, which says what {i} is about.\n"
        text = f"line {i}\n" * i
        stream.append(f"commit refs/heads/main\nmark :{i}\n"
                      f"committer A U Thor <author@example.org> {1700000000 + i * 3600} +0100\n"
                      f"data {len(message)}\n{message}"
                      f"M 644 inline file{i % 7}\ndata {len(text)}\n{text}\n")
    for command, stdin in ((["git", "init", "-q", "-b", "main", "repository"], ""),
                           (["git", "-C", "repository", "fast-import", "--quiet"],
                            "".join(stream))):
        result = tracked.run(command, stdin.encode(), env=environment())
        if result.status:
            raise RuntimeError(f"{command}: {result.err!r}")


SQL = b"""\
CREATE TABLE t(number INTEGER PRIMARY KEY, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
  INSERT INTO t SELECT i, 'row ' || i FROM n;
SELECT count(*), sum(number), max(name) FROM t;
"""


PROGRAMS = (
    Program("python3", ["/usr/bin/python3", "-c", PYTHON], b"", None, 0, 0, False),
    Program("gcc", ["/usr/bin/gcc", "-O2", "-c", "area.c", "-o", "area.o"], b"",
            make_source, 6, 6, False),
    Program("git", ["/usr/bin/git", "-C", "repository", "log"], b"", make_repository,
            0, 0, True),
    Program("sqlite3", ["/usr/bin/sqlite3", ":memory:"], SQL, None, 0, 0, True),
    Program("perl", ["/usr/bin/perl", "-e", PERL], b"", None, 2, 0, False),
)


def environment():
    """Nothing that the invoker happens to have, no hashes by chance, and no look at the
    working directory, where from run to run there are more files."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.getcwd(), "TMPDIR": os.getcwd(),
            "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1",
            "PERL_HASH_SEED": "0", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def within(what, expected, found, slack):
    if abs(found - expected) > slack:
        yield f"{what}: {found}, not {expected}" + (f" (give or take {slack})" if slack else "")


class Oracles:
    """What the program does alone, counted, and under valgrind, if that is here; and the
    environment in which memtrack has to see the same."""

    def __init__(self, program, captures):
        env = environment()
        counter = {"LD_PRELOAD": counted.LIBRARY, "COUNT_FILE": os.path.abspath("count")}
        valgrind = (compare_valgrind.added_by_valgrind(env)
                    if compare_valgrind.valgrind() else {})
        for_memtrack, for_counter, for_valgrind = compare_valgrind.level(
            env, compare_valgrind.added_by_memtrack(env, captures[0]), counter, valgrind)
        self.env = for_memtrack
        self.alone = tracked.run(program.command, program.stdin, for_memtrack)
        _, self.counted = counted.count(program.command, for_counter, stdin=program.stdin,
                                        preexec_fn=tracked.keep_places)
        self.valgrind = None
        if compare_valgrind.valgrind():
            _, self.valgrind = compare_valgrind.run_valgrind(program.command, for_valgrind,
                                                             stdin=program.stdin)


def behaves(oracles, result, artifact):
    if result.status != oracles.alone.status:
        yield f"exit status {result.status}, not {oracles.alone.status}; says {result.err!r}"
    if result.out != oracles.alone.out:
        yield f"prints {result.out[-500:]!r}, not {oracles.alone.out[-500:]!r}"
    yield from tracked.losses(artifact)


def same_as_counted(program, oracles, artifact):
    found = tracked.sizes(artifact)
    if not program.drift:
        yield from tracked.differences("size", oracles.counted, found)
        return
    for i, what in enumerate(("allocations", "frees")):
        yield from within(what, sum(row[i] for row in oracles.counted.values()),
                          sum(row[i] for row in found.values()), program.drift)


def same_as_valgrind(program, oracles, artifact):
    ours = compare_valgrind.read_artifact(artifact)
    print(*(f"# {line}" for line in compare_valgrind.lines(oracles.valgrind, ours)), sep="\n")
    for name, theirs, mine in compare_valgrind.pairs(oracles.valgrind, ours):
        if not theirs or not mine:
            yield f"{name}: {mine}, not {theirs}"
            continue
        for key in compare_valgrind.FIGURES[:2]:
            yield from within(f"{name}: {key}", theirs[key], mine[key], program.slack)
        if program.exact_bytes:
            yield from within(f"{name}: bytes", theirs["bytes_allocated"],
                              mine["bytes_allocated"], 0)


def check(results, program, reasons):
    if program.made:
        program.made()
    oracles = Oracles(program, [capture for capture in reasons if not reasons[capture]])
    for capture, reason in reasons.items():
        title = f"{program.name}, {capture}"
        if reason:
            results.skip(title, reason)
            continue
        artifact = f"{program.name}.{capture}.mtk"
        result = tracked.track(program.command, capture, artifact, env=oracles.env,
                               stdin=program.stdin, preexec_fn=tracked.keep_places)
        results.attempt(f"{title}: behaves as untracked, loses nothing", behaves, oracles,
                        result, artifact)
        results.attempt(f"{title}: every size as an independent counter has it",
                        same_as_counted, program, oracles, artifact)
        if oracles.valgrind:
            results.attempt(f"{title}: as valgrind has it", same_as_valgrind, program,
                            oracles, artifact)
        else:
            results.skip(f"{title}: as valgrind has it", "no valgrind")


def main():
    results = tap.Tap()
    reasons = {capture: tracked.missing(capture) for capture in tracked.CAPTURES}
    for program in PROGRAMS:
        if sys.argv[1:] and program.name not in sys.argv[1:]:
            continue
        if not shutil.which(program.command[0]):
            results.skip(program.name, f"no {program.command[0]}")
            continue
        check(results, program, reasons)
    results.plan()


main()
