# SPDX-License-Identifier: LGPL-2.1-or-later
# needs.py - what a row of cases.tab can need, and whether it is here
#
# A word is one of CHECKS, a library of LIBRARIES, or a program that is looked for in PATH.

import functools
import os
import re
import shutil
import subprocess

# Of whatever version.
LIBRARIES = {"jemalloc": "libjemalloc.so",
             "tcmalloc": "libtcmalloc_minimal.so",
             "mimalloc": "libmimalloc.so",
             "asan": "libasan.so"}


def succeeds(*command, stdin=b""):
    try:
        return subprocess.run(command, input=stdin, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False, timeout=60).returncode == 0
    except OSError:
        return False


def root():
    return os.geteuid() == 0


def compiles(*command):
    return succeeds(*command, "-x", "c", "-", "-o", "/dev/null",
                    stdin=b"#include <stdlib.h>\nint main(void) { return !malloc(1); }\n")


CHECKS = {
    "root": root,
    "userns": lambda: succeeds("unshare", "-Ur", "true"),
    "netns": lambda: succeeds("unshare", "-n", "true"),
    "pidns": lambda: succeeds("unshare", "-pf", "true"),
    "tmpfs": lambda: succeeds("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"),
    "m32": lambda: compiles(os.environ["CC"].split()[0], "-m32"),
    "static": lambda: compiles(os.environ["CC"].split()[0], "-static"),
    "openmp": lambda: compiles(os.environ["CC"].split()[0], "-fopenmp"),
    "musl": lambda: compiles("musl-gcc"),
    "timens": lambda: succeeds("unshare", "-T", "--monotonic", "9", "--boottime", "9", "true"),
    "jemalloc.a": lambda: compiles("gcc", "-l:libjemalloc.a"),
    "gcc": lambda: compiles("gcc"),
    "sanitizers": lambda: all(compiles("gcc", f"-fsanitize={name}")
                              for name in ("address", "thread", "leak")),
}


@functools.lru_cache(maxsize=None)
def library(word):
    """The path of a library, or None."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, check=False)
    found = re.search(rf"^\s{re.escape(LIBRARIES[word])}\.\d+ \(.*x86-64.* => (.*)$",
                      known.stdout.decode(), re.MULTILINE)
    return found and found[1]


@functools.lru_cache(maxsize=None)
def lacks(word):
    """Why it is not here, or None."""
    if word in LIBRARIES:
        return None if library(word) else f"no {LIBRARIES[word]}"
    if word in CHECKS:
        return None if CHECKS[word]() else f"no {word}"
    return None if shutil.which(word) else f"no {word}"
