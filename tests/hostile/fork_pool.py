# SPDX-License-Identifier: LGPL-2.1-or-later
# fork_pool.py - a pool of forked workers, and an interpreter that frees late
#
# A bytearray takes a byte more than it is asked for.

import multiprocessing

PARENT_BYTES = 1023151
WORKER_BYTES = 1023152
TASKS = 12


def work(number):
    return sum(bytearray([number]) * WORKER_BYTES) % 1000


def main():
    kept = [bytearray(PARENT_BYTES) for _ in range(10)]
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        results = pool.map(work, range(TASKS))
        pool.close()
        pool.join()
    if results != [number * WORKER_BYTES % 1000 for number in range(TASKS)]:
        raise SystemExit(f"results are {results}")
    print(len(kept), results)


if __name__ == "__main__":
    main()
