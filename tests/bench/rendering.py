# SPDX-License-Identifier: LGPL-2.1-or-later
# rendering.py - the table on standard output

COLUMNS = (
    # figure, head, width, how
    ("wall_s", "wall s", 7, "{:.2f}"),
    ("ratio", "ratio", 6, "{:.2f}"),
    ("unit_ns", "ns", 7, "{:.0f}"),
    ("added_ns", "added", 7, "{:.0f}"),
    ("whole_ns", "whole", 7, "{:.0f}"),
    ("loop_cpu_ns", "CPU ns", 7, "{:.0f}"),
    ("bpf_ns", "BPF ns", 6, "{:.0f}"),
    ("record_bytes", "record", 6, "{:.0f}"),
    ("sent_share", "sent %", 6, "{:.2%}"),
    ("no_record_share", "none %", 6, "{:.1%}"),
    ("collector_cpu_s", "coll s", 6, "{:.2f}"),
    ("collector_kib", "coll KiB", 8, "{:.0f}"),
    ("event_bytes", "B/event", 7, "{:.2f}"),
)

LEGEND = """\
wall s    the whole run, start and end of the tool included
ratio     to untracked: of the loop that the program times itself, else of wall s
ns        by the clock for a unit of work; added: what the tool adds to it; whole: what it
          adds to wall s, for a unit
CPU ns    of the program's own threads in that loop, for a unit
BPF ns    a run of the BPF program, in a run of its own with the kernel's statistics on
record    mean bytes of a stack record; sent %: bytes of all of them, of those of the
          windows of all allocations; none %: allocations that needed none
coll      the collector's CPU time and peak memory; B/event: bytes of what the tool
          leaves, for each allocation and each free of the workload"""


def _row(name, figures):
    cells = [how.format(figures[key]).rstrip("%") if key in figures else "-"
             for key, _, _, how in COLUMNS]
    return f"  {name:<15}" + "".join(f" {cell:>{column[2]}}"
                                     for cell, column in zip(cells, COLUMNS))


def _head():
    return f"  {'':<15}" + "".join(f" {head:>{width}}" for _, head, width, _ in COLUMNS)


def _workload(workload, base):
    """Two lines: what it is, what its unit is."""
    count = base.get("allocations")
    unit = "ns for an " if workload.unit[0] in "aeiou" else "ns for a "
    unit += workload.unit
    if count and workload.unit == "iteration" and base.get("units"):
        unit += f" of {count / base['units']:.1f} allocations"
    told = f"; {count:.0f} allocations in all" if count else ""
    return f"\n{workload.name} - {workload.title}\n  {unit}{told}"


def print_table(machine, rounds, missing, workloads, cells, bases):
    """missing: {name: why}; cells: {(workload's name, tool's name): (figures, problem)}"""
    print(f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory']}; "
          f"Linux {machine['kernel']}; {machine['system']}")
    print(f"Medians of {rounds} rounds.")
    for name, reason in missing.items():
        print(f"Left out: {name}: {reason}")
    print(LEGEND)
    for workload in workloads:
        print(_workload(workload, bases[workload.name]))
        print(_head())
        for (name, tool), (made, problem) in cells.items():
            if name != workload.name:
                continue
            print(_row(tool, made))
            if problem:
                print(f"  {tool}: {problem}")
