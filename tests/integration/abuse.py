# SPDX-License-Identifier: LGPL-2.1-or-later
# abuse.py - what happens to a run is said, and does not happen to its program
#
# Full disks, a killed memtrack-run, an artifact that others touch, programs that go on when
# the command has ended, processes by the hundred.

import os
import signal
import subprocess
import sys

import tap
import tracked

LOST_STATUS = 121
FAILED_STATUS = 125
DUMP = f"{tracked.BUILD}/tests/dump_artifact"
STORM = f"{tracked.BUILD}/fixtures/alloc_storm_procs"

# Its parent, and that one's parent, have ended when it allocates for the first time.
DAEMON = """
import ctypes, os
ready, done = os.pipe()
if os.fork() == 0:
    block = ctypes.create_string_buffer(770077)
    if os.fork() == 0:
        os.read(ready, 1)
        ctypes.CDLL(None).malloc(880088)
        os.write(1, b"daemon")
    else:
        os.close(ready)
    os._exit(0)
os.wait()
os.write(done, b"x")
"""


def left_behind():
    """The run's directory, if it does not go; its name is in a file.  Other runs on the machine
    have such directories, too."""
    with open("directory", encoding="ascii") as file:
        directory = file.read().rstrip("\n")
    if not directory.startswith("/") or "/memtrack-" not in directory:
        yield f"no directory of a run: {directory!r}"
    if not tracked.eventually(lambda: not os.path.exists(directory)):
        yield f"left behind: {directory}"


def lines(artifact):
    """The records of an artifact as lists of words."""
    with open(artifact, "rb") as file:
        dumped = subprocess.run([DUMP], stdin=file, stdout=subprocess.PIPE, check=True)
    return [line.split() for line in dumped.stdout.decode("utf-8", "replace").splitlines()]


def full_disk(capture):
    """The program goes on to its end, although nobody empties its rings any more."""
    script = ("mkdir -p small && mount -t tmpfs -o size=256k none small && "
              f"exec {tracked.RUN} -v -o small/x.mtk --capture={capture} -- {STORM} 4 200000")
    result = tracked.run(["unshare", "-m", "sh", "-c", script])
    if result.status != LOST_STATUS or b"No space left" not in result.err:
        yield f"exit status {result.status}, says {result.err!r}"
    if b"\n" not in result.out:
        yield f"the command printed {result.out!r}"
    if b"go on" in result.err:
        yield f"says of processes that have ended that they go on: {result.err!r}"


def touched_by_others(capture):
    result = tracked.track(["sh", "-c", "rm gone.mtk"], capture, "gone.mtk")
    if result.status != LOST_STATUS or b"deleted" not in result.err:
        yield f"deleted: exit status {result.status}, says {result.err!r}"
    result = tracked.track(["sh", "-c", ": > cut.mtk; exec ls"], capture, "cut.mtk")
    if result.status != LOST_STATUS or b"cannot write the artifact" not in result.err:
        yield f"cut: exit status {result.status}, says {result.err!r}"


def two_runs(capture):
    """One at a time; the second does nothing to the first."""
    inner = f"{tracked.RUN} -o two.mtk --capture={capture} -- true; echo $?"
    result = tracked.track(["sh", "-c", inner], capture, "two.mtk")
    if result.status or result.out != b"%d\n" % FAILED_STATUS or b"another run" not in result.err:
        yield f"exit status {result.status}, prints {result.out!r}, says {result.err!r}"
    if not tracked.report("two.mtk")["complete"]:
        yield "the first run's artifact is not complete"


def admits_nobody(capture):
    """What everybody can read, the names of sockets, lets nobody in."""
    script = ("IFS=:; set -- $MEMTRACK_RUN; grep -c $1 /proc/net/unix;"
              " grep -c @memtrack-$2 /proc/net/unix; [ -S $3 ]")
    result = tracked.track(["sh", "-c", script], capture, "names.mtk")
    if result.status or result.out != b"0\n1\n":
        yield f"exit status {result.status}, prints {result.out!r}, says {result.err!r}"


def once_more(capture):
    """A run that came to nothing has let go of its file when it ends."""
    with open("again.mtk", "w", encoding="ascii"):
        pass
    with open("no-interpreter", "w", encoding="ascii") as file:
        file.write("#!/no/such/interpreter\n")
    os.chmod("no-interpreter", 0o755)
    for _ in range(10):
        for command, status in (("./no-interpreter", 127), ("true", 0)):
            result = tracked.track([command], capture, "again.mtk")
            if result.status != status or b"another run" in result.err:
                yield f"{command}: exit status {result.status}, says {result.err!r}"
                return


def goes_on(capture):
    """The command's child loads programs when the run is over, and notices nothing."""
    script = ("dirname ${MEMTRACK_RUN##*:} >directory;"
              "(read line; /bin/echo late; sh -c '/bin/echo later') & exit 3")
    reader, writer = os.pipe()
    command = [tracked.RUN, "-o", "on.mtk", f"--capture={capture}", "--", "sh", "-c",
               script.replace("read line", "read line <&7")]
    with subprocess.Popen(["sh", "-c", f"exec \"$@\" 7<&{reader}", "sh", *command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, pass_fds=(reader,)) as process:
        status = process.wait(tracked.SECONDS)
        if status != 3 or not tracked.report("on.mtk")["complete"]:
            yield f"exit status {status}"
        os.write(writer, b"go\n")
        out, err = process.communicate(timeout=tracked.SECONDS)
    os.close(reader)
    os.close(writer)
    if out != b"late\nlater\n" or err:
        yield f"prints {out!r}, {err!r}"
    yield from left_behind()


def killed_run(capture):
    """memtrack-run is killed: the command goes on, the artifact ends, nothing is left."""
    script = "dirname ${MEMTRACK_RUN##*:} >directory; echo ready; read line; /bin/echo end"
    with subprocess.Popen([tracked.RUN, "-o", "killed.mtk", f"--capture={capture}", "--", "sh",
                           "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        if process.stdout.readline() != b"ready\n":
            yield "not ready"
        process.kill()
        process.wait()
        if not tracked.eventually(lambda: tracked.report("killed.mtk")["complete"]):
            yield "the artifact has no end"
        process.stdin.write(b"x\n")
        process.stdin.close()
        out = process.stdout.read()
        err = process.stderr.read()
    if out != b"end\n" or err:
        yield f"prints {out!r}, {err!r}"
    yield from left_behind()


def killed_early(capture):
    """memtrack-run is killed while the collector starts: nothing is left."""
    os.mkfifo("started")
    os.mkfifo("go")
    with open("late-collector", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n"
                   "for word; do case $word in --directory=*) echo ${word#*=} ;; esac; done"
                   " >directory\n"
                   "echo >started\nread line <go\n"
                   f"exec {tracked.BUILD}/collector/memtrack-collector \"$@\"\n")
    os.chmod("late-collector", 0o755)
    with subprocess.Popen([tracked.RUN, "-o", "early.mtk", f"--capture={capture}", "--", "true"],
                          env={**os.environ, "MEMTRACK_COLLECTOR": "./late-collector"},
                          stdin=subprocess.DEVNULL) as process:
        with open("started", encoding="ascii") as started:
            started.read()
        process.kill()
        process.wait()
    with open("go", "w", encoding="ascii") as go:
        go.write("\n")
    yield from left_behind()
    for name in ("started", "go"):
        os.unlink(name)


def daemon(capture):
    """Its chains go through the modules that it has from its parents."""
    result = tracked.track([sys.executable, "-c", DAEMON], capture, "daemon.mtk")
    if result.status or result.err:
        yield f"exit status {result.status}, says {result.err!r}"
    late = [row for row in tracked.allocation_chains("daemon.mtk") if row["bytes"] == 880088]
    if [row["stop"] for row in late] not in (["end"], ["truncated"]):
        yield f"the daemon's allocation: {late}"


def crowd(capture):
    """Each process of many begins and ends in the artifact."""
    script = "i=0; while [ $i -lt 200 ]; do (:; /bin/true) & i=$((i + 1)); done; wait"
    result = tracked.track(["sh", "-c", script], capture, "crowd.mtk")
    if result.status or result.err:
        yield f"exit status {result.status}, says {result.err!r}"
    begun = {words[1] for words in lines("crowd.mtk") if words[0] == "process"}
    ended = {words[1] for words in lines("crowd.mtk") if words[0] == "process-end"}
    if len(begun) < 201 or begun != ended:
        yield f"{len(begun)} processes began, {len(ended)} ended"
    yield from tracked.losses("crowd.mtk")


def family(capture):
    """Who has executed whom, in its own place or in a child's."""
    script = ("env -i /bin/true; (:; exec /bin/cat /dev/null); /bin/ls >/dev/null;"
              " exec perl -e 'system(\"/bin/date >/dev/null; /bin/uname >/dev/null\")'")
    result = tracked.track(["sh", "-c", script], capture, "family.mtk")
    if result.status or result.err:
        yield f"exit status {result.status}, says {result.err!r}"
    rows = tracked.report("family.mtk", "--by=process")["by_process"]
    shell = os.path.basename(os.path.realpath("/bin/sh"))
    programs = {row["process"]: os.path.basename(row["exe"]) for row in rows}
    for row in rows:
        program, parent = programs[row["process"]], programs.get(row["parent"])
        if program != shell and parent not in (shell, program):
            yield f"the parent of {program} is {parent}"
    if not {"env", "cat", "ls", "perl", "date", "uname"} <= set(programs.values()):
        yield f"programs: {programs}"
    if rows[0]["parent"] is not None:
        yield f"the parent of the command: {rows[0]['parent']}"


def signals_in_probes(capture):
    """Chains go through what a handler has interrupted, be that the kernel's part of a probe."""
    result = tracked.track([f"{tracked.BUILD}/fixtures/jump_storms"], capture, "probes.mtk",
                           ["--no-learned-stacks"])
    if result.status or result.err:
        yield f"exit status {result.status}, says {result.err!r}"
    for row in tracked.allocation_chains("probes.mtk"):
        if row["stop"] not in ("end", "truncated"):
            yield f"{row['count']} chains are cut, {row['stop']}: {row['chain'][-1]}"
            return


def unread_pipe(capture):
    """Nobody is waited for who does not read what is said."""
    with tracked.unread_pipe() as writer:
        done = subprocess.run([tracked.RUN, "-v", f"--capture={capture}", "-o", "unread.mtk",
                               "true"], stderr=writer, check=False, timeout=tracked.SECONDS)
    if done.returncode:
        yield f"exit status {done.returncode}"


CASES = (("the disk is full", full_disk),
         ("others touch the artifact", touched_by_others),
         ("two runs into one file", two_runs),
         ("names of sockets", admits_nobody),
         ("a second run, where there was no first", once_more),
         ("programs go on after the run", goes_on),
         ("memtrack-run is killed", killed_run),
         ("memtrack-run is killed at once", killed_early),
         ("a daemon", daemon),
         ("a crowd of processes", crowd),
         ("a family of processes", family),
         ("signals in the middle of probes", signals_in_probes),
         ("messages that nobody reads", unread_pipe))


def can_mount():
    return tracked.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]).status == 0


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    results = tap.Tap()
    mounts = can_mount()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        for title, function in CASES:
            why = reason or (function is full_disk and not mounts and "no rights to mount")
            if why:
                results.skip(f"{title}, {capture}", why)
            else:
                results.attempt(f"{title}, {capture}", function, capture)
    results.plan()


main()
