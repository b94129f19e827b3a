# SPDX-License-Identifier: LGPL-2.1-or-later
# attached.py - a command, run under a tool that can only be attached to a process
#
# usage: attached.py TOOL ARGUMENT... -- COMMAND ARGUMENT...
#
# {} among the tool's arguments is the process's number.  The command is held at its first
# instruction until the tool has its perf events, of which uprobes are a kind: their number
# is more than 0 and does not change any more.  When the command has ended the tool is
# interrupted.  The exit status is the command's; the last line on standard error is
# "attached: wall NS", the time that it took by itself.

import os
import signal
import subprocess
import sys
import time

SECONDS = 60
SETTLED_S = 1.0
LOOK_S = 0.05


def start_stopped(command):
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execvp(command[0], command)
    os.waitpid(child, os.WUNTRACED)
    return child


def perf_events(tgid):
    directory = f"/proc/{tgid}/fd"
    count = 0
    for name in os.listdir(directory):
        try:
            count += "perf_event" in os.readlink(f"{directory}/{name}")
        except FileNotFoundError:
            pass
    return count


def wait_until_attached(tool):
    """False if it ended, or never attached."""
    count, since, begin = 0, time.monotonic(), time.monotonic()
    while time.monotonic() - begin < SECONDS and tool.poll() is None:
        now = perf_events(tool.pid)
        if now != count:
            count, since = now, time.monotonic()
        if count and time.monotonic() - since > SETTLED_S:
            return True
        time.sleep(LOOK_S)
    return False


def main():
    split = sys.argv.index("--")
    child = start_stopped(sys.argv[split + 1:])
    words = [word.replace("{}", str(child)) for word in sys.argv[1:split]]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tool:
        attached = wait_until_attached(tool)
        begin = time.monotonic_ns()
        os.kill(child, signal.SIGCONT if attached else signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        wall_ns = time.monotonic_ns() - begin
        tool.send_signal(signal.SIGINT)
    if not attached:
        sys.exit(f"attached.py: {words[0]} did not attach")
    print(f"attached: wall {wall_ns}", file=sys.stderr)
    sys.exit(os.waitstatus_to_exitcode(status))


main()
