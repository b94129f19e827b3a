# SPDX-License-Identifier: LGPL-2.1-or-later
# replay.py - real programs' stacks, recorded, then replayed through the stack codec
#
# record_windows.so writes each allocation's window to files; replay_stacks encodes them as
# the shim does, decodes and verifies. builddir and srcdir, from make, say where things are.

import argparse
import json
import os
import sys
import tempfile

import arguments
import machine
import running
import workloads

BUILD = os.environ["builddir"]
RECORDER = f"{BUILD}/tests/bench/.libs/record_windows.so"
REPLAY = f"{BUILD}/tests/bench/replay_stacks"
BUDGETS = (8192, 32768)
SECONDS = 300
# Of each process of the mix, so that none of its programs is most of it.
MIX_LIMIT = 80000
LOOP_ITERATIONS = 8000
# Where a stack lies is another place in each process, and bytes follow from it.
LOOP_PROCESSES = 5

LEGEND = """\
raw       bytes of all windows; sent: of their records, a window that is known has none
raw/sent  the ratio; mean: bytes of a record; none %: captures that needed none
encode    compare, encode, look up and commit, for a window with a record; known: the
          same for one without; decode: decode and verify; medians in ns"""


def git_history(directory):
    """A repository with a commit for each of some files, and its options for git."""
    repository = f"{directory}/repository"
    git = ["git", "-C", repository, "-c", "user.name=x", "-c", "user.email=x@example.com",
           "-c", "commit.gpgsign=false"]
    running.must_run(["git", "init", "-q", repository])
    sources = f"{os.environ['srcdir']}/collector"
    for name in sorted(os.listdir(sources)):
        if not name.endswith((".c", ".h")):
            continue
        with open(f"{sources}/{name}", encoding="utf-8") as file:
            lines = file.readlines()
        with open(f"{repository}/{name}", "w", encoding="utf-8") as file:
            file.writelines(lines)
        with open(f"{repository}/all", "a", encoding="utf-8") as file:
            file.writelines(lines[::2])
        running.must_run([*git, "add", "."])
        running.must_run([*git, "commit", "-q", "-m", f"add {name}"])
    return git


def mix(directory):
    """Commands that other people's programs are run by."""
    with open(f"{directory}/lines", "w", encoding="ascii") as file:
        file.writelines(f"{number * 7919 % 100003} line\n" for number in range(100000))
    compile_ = workloads.everything(directory, True)["gcc"].command
    return [
        compile_,
        [*git_history(directory), "log", "-p", "--stat", "-M"],
        ["find", "/usr/lib", "/usr/share", "-name", "*.h", "-size", "+1k"],
        ["sort", "-n", "--parallel=2", "-S", "1M", f"{directory}/lines"],
        ["ls", "-lR", "/usr/share", "/usr/lib"],
    ]


def loop():
    python, script = workloads.PYTHON, f"{workloads.HERE}/python_loop.py"
    return [[python, script, str(LOOP_ITERATIONS)]] * LOOP_PROCESSES


def record(directory, commands, limit):
    """Runs the commands; the files that came of it."""
    env = {"WINDOWS_PREFIX": f"{directory}/windows", "WINDOWS_LIMIT": str(limit),
           "LD_PRELOAD": RECORDER, "PYTHONMALLOC": "malloc"}
    for command in commands:
        running.run(command, env, SECONDS)
    return sorted(f"{directory}/{name}" for name in os.listdir(directory)
                  if name.startswith("windows."))


def replay(files, budget):
    out = running.must_run([REPLAY, str(budget), *files], seconds=SECONDS).out
    found = {name: int(value) for name, value in map(str.split, out.splitlines())}
    captures, records = found["captures"], found["records"]
    return dict(found, budget=budget, ratio=found["raw_bytes"] / found["record_bytes"],
                mean_record=found["record_bytes"] / records,
                mean_window=found["raw_bytes"] / captures,
                none_share=1 - records / captures)


def print_rows(rows):
    print(LEGEND)
    print(f"\n  {'':<8} {'budget':>6} {'captures':>9} {'window':>6} {'raw MB':>7} {'sent MB':>7} "
          f"{'raw/sent':>8} {'mean':>6} {'none %':>6} {'encode':>6} {'known':>6} {'decode':>6}")
    for name, row in rows:
        print(f"  {name:<8} {row['budget'] // 1024:>5}K {row['captures']:>9} "
              f"{row['mean_window']:>6.0f} {row['raw_bytes'] / 1e6:>7.1f} "
              f"{row['record_bytes'] / 1e6:>7.1f} {row['ratio']:>8.1f} "
              f"{row['mean_record']:>6.1f} {100 * row['none_share']:>6.2f} "
              f"{row['encode_ns']:>6} {row['known_ns']:>6} {row['decode_ns']:>6}")


def main():
    parser = argparse.ArgumentParser(
        description="Stacks of real programs through the codec, offline.")
    parser.add_argument("--json", type=arguments.writable, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for name, commands, limit in (("python", lambda _: loop(), 10 ** 9),
                                  ("mix", mix, MIX_LIMIT)):
        with tempfile.TemporaryDirectory(prefix="memtrack-replay.") as directory:
            files = record(directory, commands(directory), limit)
            rows += [(name, replay(files, budget)) for budget in BUDGETS]
    print_rows(rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine.describe(),
                       "rows": [dict(row, programs=name) for name, row in rows]}, file, indent=1)
            file.write("\n")


try:
    main()
except running.Failure as failure:
    sys.exit(f"replay.py: {failure}")
