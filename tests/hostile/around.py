# SPDX-License-Identifier: LGPL-2.1-or-later
# around.py - scenarios around a run: signals to memtrack-run, its streams and output file,
# debuggers, clocks, and the death of its parts

import fcntl
import glob
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time

import judge
import ledger
import tracked

LOST_STATUS = 121
COUNTER_STATUS = 21
# struct mt_hello of wire/session.h; a cookie; longer than a connection is tried for.
HELLO_BYTES = 512
CROWDED_NUMBERS = "00c0ffee00c0ffee:00decaff00decaff"
CROWDED_S = 3
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
           signal.SIGUSR2, signal.SIGWINCH)
SENT = (*SIGNALS, signal.SIGABRT, signal.SIGALRM, signal.SIGXCPU, signal.SIGRTMIN, signal.SIGRTMAX)
RUNNER = f"{tracked.BUILD}/fixtures/long_runner"
FIXTURE = f"{tracked.BUILD}/fixtures/malloc_free"
STARTERS = (
    "/lib64/ld-linux-x86-64.so.2",
    "chrt -f 1",
    "env GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.perturb=165",
    "env LD_BIND_NOT=1",
    "env LD_BIND_NOW=1 MALLOC_ARENA_MAX=1",
    "flock lock",
    "nice -n 5",
    "nohup",
    "prlimit --as=200000000",
    "prlimit --core=0 --fsize=4096",
    "prlimit --nofile=20",
    "prlimit --stack=65536",
    "setarch -R",
    "setpriv --no-new-privs",
    "setpriv --reuid=65534 --regid=65534 --clear-groups",
    "setsid -w",
    "stdbuf -oL",
    "strace -f -qq -o /dev/null",
    "taskset -c 0",
    "timeout 60",
    "timeout --foreground 60",
    "unshare -m",
    "unshare -n",
    "unshare -r",
    "unshare -rpf --mount-proc",
    "xargs -a /dev/null -P2 -n1",
)
PACED_BYTES = "23031"
PACE_NS = 10 * 1000 * 1000


def run_line(capture, artifact, *command):
    return [tracked.RUN, "-o", artifact, f"--capture={capture}", "--", *command]


def ledger_problems(out, artifact):
    yield from ledger.Ledger(out).size_problems(tracked.sizes(artifact))
    yield from tracked.losses(artifact)


class Running:
    """A run of long_runner, in a session of its own, that is ready."""

    def __init__(self, capture, artifact="run.mtk"):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            run_line(capture, artifact, RUNNER), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.below = {}
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("long_runner is not ready")
        for path in os.listdir("/proc"):
            self._look(path)

    def _look(self, path):
        try:
            with open(f"/proc/{path}/stat", encoding="utf-8", errors="replace") as file:
                name, rest = file.read().partition("(")[2].rsplit(")", 1)
        except OSError:
            return
        if int(rest.split()[1]) == self.process.pid:
            self.below[name] = int(path)

    def collector(self):
        return self.below["memtrack-collector"[:15]]

    def command(self):
        return self.below["long_runner"]

    def finish(self):
        """(status, output, messages)"""
        try:
            out, err = self.process.communicate(b"", tracked.SECONDS)
        except BaseException:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        return tracked.shell_status(self.process.returncode), out, err


def forwarded_signals(capture):
    """What memtrack-run is sent, the command gets, once, and may handle."""
    for number in SENT:
        command = run_line(capture, "run.mtk", f"{judge.HERE}/signal_counter", str(int(number)))
        with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
            if process.stdout.readline() != b"ready\n":
                yield f"{number.name}: the command is not ready"
            process.send_signal(number)
            out = process.communicate(timeout=tracked.SECONDS)[0]
        if out != b"1\n" or process.returncode != COUNTER_STATUS:
            yield f"{number.name}: came {out!r} times, exit status {process.returncode}"


def inherited_alarm(capture):
    """Who sets an alarm and executes the command has it end by that, when it is time."""
    for command in (["cat"], run_line(capture, "run.mtk", "cat")):
        begin = time.monotonic()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.alarm(1)) as process:
            status = tracked.shell_status(process.wait(tracked.SECONDS))
        if status != 128 + signal.SIGALRM or time.monotonic() - begin < 0.9:
            yield f"{command[0]}: exit status {status}, {time.monotonic() - begin} s"


def inherited_death(capture):
    """Who has the command end with its parent by a signal has it end, though nobody can pass
    that signal on."""
    script = 'exec 3<&0; setpriv --pdeathsig KILL "$@" <&3 & wait'
    command = run_line(capture, "run.mtk", "sh", "-c", "echo ready; exec cat")
    with subprocess.Popen(["sh", "-c", script, "sh", *command], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        if process.stdout.readline() != b"ready\n":
            yield "the command is not ready"
        process.kill()
        process.wait()
        if not tracked.eventually(lambda: not judge.own_children()):
            yield f"goes on: {judge.own_children()}"


def press(master, number):
    """Makes the terminal send the signal to its foreground group."""
    if number == signal.SIGWINCH:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 70, 0, 0))
    else:
        os.write(master, {signal.SIGINT: b"\x03", signal.SIGQUIT: b"\x1c"}[number])


def read_terminal(master, until=None):
    said = b""
    while until is None or until not in said:
        try:
            part = os.read(master, 4096)
        except OSError:  # all ends are closed
            break
        if not part:
            break
        said += part
    return said


def terminal_signals(capture):
    """A key reaches the whole foreground group: the command once, not again by forwarding."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH):
        command = run_line(capture, "run.mtk", f"{judge.HERE}/signal_counter", str(int(number)))
        child, master = pty.fork()
        if child == 0:
            os.execv(command[0], command)
        read_terminal(master, b"ready")
        press(master, number)
        said = read_terminal(master)
        os.close(master)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not re.fullmatch(rb"[\r\n]*(\^.)?1\r\n", said) or status != COUNTER_STATUS:
            yield f"{number.name}: terminal shows {said!r}, exit status {status}"


def hung_up(capture):
    """A terminal that goes tells the session's leader, and the command is told by that."""
    script = "trap 'exit 7' HUP; echo ready; for i in $(seq 300); do sleep 0.1; done"
    command = run_line(capture, "run.mtk", "sh", "-c", script)
    child, master = pty.fork()
    if child == 0:
        os.execv(command[0], command)
    read_terminal(master, b"ready")
    os.close(master)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 7:
        yield f"exit status {status}"
    yield from tracked.losses("run.mtk")


def broken_pipe(capture):
    """A writer whose reader has gone dies of it."""
    command = run_line(capture, "run.mtk", "sh", "-c", "while :; do echo yes; done")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdout.readline() != b"yes\n":
            yield "no output"
        process.stdout.close()
        said = process.stderr.read()
        process.stdout = None
        status = tracked.shell_status(process.wait(tracked.SECONDS))
    if status != 128 + signal.SIGPIPE or said:
        yield f"exit status {status}, says {said!r}"


def poor_libraries(capture):
    """Libraries that the command is to find first are not the collector's."""
    os.mkdir("libraries")
    own = subprocess.run(["ldd", tracked.RUN], check=True, stdout=subprocess.PIPE).stdout
    for name in ("libzstd.so.1", "libelf.so.1", "libbpf.so.1"):
        if name.encode() in own:
            continue
        with open(f"libraries/{name}", "w", encoding="ascii") as file:
            file.write("no library\n")
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.abspath("libraries")}
    result = tracked.track(["sh", "-c", "exit 3"], capture, "run.mtk", env=env)
    if result != (3, b"", b""):
        yield f"{result}"


def untracked_images(capture):
    """A process that was tracked executes a program that is not, and is found all the same."""
    for how in ("exec env -i sleep 1.5", "(x=$(:); exec env -i sleep 1.5); :"):
        result = tracked.track(["sh", "-c", how], capture, "run.mtk")
        if result.status or result.out:
            yield f"{how}: {result}"
        named = [entry["what"] for entry in tracked.report("run.mtk")["not_tracked"]]
        if named != ["sleep"]:
            yield f"{how}: not tracked: {named}"


def streams(capture):
    """Input and output pass as they are; streams that are closed stay closed."""
    noise = os.urandom(1000000)
    result = tracked.track(["cat"], capture, "cat.mtk", stdin=noise)
    if result.out != noise or result.err or result.status:
        yield f"cat: {len(result.out)} bytes, exit status {result.status}, says {result.err!r}"
    look = "for fd in 0 1 2; do test -e /proc/$$/fd/$fd && exit 4; done; exit 3"
    result = tracked.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh",
                          *run_line(capture, "closed.mtk", "sh", "-c", look)])
    if result.status != 3:
        yield f"closed streams: exit status {result.status}"
    for command in (["sh", "-c", "echo x || exit 5"],
                    run_line(capture, "full.mtk", "sh", "-c", "echo x || exit 5")):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        if done.returncode != 5 or b"memtrack" in done.stderr:
            yield f"a full device: exit status {done.returncode}, says {done.stderr!r}"


def stderr_that_nobody_reads(capture):
    """The command's end does not wait for room in a pipe."""
    with tracked.unread_pipe() as writer:
        done = subprocess.run(run_line(capture, "run.mtk", FIXTURE), stdout=subprocess.PIPE,
                              stderr=writer, check=False, timeout=tracked.SECONDS)
    if done.returncode:
        yield f"exit status {done.returncode}"
    yield from ledger_problems(done.stdout, "run.mtk")


def times(artifact):
    """(times of paced's allocations, start of the run, its end)"""
    with open(artifact, "rb") as file:
        dump = tracked.run([f"{tracked.BUILD}/tests/dump_artifact"], file.read()).out.decode()
    found = re.findall(rf"^alloc time=(\d+) .*size={PACED_BYTES} ", dump, re.MULTILINE)
    start = re.search(r"^header start=(\d+)", dump, re.MULTILINE)
    end = re.search(r"^footer .*?end=(\d+)", dump, re.MULTILINE)
    return [int(word) for word in found], int(start[1]), int(end[1])


def time_namespace(capture):
    """One clock in the artifact, whatever the processes' clocks are set to."""
    unshare = ["unshare", "-T", "--monotonic", "864000", "--boottime", "864000", "-f"]
    paced = f"{judge.HERE}/paced"
    for title, command in (("within", unshare + run_line(capture, "within.mtk", paced)),
                           ("below", run_line(capture, "below.mtk", *unshare, paced))):
        result = tracked.run(command)
        if result.status or result.err:
            yield f"{title}: exit status {result.status}, says {result.err!r}"
        yield from ledger_problems(result.out, f"{title}.mtk")
        found, start, end = times(f"{title}.mtk")
        steps = [later - earlier for earlier, later in zip(found, found[1:])]
        if len(found) != 10 or min(steps) < PACE_NS or not start < found[0] < found[-1] < end:
            yield f"{title}: allocations at {found}, in a run from {start} to {end}"


def debuggers_inside(capture):
    """gdb and strace work in the tree as they do without us, and see no trap of ours."""
    gdb = ["gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off",
           "-ex", "break main", "-ex", "run", "-ex", "tbreak malloc", "-ex", "continue",
           "-ex", "finish", "-ex", "delete", "-ex", "continue", FIXTURE]
    result = tracked.track(gdb, capture, "gdb.mtk")
    said = result.out + result.err
    if b"exited normally" not in said or b"SIGTRAP" in said:
        yield f"gdb shows {said[-2000:]!r}"
    alone = tracked.run([FIXTURE])
    result = tracked.track(["strace", "-f", "-qq", "-o", "trace", FIXTURE], capture, "strace.mtk")
    with open("trace", encoding="utf-8", errors="replace") as file:
        trace = file.read()
    if result.out != alone.out or result.status or re.search("--- SIG(TRAP|SEGV|ILL)", trace):
        yield f"strace: exit status {result.status}, says {result.err!r}"
    yield from ledger_problems(result.out, "strace.mtk")


def stopped_at_start(capture):
    """A debugger may keep a program from its first instruction for long."""
    gdb = ["gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "starti",
           "-ex", "shell sleep 1.5", "-ex", "continue", FIXTURE]
    result = tracked.track(gdb, capture, "run.mtk")
    if b"exited normally" not in result.out:
        yield f"gdb shows {result.out[-2000:]!r}"
    yield from ledger_problems(result.out, "run.mtk")
    if tracked.report("run.mtk")["not_tracked"]:
        yield f"not tracked: {tracked.report('run.mtk')['not_tracked']}"


def debugger_from_outside(capture):
    """gdb attaches to a tracked process, looks, and leaves."""
    running = Running(capture)
    result = tracked.run(["gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off",
                          "-ex", "thread apply all backtrace", "-ex", "detach",
                          "-p", str(running.command())])
    if result.out.count(b"\nThread ") != 3:
        yield f"gdb shows {result.out[-2000:]!r}, says {result.err[-500:]!r}"
    status, out, err = running.finish()
    if status or err:
        yield f"exit status {status}, says {err!r}"
    yield from ledger_problems(out, "run.mtk")


def all_threads_are(tgid, state):
    """Whether all threads of the process are in that state of /proc."""
    for path in glob.glob(f"/proc/{tgid}/task/*/stat"):
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read().rpartition(")")[2].split()[0] != state:
                return False
    return True


def stopped_collector(capture):
    """While the collector does nothing the command waits, and nothing is lost."""
    running = Running(capture)
    os.kill(running.collector(), signal.SIGSTOP)
    waits = tracked.eventually(lambda: all_threads_are(running.collector(), "T")) and \
        tracked.eventually(lambda: all_threads_are(running.command(), "S"))
    os.kill(running.collector(), signal.SIGCONT)
    if not waits:
        yield "the command does not wait for the collector"
    status, out, err = running.finish()
    if status or err:
        yield f"exit status {status}, says {err!r}"
    yield from ledger_problems(out, "run.mtk")


def crowded_socket(_):
    """A process waits for its turn at the collector's socket; no other name leads there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as collector:
        collector.bind("socket")
        collector.listen(0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as first:
            first.connect("socket")
            env = {**os.environ, "LD_PRELOAD": judge.SHIM,
                   "MEMTRACK_RUN": f"{CROWDED_NUMBERS}:{os.getcwd()}/socket"}
            with subprocess.Popen([FIXTURE], env=env, stdout=subprocess.DEVNULL) as program:
                try:
                    program.wait(CROWDED_S)
                    yield "the program goes on untracked"
                    return
                except subprocess.TimeoutExpired:
                    pass
                collector.accept()[0].close()
                collector.settimeout(tracked.PATIENCE_SECONDS)
                try:
                    with collector.accept()[0] as connection:
                        hello = connection.recv(HELLO_BYTES + 1)
                    if len(hello) != HELLO_BYTES:
                        yield f"{len(hello)} bytes for a hello"
                except TimeoutError:
                    yield "nobody comes"
                collector.close()
                if program.wait():
                    yield f"exit status {program.returncode}"


def killed_wrapper(capture):
    """Without memtrack-run the command goes on, and who is left tidies up."""
    running = Running(capture)
    running.process.kill()
    status, out, _ = running.finish()
    book = ledger.Ledger(out)
    if status != 128 + signal.SIGKILL or not book.totals["allocations"] or \
       book.totals["allocations"] != book.totals["frees"]:
        yield f"exit status {status}, prints {out!r}"
    if tracked.eventually(lambda: not judge.own_children()):
        tracked.report("run.mtk")


def killed_group(capture):
    """Who kills the whole group, memtrack-run included, leaves no files behind."""
    result = tracked.run(run_line(capture, "run.mtk", "sh", "-c", f"{FIXTURE}; kill -9 0"))
    if result.status != 128 + signal.SIGKILL:
        yield f"exit status {result.status}, says {result.err!r}"
    if tracked.eventually(lambda: not judge.own_children()):
        tracked.report("run.mtk")


def full_disk(capture):
    """The command is not disturbed, the end is told, and what was written can be read."""
    script = """mount -t tmpfs -o size=64k none small || exit 99
"$@" 2>err >out; status=$?
cp small/run.mtk run.mtk; exit $status"""
    os.mkdir("small")
    storm = f"{judge.HERE}/many_stacks"
    result = tracked.run(["unshare", "-m", "sh", "-c", script, "sh",
                          *run_line(capture, "small/run.mtk", storm)])
    with open("out", "rb") as out, open("err", "rb") as err:
        printed, said = out.read(), err.read()
    if printed != tracked.run([storm]).out:
        yield f"prints {printed!r}"
    if result.status != LOST_STATUS or said.count(b"\n") != 1 or b"No space" not in said:
        yield f"exit status {result.status}, says {said!r}"
    if tracked.report("run.mtk")["complete"]:
        yield "the artifact says that it is complete"


def bad_outputs(capture):
    """A file that can not be written is told of before anything runs."""
    os.symlink("no-such-folder/file", "dangling")
    os.symlink("loop", "loop")
    for path in ("dangling", "loop", "loop/x", "x" * 300, "x/" * 2500, "/proc/version"):
        result = tracked.run([tracked.RUN, "-o", path, f"--capture={capture}", "--",
                              "touch", "was-run"])
        if result.status != 125 or result.err.count(b"\n") != 1 or os.path.exists("was-run"):
            yield f"{path[:50]}: exit status {result.status}, says {result.err!r}"
    os.mkdir("folder")
    for _ in range(2):
        result = tracked.run(run_line(capture, "folder", FIXTURE))
        if result.status:
            yield f"folder: exit status {result.status}, says {result.err!r}"
    if len(os.listdir("folder")) != 2:
        yield f"two runs made {os.listdir('folder')}"


def few_descriptors(_):
    """However few there may be, the choice of a capture finds one that works."""
    alone = tracked.run([FIXTURE])
    for limit in range(14, 40, 2):
        result = tracked.run(["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh",
                              *run_line("auto", "run.mtk", FIXTURE)])
        if result.status or result.out != alone.out or result.err:
            yield f"with {limit}: exit status {result.status}, says {result.err!r}"
            continue
        yield from ledger_problems(result.out, "run.mtk")


def first_process(capture):
    """As the first process of a PID namespace it lets no orphan of the command stay dead, be the
    collector there or not."""
    script = """sh -c 'true &' | cat
tries=0
while grep -qs '^State:.Z' /proc/[0-9]*/status && [ $tries -lt 100 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
[ $tries -lt 100 ]"""
    killed = """for child in $(cat /proc/1/task/1/children); do
	[ $child = $$ ] || kill -9 $child
done
"""
    namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
    result = tracked.run([*namespace, *run_line(capture, "run.mtk", "sh", "-c", script)])
    if result != (0, b"", b""):
        yield f"{result}"
    yield from tracked.losses("run.mtk")
    result = tracked.run([*namespace, *run_line(capture, "run.mtk", "sh", "-c", killed + script)])
    if result.status != 121 or b"killed by signal 9" not in result.err:
        yield f"without the collector: {result}"


def starters(capture):
    """Programs that start others, in other surroundings: as without us, and all recorded."""
    for number, line in enumerate(STARTERS):
        command = [*line.split(), FIXTURE]
        if not shutil.which(command[0]):
            continue
        alone = tracked.run(command)
        if alone.status:  # not permitted here
            continue
        artifact = f"starter.{number}.mtk"
        result = tracked.track(command, capture, artifact)
        if result != alone:
            yield f"{line}: {result}, not {alone}"
        for problem in ledger_problems(result.out, artifact):
            yield f"{line}: {problem}"
        if tracked.report(artifact)["not_tracked"]:
            yield f"{line}: not tracked: {tracked.report(artifact)['not_tracked']}"


def nested_runs(capture):
    """The inner run records the command, the outer does not, and both are whole."""
    alone = tracked.run([FIXTURE])
    result = tracked.run(run_line(capture, "outer.mtk", *run_line(capture, "inner.mtk", FIXTURE)))
    # To the outer run the command may be one that is not tracked.
    said = judge.NOT_TRACKED.sub(b"", result.err)
    if result._replace(err=said) != alone:
        yield f"{result}, not {alone}"
    yield from ledger_problems(result.out, "inner.mtk")
    twice = set(ledger.Ledger(alone.out).sizes) & set(tracked.sizes("outer.mtk"))
    if twice:
        yield f"the outer run has sizes {sorted(twice)} too"
    if not tracked.report("outer.mtk")["complete"]:
        yield "the outer run's artifact is not complete"


def parallel_make(capture):
    """Jobs of one name in folders of their own; make's job server is as it was."""
    jobs = range(24)
    with open("Makefile", "w", encoding="ascii") as file:
        names = " ".join(f"job{i}/out" for i in jobs)
        file.write(f"all: {names}\n{names}:\n"
                   f"\t@mkdir -p $(@D) && cd $(@D) && {FIXTURE} >out\n")
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    env = {key: value for key, value in os.environ.items() if key not in outer}
    result = tracked.track(["make", "-s", "-j8"], capture, "make.mtk", env=env)
    if result.status or result.out or result.err:
        yield f"exit status {result.status}, prints {result.out!r}, says {result.err!r}"
    whole = b""
    for i in jobs:
        if os.listdir(f"job{i}") != ["out"]:
            yield f"job{i} has {os.listdir(f'job{i}')}"
        with open(f"job{i}/out", "rb") as file:
            whole += file.read()
    yield from ledger_problems(whole, "make.mtk")


def bounded_memory(capture):
    """The collector's memory does not grow with the events."""
    result = tracked.track([f"{judge.HERE}/many_stacks"], capture, "run.mtk", ["-v"])
    found = re.search(rb"collector: (\d+) KiB", result.err)
    if result.status or not found or int(found[1]) > 256 * 1024:
        yield f"exit status {result.status}, says {result.err!r}"
    yield from ledger_problems(result.out, "run.mtk")
