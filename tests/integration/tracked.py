# SPDX-License-Identifier: LGPL-2.1-or-later
# tracked.py - commands run alone and under memtrack-run, and what memtrack-report says
#
# builddir, from make, says where the programs are.  Files come to lie in the working
# directory, which is the test's own.

import collections
import contextlib
import ctypes
import functools
import json
import os
import re
import signal
import subprocess
import time

BUILD = os.environ["builddir"]
RUN = f"{BUILD}/collector/memtrack-run"
REPORT = f"{BUILD}/report/memtrack-report"
STATUS_INCOMPLETE = 3  # of memtrack-report
CAPTURES = ("ebpf", "inline")
SECONDS = 120
# What is left of a run goes by itself, if it is to go.
PATIENCE_SECONDS = 30

# Who called sudo is whom memtrack-run would make of the command.
for variable in ("SUDO_UID", "SUDO_GID"):
    os.environ.pop(variable, None)

ADDR_NO_RANDOMIZE = 0x0040000
_LIBC = ctypes.CDLL(None)


def keep_places():
    """A preexec_fn: stack and heap lie where they did the time before, if that may be asked
    for.  For figures that follow from where things lie."""
    _LIBC.personality(ADDR_NO_RANDOMIZE)


Result = collections.namedtuple("Result", "status out err")


def shell_status(returncode):
    """As a shell has it: 128 + n for a signal."""
    return returncode if returncode >= 0 else 128 - returncode


def run(command, stdin=b"", env=None, seconds=SECONDS, **options):
    """Runs a command in a process group of its own, which a time-out kills."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env, start_new_session=True,
                          **options) as process:
        try:
            out, err = process.communicate(stdin, seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise RuntimeError(f"{command}: not done after {seconds} s, said {err!r}") from None
    return Result(shell_status(process.returncode), out, err)


@contextlib.contextmanager
def unread_pipe():
    """The writing end of a pipe that is full, and that nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while os.write(writer, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    try:
        yield writer
    finally:
        os.close(writer)
        os.close(reader)


def eventually(function):
    """Waits for function() to be true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not function():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def statistics(path):
    """The rows of a file that --stats named."""
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def track(command, capture, artifact, options=(), **others):
    return run([RUN, "-o", artifact, f"--capture={capture}", *options, "--", *command],
               **others)


def report(artifact, *options):
    """What memtrack-report says as JSON; asked once for each state of a file.  One that is
    cut or damaged is reported, too."""
    stat = os.stat(artifact)
    return _report(artifact, (stat.st_ino, stat.st_mtime_ns), options)


@functools.lru_cache(maxsize=16)
def _report(artifact, _, options):
    result = run([REPORT, "--json", *options, artifact])
    if result.status not in (0, STATUS_INCOMPLETE):
        raise RuntimeError(f"memtrack-report exits with {result.status}: {result.err!r}")
    told = json.loads(result.out)
    if (told["problem"] is None) != (result.status == 0):
        raise RuntimeError(f"memtrack-report exits with {result.status}, and says that the "
                           f"problem is {told['problem']}")
    return told


def missing(capture):
    """Why this capture can not be tested here, or None."""
    if capture != "ebpf":
        return None
    if not os.path.exists(f"{BUILD}/tests/bpf_works"):
        return "no BPF: built without"
    works = run([f"{BUILD}/tests/bpf_works"])
    return None if works.status == 0 else "no BPF: " + works.out.decode().strip()


def sizes(artifact):
    """{size: (allocations, frees)}"""
    return {row["size"]: (row["allocations"], row["frees"])
            for row in report(artifact, "--by=size")["sizes"]}


def allocation_chains(artifact):
    """Every chain that allocated: dicts of bytes, count, chain, stop."""
    return report(artifact, "--top=100000000")["top_allocations"]


def short_name(frame):
    """A frame's function without scope, arguments and the compiler's suffixes; '' for none."""
    name = frame["function"] or ""
    name = re.sub(r"\(anonymous namespace\)::", "", name)
    return re.sub(r"[.(].*", "", name).split("::")[-1]


def losses(artifact):
    totals = report(artifact)
    for key in ("lost_events", "lost_stacks"):
        if totals[key]:
            yield f"{key}: {totals[key]}"


def differences(what, expected, found):
    """The keys under which two dicts differ, as problems."""
    for key in sorted(set(expected) | set(found), key=str):
        if expected.get(key) != found.get(key):
            yield f"{what} {key}: {found.get(key)}, not {expected.get(key)}"
