# SPDX-License-Identifier: LGPL-2.1-or-later
# summary.py - figures in what programs print: memtrack-run's summary, a loop's own time

import re

# Of the lines of memtrack-run -v; each group is a figure under its name.
SUMMARY = [re.compile(line) for line in (
    r"capture: (?P<capture>\w+)",
    r"events: (?P<events>\d+)",
    r"artifact: (?P<artifact_bytes>\d+) bytes",
    r"stack records: (?P<records>\d+) for (?P<stacks>\d+) stacks",
    r"mean (?P<record_bytes>\d+) bytes for (?P<window_bytes>\d+)",
    r"mismatches (?P<mismatches>\d+)",
    r"kernel memory: (?P<kernel_kib>\d+) KiB",
    r"collector: (?P<collector_kib>\d+) KiB, (?P<collector_cpu_s>[0-9.]+) s of CPU",
    r"BPF: (?P<bpf_runs>\d+) runs, (?P<bpf_ns>\d+) ns each",
)]

MEASURED = re.compile(r"^measured wall (\d+) cpu (\d+) units (\d+)$", re.MULTILINE)

ATTACHED = re.compile(r"^attached: wall (\d+)$", re.MULTILINE)


def number(text):
    """text as a number, where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def of_memtrack(err):
    """The figures in a summary of memtrack-run, by name; none for what it does not say."""
    lines = "\n".join(line for line in err.splitlines() if line.startswith("memtrack-run: "))
    found = {}
    for pattern in SUMMARY:
        match = pattern.search(lines)
        if match:
            found.update((name, number(text)) for name, text in match.groupdict().items())
    return found


def of_loop(out):
    """What a program says of its own loop, a line that fixtures/churn.c describes: ns for a
    unit of work, by the clock and of CPU time; or nothing."""
    match = MEASURED.search(out)
    if not match:
        return {}
    wall, cpu, units = map(int, match.groups())
    return {"loop_ns": wall / units, "loop_cpu_ns": cpu / units, "units": units}


def of_attached(err):
    """The wall time that attached.py says, in place of that of a run with its set-up."""
    match = ATTACHED.search(err)
    return {"wall_s": int(match[1]) / 1e9} if match else {}
