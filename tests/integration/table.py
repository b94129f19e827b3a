# SPDX-License-Identifier: LGPL-2.1-or-later
# table.py - the rows of a *.tab beside the tests: columns between colons, # for comments

import os

HERE = os.path.dirname(os.path.abspath(__file__))


def rows(name, columns):
    with open(f"{HERE}/{name}", encoding="ascii") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            cells = [cell.strip() for cell in line.split(" :")]
            if len(cells) != columns:
                raise ValueError(f"{name}: {len(cells)} columns, not {columns}: {line}")
            yield cells
