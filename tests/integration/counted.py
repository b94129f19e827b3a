# SPDX-License-Identifier: LGPL-2.1-or-later
# counted.py - allocations by size as count_preload.c counts them

import os
import struct

import tracked

ROWS = 65536
ROW = struct.Struct("=QQQ")
LIBRARY = f"{tracked.BUILD}/tests/integration/.libs/count_preload.so"


def count(command, env=None, **options):
    """(result, {size: (allocations, frees)})"""
    path = os.path.abspath("count")
    with open(path, "wb") as file:
        file.truncate(ROWS * ROW.size)
    result = tracked.run(command, env={**(os.environ if env is None else env),
                                       "LD_PRELOAD": LIBRARY, "COUNT_FILE": path}, **options)
    with open(path, "rb") as file:
        rows = ROW.iter_unpack(file.read())
    return result, {row[0] - 1: row[1:] for row in rows if row[0]}
