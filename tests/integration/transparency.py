# SPDX-License-Identifier: LGPL-2.1-or-later
# transparency.py - a tracked program is as it would be alone: its exit status, what it
# sees of its surroundings, its standard streams

import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys

import tap
import tracked

STATUSES = (0, 1, 2, 42, 121, 125, 126, 127, 255)
SIGNALS = ("HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "SEGV", "PIPE", "ALRM", "TERM")
TEXT = b"".join(b"line %d, which goes through\n" % i for i in range(5000)) + b"\0\xff no newline"
OWN_VARIABLES = ("LD_PRELOAD", "MEMTRACK_RUN")
PRELOADED = "libm.so.6"
SOON_SECONDS = 10
# All that a program can wait for; it ends with SIGTERM.
WAITER = """
import signal
waited = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
signal.pthread_sigmask(signal.SIG_BLOCK, waited)
print("ready", flush=True)
number = 0
while number != signal.SIGTERM:
    number = signal.sigwaitinfo(waited).si_signo
    print(number, flush=True)
"""


def exit_statuses(capture):
    for status in STATUSES:
        result = tracked.track(["sh", "-c", f"exit {status}"], capture, "status.mtk")
        if result.status != status or result.err:
            yield f"exit status {result.status}, not {status}; says {result.err!r}"


def deaths(capture):
    for name in SIGNALS:
        result = tracked.track(["sh", "-c", f"ulimit -c 0; kill -{name} $$"], capture,
                               "signal.mtk")
        expected = 128 + getattr(signal, f"SIG{name}")
        if result.status != expected or result.err:
            yield f"SIG{name}: exit status {result.status}, not {expected}; says {result.err!r}"


def unusual():
    """Runs in the child: things that a wrapper may be tempted to put in order."""
    os.umask(0o137)
    os.nice(3)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGWINCH])
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 21))
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))


def look(prefix, env):
    """(status, lines of standard output, standard error) of fixtures/surroundings"""
    command = [*prefix, f"{tracked.BUILD}/fixtures/surroundings", "", "two words", "--", "-o"]
    with open("in", "wb") as file:
        file.write(TEXT)
    with open("in", "rb") as stdin, open("out", "wb") as stdout, open("err", "wb") as stderr, \
         open("in", "rb") as other:
        os.dup2(other.fileno(), 77)
        done = subprocess.run(command, stdin=stdin, stdout=stdout, stderr=stderr, env=env,
                              pass_fds=(77,), preexec_fn=unusual, check=False,
                              timeout=tracked.SECONDS)
        os.close(77)
    with open("out", "rb") as out, open("err", "rb") as err:
        return done.returncode, out.read().split(b"\n"), err.read()


def own(line):
    return any(line.startswith(f"variable {name}=".encode()) for name in OWN_VARIABLES)


def surroundings(capture):
    env = {"PATH": "/usr/bin:/bin", "EMPTY": "", "LINES": "one\ntwo", "LAST": "x" * 3000}
    artifact = os.path.abspath("look.mtk")
    alone = look([], env)
    watched = look([tracked.RUN, "-o", artifact, f"--capture={capture}", "--"], env)
    if watched[0] != alone[0]:
        yield f"exit status {watched[0]}, not {alone[0]}; says {watched[2]!r}"
    expected = [line for line in alone[1] if not own(line)]
    found = [line for line in watched[1] if not own(line)]
    if expected != found:
        yield from (f"only alone: {line!r}" for line in expected if line not in found)
        yield from (f"only tracked: {line!r}" for line in found if line not in expected)
        yield "the lines differ"
    if watched[2] != alone[2]:
        yield f"standard error is {watched[2]!r}, not {alone[2]!r}"


def preloads(capture):
    """The user's own LD_PRELOAD stays, and comes first or last, but whole."""
    result = tracked.track([f"{tracked.BUILD}/fixtures/surroundings"], capture, "preload.mtk",
                           env={**os.environ, "LD_PRELOAD": PRELOADED})
    value = next((line for line in result.out.decode().splitlines()
                  if line.startswith("variable LD_PRELOAD=")), "")
    parts = value.partition("=")[2].replace(" ", ":").split(":")
    if PRELOADED not in parts or not any("memtrack" in part for part in parts):
        yield f"found {value!r}"


def default_output(capture):
    """Without -o: memtrack.COMMAND.PID.mtk, in the working directory."""
    os.mkdir(f"default.{capture}")
    result = tracked.run([tracked.RUN, f"--capture={capture}", "true"], cwd=f"default.{capture}")
    found = os.listdir(f"default.{capture}")
    if result.status or len(found) != 1 or not found[0].startswith("memtrack.true.") or \
       not found[0].endswith(".mtk"):
        yield f"exit status {result.status}, {found}, says {result.err!r}"


def own_options(capture):
    """What follows the command is the command's, with and without the --."""
    for dashes in ([], ["--"]):
        result = tracked.run([tracked.RUN, "-o", "echo.mtk", f"--capture={capture}", *dashes,
                              "echo", "-o", "--", "--capture=none"])
        if result.status or result.out != b"-o -- --capture=none\n":
            yield f"exit status {result.status}, prints {result.out!r}, says {result.err!r}"


def sent_on(capture):
    """What is sent to memtrack-run comes to the command, and does nothing to memtrack-run."""
    kept = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU,
            signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP,
            signal.SIGSYS}
    others = signal.valid_signals() - kept - {signal.SIGTERM}
    command = [tracked.RUN, "-o", "sent.mtk", f"--capture={capture}", "--", sys.executable, "-c",
               WAITER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                          start_new_session=True) as process:
        process.stdout.readline()
        for number in (*sorted(others), signal.SIGTERM):
            process.send_signal(number)
            if not select.select([process.stdout], [], [], SOON_SECONDS)[0]:
                os.killpg(process.pid, signal.SIGKILL)
                yield f"signal {number} did not come"
                break
            came = process.stdout.readline()
            if came != b"%d\n" % number:
                yield f"signal {number}: {came!r} came"
        err = process.communicate(timeout=tracked.SECONDS)[1]
    if process.returncode or err:
        yield f"exit status {process.returncode}, says {err!r}"


CASES = (
    ("exit statuses", exit_statuses),
    ("deaths by signals", deaths),
    ("signals for memtrack-run", sent_on),
    ("surroundings and streams", surroundings),
    ("LD_PRELOAD is extended", preloads),
    ("the file without -o", default_output),
    ("options of the command", own_options),
)


def limited(command):
    """The command with two capabilities and no more."""
    sets = "-all,+bpf,+perfmon"
    return ["setpriv", f"--bounding-set={sets}", f"--inh-caps={sets}", *command]


def no_limited_rights():
    """Why the case below can not run, or None."""
    if tracked.missing("ebpf"):
        return tracked.missing("ebpf")
    if os.geteuid() or not shutil.which("setpriv"):
        return "not root" if os.geteuid() else "no setpriv"
    # Kernels that want CAP_SYS_ADMIN for a perf event have another way since 6.6.
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    if release < (6, 6) and tracked.run(limited([f"{tracked.BUILD}/tests/bpf_works"])).status:
        return "this kernel wants CAP_SYS_ADMIN"
    return None


def limited_rights():
    """CAP_BPF and CAP_PERFMON are enough."""
    fixture = f"{tracked.BUILD}/fixtures/fork"
    result = tracked.run(limited([tracked.RUN, "-o", "limited.mtk", "--capture=ebpf", fixture]))
    if result.status or result.err:
        yield f"exit status {result.status}, says {result.err!r}"
        return
    yield from tracked.losses("limited.mtk")
    if tracked.report("limited.mtk")["capture"] != "ebpf":
        yield "captured inline"


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        for name, function in CASES:
            if reason:
                results.skip(f"{name}, {capture}", reason)
            else:
                results.attempt(f"{name}, {capture}", function, capture)
    if no_limited_rights():
        results.skip("CAP_BPF and CAP_PERFMON", no_limited_rights())
    else:
        results.attempt("CAP_BPF and CAP_PERFMON", limited_rights)
    results.plan()


main()
