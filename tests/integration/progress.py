# SPDX-License-Identifier: LGPL-2.1-or-later
# progress.py - the line that memtrack-run shows on a terminal, and where it shows none
#
# The terminal is a pty; what is left on its screen is what a small emulator makes of it.

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import ledger
import tap
import tracked

QUIET_SECONDS = 2  # as memtrack-run's manual says
DRAWINGS = 4
LINE = re.compile(rb"\r\x1b\[Kmemtrack: ([\d,]+) events, ([\d,]+) chains, (\d+\.\d [KMG]iB)"
                  rb"(?:, paused)?(?=\r)")
WORD = b"memtrack: "
RUNNER = [f"{tracked.BUILD}/fixtures/long_runner"]
LONG = ["sleep", str(QUIET_SECONDS + 1)]
CONTROL_Z = b"\x1a"


def screen(written):
    """The lines that are on an endless screen behind these bytes, but for empty ones."""
    lines, column = [""], 0
    for token in re.findall(r"\x1b\[K|.", written.decode("ascii", "replace"), re.DOTALL):
        if token == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif token == "\r":
            column = 0
        elif token == "\n":
            lines.append("")
        else:
            lines[-1] = lines[-1][:column].ljust(column) + token + lines[-1][column + 1:]
            column += 1
    return [line for line in lines if line.strip()]


class Terminal:
    """A pty whose session is that of the command: on its standard error, not on the others."""

    def __init__(self, command, columns=80, canonical=True, env=None):
        self.written = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        settings = termios.tcgetattr(slave)
        settings[3] |= termios.TOSTOP
        if not canonical:
            settings[3] &= ~termios.ICANON
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=slave,
            env={**os.environ, "TERM": "xterm", **(env or {})}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0))
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        os.close(self.master)

    def _read(self, seconds):
        """Returns whether the terminal is still open."""
        if not select.select([self.master], [], [], seconds)[0]:
            raise RuntimeError(f"nothing happens any more, on the terminal: {self.written!r}")
        try:
            some = os.read(self.master, 65536)
        except OSError:  # as Linux says that nobody has the other end open
            some = b""
        self.written += some
        return bool(some)

    def wait_for(self, done):
        """Until done(what was written) is true."""
        while not done(self.written):
            if not self._read(tracked.SECONDS):
                raise RuntimeError(f"the command ended, on the terminal: {self.written!r}")

    def end(self, stdin=b""):
        """(exit status, standard output), with all of the terminal read."""
        out, _ = self.process.communicate(stdin, tracked.SECONDS)
        while self._read(tracked.SECONDS):
            pass
        return tracked.shell_status(self.process.returncode), out


def memtrack(artifact, command, *options):
    return [tracked.RUN, "-o", artifact, "--capture=inline", *options, "--", *command]


def number(text):
    return int(text.replace(b",", b""))


def drawings_of(written):
    # The end of one is what the next one begins with.
    return [match.groups() for match in LINE.finditer(written + b"\r")]


def result_problems(status, out):
    """The command's own output and exit status, as ever."""
    if status:
        yield f"exit status {status}"
    totals = ledger.Ledger(out.partition(b"ready\n")[2]).totals
    if not totals["allocations"] or totals["allocations"] != totals["frees"]:
        yield f"the command printed {out!r}"


def appears():
    with Terminal(memtrack("appears.mtk", RUNNER, "--verbose")) as terminal:
        terminal.wait_for(lambda written: written)
        seconds = time.monotonic() - terminal.start
        if seconds < QUIET_SECONDS:
            yield f"something on the terminal after {seconds} s: {terminal.written!r}"
        terminal.wait_for(lambda written: len(drawings_of(written)) >= DRAWINGS)
        drawings = drawings_of(terminal.written)
        events = [number(drawing[0]) for drawing in drawings]
        if events != sorted(events) or events[0] == events[-1] or not events[0]:
            yield f"events: {events}"
        if not all(number(drawing[1]) for drawing in drawings):
            yield f"no chains: {drawings}"
        status, out = terminal.end()
    yield from result_problems(status, out)
    left = screen(terminal.written)
    if not left or not all(line.startswith("memtrack-run: ") for line in left):
        yield f"on the screen at the end: {left}"


def leaves_nothing():
    """Also where the command fails, and fails the way it does."""
    with Terminal(memtrack("left.mtk", ["sh", "-c", f"{' '.join(LONG)}; exit 42"])) as terminal:
        status, _ = terminal.end()
    if status != 42:
        yield f"exit status {status}"
    if not drawings_of(terminal.written):
        yield f"no line was shown: {terminal.written!r}"
    if screen(terminal.written):
        yield f"on the screen at the end: {screen(terminal.written)}"


def is_cut():
    columns = 30
    with Terminal(memtrack("cut.mtk", RUNNER), columns=columns) as terminal:
        terminal.wait_for(lambda written: written.count(WORD) >= DRAWINGS)
        status, out = terminal.end()
    yield from result_problems(status, out)
    lengths = {len(text) for text in re.findall(rb"memtrack: [^\r]*", terminal.written)}
    if lengths != {columns - 1}:
        yield f"lengths {lengths} on {columns} columns"
    if screen(terminal.written):
        yield f"on the screen at the end: {screen(terminal.written)}"


def stops():
    """Control-Z: the line is gone before the shell is back, and there again after it."""
    script = 'set -m; "$@"; echo "stopped $?"; fg >&2; echo "done $?"'
    command = ["sh", "-c", script, "sh", *memtrack("stops.mtk", RUNNER)]
    with Terminal(command) as terminal:
        terminal.wait_for(drawings_of)
        os.write(terminal.master, CONTROL_Z)
        said = b""
        while not said.startswith(b"stopped "):
            said = terminal.process.stdout.readline()
            if not said:
                raise RuntimeError(f"not stopped, on the terminal: {terminal.written!r}")
        if int(said.split()[1]) < 128:
            yield f"the shell says {said!r}"
        shown = terminal.written.count(WORD)
        terminal.wait_for(lambda written: written.count(WORD) > shown)
        _, out = terminal.end()
    if not out.endswith(b"done 0\n"):
        yield f"the command printed {out!r}"
    before = terminal.written.partition(b"^Z")[2].partition(WORD)[0]
    if b"\r\x1b[K" not in before:
        yield f"not erased when it stopped: {terminal.written!r}"
    left = [line for line in screen(terminal.written) if WORD.decode() in line]
    if left:
        yield f"on the screen at the end: {left}"


def none_shown(terminal):
    with terminal:
        status, _ = terminal.end()
    if status:
        yield f"exit status {status}"
    if terminal.written:
        yield f"on the terminal: {terminal.written!r}"


def in_background():
    """With tostop, where who writes is stopped."""
    script = 'set -m; "$@" & wait $!'
    command = ["sh", "-c", script, "sh", *memtrack("back.mtk", LONG)]
    yield from none_shown(Terminal(command))


def other_group():
    """The command has the foreground for itself, to its end.  A shell with job control would
    take it back before its own: in between memtrack-run has it, and may show its line."""
    program = ("import os, signal, time\n"
               "signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
               "os.setpgid(0, 0)\n"
               "os.tcsetpgrp(2, os.getpid())\n"
               f"time.sleep({QUIET_SECONDS + 1})\n")
    command = [sys.executable, "-S", "-c", program]
    yield from none_shown(Terminal(memtrack("group.mtk", command)))


def to_a_pipe():
    result = tracked.run(memtrack("pipe.mtk", LONG), env={**os.environ, "TERM": "xterm"})
    if result.status or result.err:
        yield f"exit status {result.status}, says {result.err!r}"


CASES = (
    ("appears after two seconds, moves, and goes", appears),
    ("leaves nothing behind", leaves_nothing),
    ("is cut to the terminal's width", is_cut),
    ("goes when the run is stopped, and comes back", stops),
    ("none for a short run", lambda: none_shown(Terminal(memtrack("short.mtk", ["true"])))),
    ("none with --quiet", lambda: none_shown(Terminal(memtrack("quiet.mtk", LONG, "--quiet")))),
    ("none with -q", lambda: none_shown(Terminal(memtrack("q.mtk", LONG, "-q")))),
    ("none on a dumb terminal",
     lambda: none_shown(Terminal(memtrack("dumb.mtk", LONG), env={"TERM": "dumb"}))),
    ("none on a terminal that a program draws on",
     lambda: none_shown(Terminal(memtrack("raw.mtk", LONG), canonical=False))),
    ("none in the background", in_background),
    ("none while another group has the foreground", other_group),
    ("none to a pipe", to_a_pipe),
)


def main():
    results = tap.Tap()
    for title, function in CASES:
        results.attempt(title, function)
    results.plan()


main()
