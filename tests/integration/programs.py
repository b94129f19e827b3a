# SPDX-License-Identifier: LGPL-2.1-or-later
# programs.py - programs that people run, in both captures: same output and status as
# untracked, nothing lost, and figures equal to valgrind's and to an independent counter's
#
# Arguments: the programs to test, where not all.
#
# The counter runs natively, as memtrack does, and so must agree to the byte.  Under
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


def sql():
    rows = "".join(f"INSERT INTO t VALUES({i}, 'row {i}');\n" for i in range(50000))
    return ("CREATE TABLE t(number INTEGER PRIMARY KEY, name TEXT);\nBEGIN;\n" + rows +
            "COMMIT;\nSELECT count(*), sum(number), max(name) FROM t;\n").encode()


PROGRAMS = (
    Program("python3", ["/usr/bin/python3", "-c", PYTHON], b"", None, 0, 0, False),
    Program("gcc", ["/usr/bin/gcc", "-O2", "-c", "area.c", "-o", "area.o"], b"",
            make_source, 6, 6, False),
    Program("git", ["/usr/bin/git", "-C", "repository", "log"], b"", make_repository,
            0, 0, True),
    Program("sqlite3", ["/usr/bin/sqlite3", ":memory:"], sql(), None, 0, 0, True),
    Program("perl", ["/usr/bin/perl", "-e", PERL], b"", None, 2, 0, False),
)


def environment():
    """Nothing that the invoker happens to have, and no hashes by chance."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.getcwd(), "TMPDIR": os.getcwd(),
            "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0",
            "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def within(what, expected, found, slack):
    if abs(found - expected) > slack:
        yield f"{what}: {found}, not {expected}" + (f" (give or take {slack})" if slack else "")


def same_as_counted(program, capture, env):
    """Both runs have environments of one shape, as in compare_valgrind.py."""
    def memtrack_command(command):
        return [tracked.RUN, "-o", "environment.mtk", f"--capture={capture}", "--", *command]

    stand_ins = compare_valgrind.stand_ins(compare_valgrind.added(memtrack_command, env))
    counter = compare_valgrind.stand_ins({"LD_PRELOAD": counted.LIBRARY,
                                          "COUNT_FILE": os.path.abspath("count")})
    _, expected = counted.count(program.command, {**env, **stand_ins}, stdin=program.stdin)
    artifact = f"{program.name}.{capture}.counted.mtk"
    result = tracked.track(program.command, capture, artifact, env={**env, **counter},
                           stdin=program.stdin)
    if result.status:
        yield f"exit status {result.status}"
    found = tracked.sizes(artifact)
    if program.drift:
        for i, what in enumerate(("allocations", "frees")):
            yield from within(what, sum(row[i] for row in expected.values()),
                              sum(row[i] for row in found.values()), program.drift)
    else:
        yield from tracked.differences("size", expected, found)


def same_as_valgrind(program, capture, oracle, env):
    _, ours = compare_valgrind.run_memtrack(program.command, capture,
                                            f"{program.name}.{capture}.valgrind.mtk", env,
                                            stdin=program.stdin)
    print(*(f"# {line}" for line in compare_valgrind.lines(oracle, ours)), sep="\n")
    for name, theirs, mine in compare_valgrind.pairs(oracle, ours):
        if not theirs or not mine:
            yield f"{name}: {mine}, not {theirs}"
            continue
        for key in compare_valgrind.FIGURES[:2]:
            yield from within(f"{name}: {key}", theirs[key], mine[key], program.slack)
        if program.exact_bytes:
            yield from within(f"{name}: bytes", theirs["bytes_allocated"],
                              mine["bytes_allocated"], 0)


def behaves(program, capture, alone, env):
    artifact = f"{program.name}.{capture}.mtk"
    result = tracked.track(program.command, capture, artifact, env=env, stdin=program.stdin)
    if result.status != alone.status:
        yield f"exit status {result.status}, not {alone.status}; says {result.err!r}"
    if result.out != alone.out:
        yield f"prints {result.out[-500:]!r}, not {alone.out[-500:]!r}"
    yield from tracked.losses(artifact)


def check(results, program, reasons):
    env = environment()
    if program.made:
        program.made()
    alone = tracked.run(program.command, program.stdin, env)
    oracle = None
    for capture, reason in reasons.items():
        title = f"{program.name}, {capture}"
        if reason:
            results.skip(title, reason)
            continue
        results.attempt(f"{title}: behaves as untracked, loses nothing", behaves, program,
                        capture, alone, env)
        results.attempt(f"{title}: every size as an independent counter has it",
                        same_as_counted, program, capture, env)
        if not compare_valgrind.valgrind():
            results.skip(f"{title}: as valgrind has it", "no valgrind")
            continue
        for_valgrind, for_memtrack = compare_valgrind.equal_environments(env, capture)
        if not oracle:
            _, oracle = compare_valgrind.run_valgrind(program.command, for_valgrind,
                                                      stdin=program.stdin)
        results.attempt(f"{title}: as valgrind has it", same_as_valgrind, program, capture,
                        oracle, for_memtrack)


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
