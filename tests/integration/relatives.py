# SPDX-License-Identifier: LGPL-2.1-or-later
# relatives.py - the processes below another

import os


def _all():
    """{tgid: (parent, name)}"""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
        except OSError:
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        found[int(entry)] = (int(rest.split()[1]), name)
    return found


def children(tgid):
    """{tgid: name}"""
    return {child: name for child, (parent, name) in _all().items() if parent == tgid}


def descendants(tgid):
    """{tgid: name}"""
    everybody = _all()
    below, more = {}, [tgid]
    while more:
        parents, more = set(more), []
        for child, (parent, name) in everybody.items():
            if parent in parents and child not in below:
                below[child] = name
                more.append(child)
    return below


def state_of(tgid):
    """The letter of proc(5); '' for no such process."""
    try:
        with open(f"/proc/{tgid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def find_collector(tgid):
    """The one below memtrack-run; names are cut after 15 bytes."""
    below = descendants(tgid)
    found = [child for child, name in below.items() if name == "memtrack-collector"[:15]]
    if len(found) != 1:
        raise RuntimeError(f"not one collector below memtrack-run: {below}")
    return found[0]
