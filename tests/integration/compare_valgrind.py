#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# compare_valgrind.py - memtrack's figures of a command next to valgrind's, by process
#
# usage: builddir=BUILD compare_valgrind.py [--capture=ebpf|inline] COMMAND [ARGUMENT...]
#
# Both run the command with environments of equal shape, because programs copy theirs: for
# each variable that one tool adds, the other run has one of the same lengths.  valgrind is
# asked not to free glibc's own memory at exit, which no program does by itself.

import os
import re
import shutil
import sys

import tracked

FIGURES = ("allocations", "frees", "bytes_allocated")
HEAP = re.compile(r"total heap usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes")


def valgrind():
    """Debian's valgrind is a script that sets variables, and valgrind.bin the program."""
    return shutil.which("valgrind.bin") or shutil.which("valgrind")


def valgrind_command(command):
    return [valgrind(), "--tool=memcheck", "--leak-check=no", "--undef-value-errors=no",
            "--run-libc-freeres=no", "--run-cxx-freeres=no", "--trace-children=yes",
            "--trace-children-skip=/usr/bin/uname", "--log-file=valgrind.%p", *command]


def read_log(path):
    """(program, figures), or None for a process that ended in an exec."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    command = re.search(r"^==\d+== Command: (\S+)", text, re.M)
    heap = HEAP.search(text)
    if not command or not heap:
        return None
    figures = [int(number.replace(",", "")) for number in heap.groups()]
    return os.path.basename(os.path.realpath(command[1])), dict(zip(FIGURES, figures))


def run_valgrind(command, env, **options):
    """(result, [(program, figures)])"""
    for name in os.listdir("."):
        if name.startswith("valgrind."):
            os.unlink(name)
    result = tracked.run(valgrind_command(command), env=env, **options)
    logs = [read_log(name) for name in sorted(os.listdir(".")) if name.startswith("valgrind.")]
    return result, [log for log in logs if log]


def read_artifact(artifact):
    """[(program, figures)], without processes that allocated nothing"""
    rows = tracked.report(artifact, "--by=process")["by_process"]
    return [(os.path.basename(row["exe"]), {key: row[key] for key in FIGURES})
            for row in rows if row["allocations"]]


def added(wrapped, env):
    """The variables that a tool adds to an environment."""
    out = tracked.run(wrapped(["/usr/bin/env", "-0"]), env=env).out
    variables = dict(os.fsdecode(variable).split("=", 1) for variable in out.split(b"\0")[:-1])
    return {name: value for name, value in variables.items() if env.get(name) != value}


def added_by_valgrind(env):
    return added(valgrind_command, env)


def added_by_memtrack(env, capture):
    return added(lambda command: [tracked.RUN, "-o", "environment.mtk",
                                  f"--capture={capture}", "--", *command], env)


def level(env, *tools):
    """For each tool, of which the variables that it adds are given, an environment: in it,
    variables of the same lengths stand in for those that the others add."""
    for mine in range(len(tools)):
        stand_ins = {name[:-1] + str(other): "+" * len(value)
                     for other, variables in enumerate(tools) if other != mine
                     for name, value in variables.items()}
        yield {**env, **stand_ins}


def pairs(valgrinds, memtracks):
    """[(program, valgrind's figures, memtrack's figures)], matched by program and order"""
    rest = list(memtracks)
    for program, figures in valgrinds:
        match = next((row for row in rest if row[0] == program), None)
        if match:
            rest.remove(match)
        yield program, figures, match[1] if match else {}
    for program, figures in rest:
        yield program, {}, figures


def lines(valgrinds, memtracks):
    yield f"{'process':26}{'':17}{'valgrind':>14}{'memtrack':>14}{'difference':>12}"
    for program, theirs, ours in pairs(valgrinds, memtracks):
        for key in FIGURES:
            one, other = theirs.get(key), ours.get(key)
            both = one is not None and other is not None
            yield (f"{program:26}{key:17}{one if one is not None else '-':>14}"
                   f"{other if other is not None else '-':>14}"
                   f"{other - one if both else '-':>12}")


def main():
    arguments = sys.argv[1:]
    capture = "inline"
    if arguments and arguments[0].startswith("--capture="):
        capture = arguments.pop(0).partition("=")[2]
    if not arguments or not valgrind():
        sys.exit("usage: compare_valgrind.py [--capture=ebpf|inline] COMMAND [ARGUMENT...]"
                 if valgrind() else "compare_valgrind.py: no valgrind here")
    env = dict(os.environ)
    for_valgrind, for_memtrack = level(env, added_by_valgrind(env),
                                       added_by_memtrack(env, capture))
    _, theirs = run_valgrind(arguments, for_valgrind)
    tracked.track(arguments, capture, "compare_valgrind.mtk", env=for_memtrack)
    print(*lines(theirs, read_artifact("compare_valgrind.mtk")), sep="\n")


if __name__ == "__main__":
    main()
