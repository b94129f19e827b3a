# SPDX-License-Identifier: LGPL-2.1-or-later
# python_loop.py - objects that come and go, in a loop that times itself
#
# The argument is the number of iterations.  Each makes an object with a name, a list and a
# tuple in it, enters it in a dictionary, and takes one that is 5000 iterations old out; the
# last line is as fixtures/churn.c has it.

import sys
import time

LIVE = 5000


class Entry:
    def __init__(self, number):
        self.name = "entry %d" % number
        self.parts = [number * 1000003, number + 0.5]
        self.key = (self.name, number)


def loop(count):
    table = {}
    for number in range(count):
        table[number] = Entry(number)
        if number >= LIVE:
            del table[number - LIVE]


def main():
    count = int(sys.argv[1])
    cpu = time.thread_time_ns()
    begin = time.monotonic_ns()
    loop(count)
    print("measured wall %d cpu %d units %d" % (
        time.monotonic_ns() - begin, time.thread_time_ns() - cpu, count))


main()
