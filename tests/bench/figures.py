# SPDX-License-Identifier: LGPL-2.1-or-later
# figures.py - what follows from the runs: medians, ratios, and costs of a unit of work
#
# A cell is a workload under a tool.  Its runs are dicts of raw values, those of running.Run
# and of summary.py; its figures are what the table shows.  A figure that can not be had is
# not there.

import statistics


def median(runs, name):
    values = [run[name] for run in runs if name in run]
    return statistics.median(values) if values else None


def medians(runs):
    """Of each raw value that is a number."""
    names = {name for run in runs for name, value in run.items()
             if isinstance(value, (int, float))}
    return {name: median(runs, name) for name in sorted(names)}


def _cost(workload, own, base):
    """ns by the clock for a unit, and how many of them are the tool's."""
    if workload.unit != "allocation":
        if "loop_ns" not in own or "loop_ns" not in base:
            return {}
        made = {"unit_ns": own["loop_ns"], "added_ns": own["loop_ns"] - base["loop_ns"],
                "ratio": own["loop_ns"] / base["loop_ns"]}
        if "wall_s" in own and "wall_s" in base:
            made["whole_ns"] = (own["wall_s"] - base["wall_s"]) * 1e9 / own["units"]
        return made
    if "wall_s" not in own or "wall_s" not in base:
        return {}
    made = {"ratio": own["wall_s"] / base["wall_s"]}
    if base.get("allocations"):
        each = 1e9 / base["allocations"]
        made.update(unit_ns=own["wall_s"] * each,
                    added_ns=(own["wall_s"] - base["wall_s"]) * each)
    return made


def _records(own):
    """What became of the captures: each allocation is one."""
    if not own.get("records") or not own.get("allocations"):
        return {}
    sent = own["records"] * own["record_bytes"]
    made = {"record_bytes": own["record_bytes"],
            "no_record_share": max(0, 1 - own["records"] / own["allocations"])}
    if "bpf_ns" in own:
        made["bpf_ns"] = own["bpf_ns"]
    if own.get("window_bytes"):
        made["sent_share"] = sent / (own["allocations"] * own["window_bytes"])
    return made


def of_cell(workload, own, base):
    """own, base: medians of the cell's runs and of the untracked ones; base also has events
    and allocations, which are the workload's."""
    made = {name: own[name] for name in ("wall_s", "loop_cpu_ns", "collector_cpu_s",
                                         "collector_kib", "kernel_kib") if name in own}
    made.update(_cost(workload, own, base))
    made.update(_records(own))
    if own.get("left_bytes") and base.get("events"):
        made["event_bytes"] = own["left_bytes"] / base["events"]
    return made
