# SPDX-License-Identifier: LGPL-2.1-or-later
# job_control.py - memtrack-run as the job of a shell at a terminal: in the foreground, ended
# by Ctrl-C, stopped by Ctrl-Z and continued, in the background

import os
import pty
import re
import select
import shlex
import time

import ledger
import tracked

PROMPT = b"prompt> "
SECONDS = 60


class Terminal:
    """An interactive bash behind a terminal of its own."""

    def __init__(self):
        self.said = b""
        self.shell, self.fd = pty.fork()
        if self.shell == 0:
            env = {**os.environ, "PS1": PROMPT.decode(), "HISTFILE": "/dev/null"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], env)
        self.until(re.escape(PROMPT))
        self.enter("stty -echo")

    def until(self, pattern):
        """What is said up to a pattern, which has to come."""
        end = time.monotonic() + SECONDS
        while True:
            found = re.search(pattern, self.said)
            if found:
                said, self.said = self.said[:found.end()], self.said[found.end():]
                return said
            if time.monotonic() > end:
                raise RuntimeError(f"no {pattern!r} in {self.said!r}")
            if select.select([self.fd], [], [], 1)[0]:
                self.said += os.read(self.fd, 65536)

    def send(self, text):
        os.write(self.fd, text.encode())

    def enter(self, line):
        """What a line's command says until there is a prompt again."""
        self.send(line + "\n")
        return self.until(re.escape(PROMPT))

    def close(self):
        self.send("exit\n")
        os.waitpid(self.shell, 0)
        os.close(self.fd)


def in_foreground(terminal, command):
    said = terminal.enter(f"{command} fixtures/malloc_free; echo status=$?")
    if b"status=0" not in said or b"topped" in said or b"[1]" in said:
        yield f"in the foreground: {said!r}"
    if not ledger.Ledger(said.replace(b"\r", b"")).totals["allocations"]:
        yield f"its output is {said!r}"
    if os.tcgetpgrp(terminal.fd) != terminal.shell:
        yield f"the terminal is not the shell's but of group {os.tcgetpgrp(terminal.fd)}"


def interrupted(terminal, command):
    terminal.send(f"{command} fixtures/long_runner; echo status=$?\n")
    terminal.until(b"ready")
    terminal.send("\x03")
    said = terminal.until(rb"status=\d+")
    if not said.endswith(b"=130"):
        yield f"after Ctrl-C: {said!r}"
    terminal.until(re.escape(PROMPT))
    said = terminal.enter("jobs; echo after")
    if b"topped" in said or b"unning" in said:
        yield f"after Ctrl-C there are jobs: {said!r}"


def stopped(terminal, command):
    terminal.send(f"{command} fixtures/long_runner\n")
    terminal.until(b"ready")
    terminal.send("\x1a")
    said = terminal.until(re.escape(PROMPT))
    if b"topped" not in said:
        yield f"after Ctrl-Z: {said!r}"
    said = terminal.enter("jobs")
    if b"topped" not in said:
        yield f"stopped, but does not stay so: {said!r}"
    terminal.send("fg; echo status=$?\n")
    terminal.until(b"long_runner")
    terminal.send("\x04")
    said = terminal.until(rb"status=\d+")
    if not said.endswith(b"=0"):
        yield f"after fg: {said!r}"
    terminal.until(re.escape(PROMPT))


def in_background(terminal, command):
    said = terminal.enter(f"{command} fixtures/malloc_free > out & wait $!; echo status=$?")
    if b"status=0" not in said or b"topped" in said:
        yield f"in the background: {said!r}"


def job_control(capture):
    os.symlink(f"{tracked.BUILD}/fixtures", "fixtures")
    terminal = Terminal()
    for i, play in enumerate((in_foreground, interrupted, stopped, in_background)):
        artifact = os.path.abspath(f"job{i}.mtk")
        command = shlex.join([tracked.RUN, "-o", artifact, f"--capture={capture}", "--"])
        yield from play(terminal, command)
        yield from tracked.losses(artifact)
        if not tracked.report(artifact)["complete"]:
            yield f"{play.__name__}: the artifact is not complete"
    terminal.close()
