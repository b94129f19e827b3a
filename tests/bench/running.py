# SPDX-License-Identifier: LGPL-2.1-or-later
# running.py - one command, run to its end or to a time-out, and what it took

import collections
import os
import resource
import signal
import subprocess
import time

# Who called sudo is whom memtrack-run would make of the command.
for variable in ("SUDO_UID", "SUDO_GID"):
    os.environ.pop(variable, None)

# cpu_s: of the command and of all processes that were waited for below it.
Run = collections.namedtuple("Run", "status out err wall_s cpu_s")


class Failure(Exception):
    """The command failed, or was not done in time."""


def _children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, env=None, seconds=120):
    """Runs a command in a process group of its own, which a time-out kills."""
    cpu = _children_cpu()
    begin = time.monotonic()
    with subprocess.Popen(command, env=dict(os.environ, **(env or {})),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failure(f"not done after {seconds} s") from None
    wall = time.monotonic() - begin
    return Run(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"),
               wall, _children_cpu() - cpu)


def must_run(command, env=None, seconds=120):
    """As run(), but a status that is not 0 is a failure."""
    result = run(command, env, seconds)
    if result.status:
        lines = result.err.strip().splitlines() or [""]
        raise Failure(f"status {result.status}: {lines[-1][:160]}")
    return result
