# SPDX-License-Identifier: LGPL-2.1-or-later
# relatives.py - the processes below another

import os


def children(tgid):
    """{tgid: name}"""
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
        if int(rest.split()[1]) == tgid:
            found[int(entry)] = name
    return found


def find_collector(tgid):
    """The one below memtrack-run; names are cut after 15 bytes."""
    below = children(tgid)
    for child in list(below):
        below.update(children(child))
    found = [child for child, name in below.items() if name == "memtrack-collector"[:15]]
    if len(found) != 1:
        raise RuntimeError(f"not one collector below memtrack-run: {below}")
    return found[0]
