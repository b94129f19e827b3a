#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# bench.py - programs under nothing, memtrack and its peers, side by side
#
# Runs each program under each tool in turn, the whole round several times, so that a noisy
# machine disturbs all alike, and prints medians as ratios to the untracked time.  A peer that
# is not installed is named, not guessed.  Nothing here is a test: no figure fails anything.
#
# usage: bench.py BUILDDIR [--rounds=N] [--json=FILE]

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PYTHON = "/usr/bin/python3"
DICT = "d = {str(i): str(i * 7) for i in range(100000)}"


def programs(builddir, work):
    """Name, command, and what its environment has besides ours."""
    source = os.path.join(work, "bench.c")
    with open(source, "w") as file:
        for i in range(500):
            file.write("int f%d(int a, int b)\n{\n\treturn a * %d + b;\n}\n" % (i, i))
    return [
        ("python dict", [PYTHON, "-c", DICT], {"PYTHONMALLOC": "malloc"}),
        ("gcc -O2 -c", ["gcc", "-O2", "-c", source, "-o", os.path.join(work, "bench.o")], {}),
        ("stack_churn", [os.path.join(builddir, "fixtures/stack_churn")], {}),
    ]


def tools(builddir, artifact):
    """Name, command prefix, and the pattern of the file that it leaves."""
    run = [os.path.join(builddir, "collector/memtrack-run"), "-o", artifact]
    return [
        ("untracked", [], None),
        ("memtrack inline", run + ["--capture=inline", "--"], artifact),
        ("memtrack ebpf", run + ["--capture=ebpf", "--"], artifact),
        ("heaptrack", ["heaptrack", "-o", artifact], artifact + ".zst"),
    ]


def measure(prefix, command, env):
    """Wall seconds of one run; None if it failed."""
    begin = time.monotonic()
    done = subprocess.run(prefix + command, env=dict(os.environ, **env),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)
    wall = time.monotonic() - begin
    if done.returncode != 0:
        sys.stderr.write("bench: %s: status %d: %s\n" % (
            " ".join(prefix + command)[:120], done.returncode, done.stderr.decode()[:200]))
        return None
    return wall


def events_of(builddir, artifact):
    """Number of events in the artifact."""
    out = subprocess.run([os.path.join(builddir, "report/memtrack-report"), "--json",
                          "--top=1", artifact], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)["events"]


def run_all(options, work):
    """All rounds; a list of rows."""
    artifact = os.path.join(work, "artifact")
    rows = {}
    for _ in range(options.rounds):
        for program, command, env in programs(options.builddir, work):
            for tool, prefix, left in tools(options.builddir, artifact):
                if prefix and not shutil.which(prefix[0]):
                    continue
                row = rows.setdefault((program, tool), {
                    "program": program, "tool": tool, "walls": [], "bytes": None})
                wall = measure(prefix, command, env)
                if wall is not None:
                    row["walls"].append(wall)
                if left and os.path.exists(left):
                    row["bytes"] = os.path.getsize(left)
                    if tool.startswith("memtrack"):
                        row["events"] = events_of(options.builddir, left)
                    os.unlink(left)
    return list(rows.values())


def summarize(rows):
    """Adds medians and ratios."""
    for row in rows:
        row["median_s"] = statistics.median(row["walls"]) if row["walls"] else None
    base = {row["program"]: row["median_s"] for row in rows if row["tool"] == "untracked"}
    for row in rows:
        if row["median_s"] and base[row["program"]]:
            row["ratio"] = row["median_s"] / base[row["program"]]


def print_table(rows):
    print("%-14s %-16s %9s %8s %12s %10s" % (
        "program", "tool", "median s", "ratio", "file bytes", "B/event"))
    for row in rows:
        per_event = row["bytes"] / row["events"] if row.get("events") else None
        print("%-14s %-16s %9s %8s %12s %10s" % (
            row["program"], row["tool"],
            "%.3f" % row["median_s"] if row["median_s"] else "failed",
            "%.2f" % row["ratio"] if "ratio" in row else "-",
            row["bytes"] if row["bytes"] else "-",
            "%.2f" % per_event if per_event else "-"))


def main():
    parser = argparse.ArgumentParser(
        description="Programs under nothing, memtrack and its peers, side by side.")
    parser.add_argument("builddir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    options.builddir = os.path.abspath(options.builddir)
    for tool, prefix, _ in tools(options.builddir, ""):
        if prefix and not shutil.which(prefix[0]):
            print("not installed, left out: %s" % tool)
    with tempfile.TemporaryDirectory() as work:
        rows = run_all(options, work)
    summarize(rows)
    print_table(rows)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


main()
