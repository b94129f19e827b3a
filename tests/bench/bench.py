# SPDX-License-Identifier: LGPL-2.1-or-later
# bench.py - programs under nothing, memtrack and its peers, side by side
#
# Runs each program under each tool in turn, the whole round several times, forwards and
# backwards, so that what else the machine does disturbs all alike.  What is not there is
# named, not guessed.  Nothing here is a test: no figure fails anything.
#
# builddir, from make, says where the programs are.

import argparse
import json
import os
import shutil
import sys
import tempfile

import arguments
import figures
import machine
import rendering
import running
import summary
import tools
import workloads

REPORT = f"{workloads.BUILD}/report/memtrack-report"
BPF_STATS = f"{workloads.BUILD}/tests/bench/bpf_stats"


class Cell:
    """A workload under a tool, and what came of its runs."""

    def __init__(self, workload, tool):
        self.workload = workload
        self.tool = tool
        self.runs = []
        self.with_stats = {}
        self.problem = None

    def measure(self, directory, seconds, before=()):
        """One run; the raw values, and what the tool left in the directory."""
        os.makedirs(directory)
        command = [*before, *self.tool.prefix(directory), *self.workload.command]
        env = dict(self.workload.env, **self.tool.env(directory))
        result = running.must_run(command, env, seconds)
        run = {"wall_s": result.wall_s, "cpu_s": result.cpu_s, "left_bytes": size_of(directory)}
        run.update(summary.of_loop(result.out))
        run.update(summary.of_attached(result.err))
        if tools.is_memtrack(self.tool.name):
            run.update(summary.of_memtrack(result.err))
        return run

    def attempt(self, work, seconds):
        """One more run, unless one failed before."""
        directory = f"{work}/left"
        if self.problem:
            return
        try:
            run = self.measure(directory, seconds)
            if tools.is_memtrack(self.tool.name):
                run["allocations"] = self.allocations(directory, run)
            self.runs.append(run)
        except (running.Failure, OSError) as failure:
            self.problem = str(failure)
        shutil.rmtree(directory, ignore_errors=True)

    def allocations(self, directory, run):
        """The report counts them; once, because it counts the same each time."""
        if "allocations" in run:
            return run["allocations"]
        if self.runs:
            return self.runs[0]["allocations"]
        told = running.must_run([REPORT, "--json", "--top=1", f"{directory}/memtrack.mtk"])
        return json.loads(told.out)["allocations"]

    def attempt_stats(self, work, seconds):
        """One run with the kernel's statistics, whose time is not taken."""
        if self.problem or not tools.is_ebpf(self.tool.name) or not os.path.exists(BPF_STATS):
            return
        directory = f"{work}/left"
        try:
            run = self.measure(directory, seconds, [BPF_STATS])
            self.with_stats = {name: run[name] for name in ("bpf_ns", "bpf_runs") if name in run}
        except (running.Failure, OSError) as failure:
            self.problem = f"with BPF statistics: {failure}"
        shutil.rmtree(directory, ignore_errors=True)

    def medians(self):
        return dict(figures.medians(self.runs), **self.with_stats)


def size_of(directory):
    return sum(os.path.getsize(os.path.join(path, name))
               for path, _, names in os.walk(directory) for name in names)


def choose(what, everything, wanted):
    """Those of a dict that were asked for, in its order."""
    for name in wanted:
        if name not in everything:
            sys.exit(f"bench.py: no {what} '{name}'; there are: {', '.join(everything)}")
    return [thing for name, thing in everything.items() if name in wanted]


def sort_out(things, missing):
    """Those that can be had, and {name: why not} of the others."""
    reasons = {thing.name: missing(thing) for thing in things}
    return ([thing for thing in things if not reasons[thing.name]],
            {name: reason for name, reason in reasons.items() if reason})


def run_all(cells, rounds, work, seconds):
    for number in range(rounds):
        for cell in cells if number % 2 == 0 else cells[::-1]:
            cell.attempt(work, seconds)
        print(f"bench: round {number + 1} of {rounds} is done", file=sys.stderr, flush=True)
    for cell in cells:
        cell.attempt_stats(work, seconds)


def base_of(workload, cells):
    """Medians of the untracked runs, with the numbers that only memtrack's runs tell."""
    base = {}
    for cell in cells:
        if cell.workload is workload and cell.tool.name == "untracked":
            base.update(cell.medians())
    for cell in cells:
        if cell.workload is workload and tools.is_memtrack(cell.tool.name):
            found = cell.medians()
            base.update({name: found[name] for name in ("events", "allocations")
                         if name in found and name not in base})
    return base


def write_json(path, made, rounds, missing, cells, results):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"machine": made, "rounds": rounds, "missing": missing, "cells": [{
            "workload": cell.workload.name,
            "workload_command": cell.workload.command,
            "unit": cell.workload.unit,
            "tool": cell.tool.name,
            "tool_command": cell.tool.prefix("DIRECTORY"),
            "tool_environment": cell.tool.env("DIRECTORY"),
            "problem": cell.problem,
            "runs": cell.runs,
            "figures": results[cell.workload.name, cell.tool.name][0],
        } for cell in cells]}, file, indent=1)
        file.write("\n")


def parse_options():
    def names(text):
        return text.split(",")

    parser = argparse.ArgumentParser(
        description="Programs under nothing, memtrack and its peers, side by side.")
    parser.add_argument("--quick", action="store_true", help="the subset that matters, once over")
    parser.add_argument("--rounds", type=arguments.positive, help="default: 5, with --quick 3")
    parser.add_argument("--workloads", type=names, metavar="NAME,...")
    parser.add_argument("--tools", type=names, metavar="NAME,...")
    parser.add_argument("--seconds", type=arguments.positive, default=120,
                        help="most that a run may take")
    parser.add_argument("--json", type=arguments.writable, metavar="FILE", help="all raw values")
    return parser.parse_args()


def main():
    options = parse_options()
    rounds = options.rounds or (3 if options.quick else 5)
    all_tools = tools.everything()
    with tempfile.TemporaryDirectory(prefix="memtrack-bench.") as work:
        all_workloads = workloads.everything(work, options.quick)
        chosen, no_workloads = sort_out(
            choose("workload", all_workloads, options.workloads or
                   (workloads.QUICK if options.quick else all_workloads)), workloads.missing)
        used, no_tools = sort_out(
            choose("tool", all_tools, options.tools or
                   (tools.QUICK if options.quick else all_tools)), lambda tool: tool.missing())
        missing = {**no_workloads, **no_tools}
        cells = [Cell(workload, tool) for workload in chosen for tool in used]
        made = machine.describe()
        run_all(cells, rounds, work, options.seconds)
    bases = {workload.name: base_of(workload, cells) for workload in chosen}
    results = {(cell.workload.name, cell.tool.name):
               (figures.of_cell(cell.workload, cell.medians(), bases[cell.workload.name]),
                cell.problem) for cell in cells}
    rendering.print_table(made, rounds, missing, chosen, results, bases)
    if options.json:
        write_json(options.json, made, rounds, missing, cells, results)


main()
