# SPDX-License-Identifier: LGPL-2.1-or-later
# builds.py - scenarios whose program is built when they run, by tools that few machines have

import os
import re

import judge
import needs
import tracked

PLAIN = f"{judge.SOURCES}/plain_blocks.c"
IN_USE = f"{judge.SOURCES}/allocator_in_use.c"
LEDGER = ["-iquote", os.environ["srcdir"], f"{os.environ['srcdir']}/fixtures/ledger.c"]
FLAGS = ["-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-D_GNU_SOURCE", "-pthread"]
FIXTURE = f"{tracked.BUILD}/fixtures/malloc_free"


def build(*command):
    result = tracked.run(command)
    if result.status:
        raise RuntimeError(f"{command}: {result.err.decode(errors='replace')}")


def checked(folder, command, capture, words, **options):
    """judge.check() in a folder of its own."""
    os.mkdir(folder)
    os.chdir(folder)
    try:
        for problem in judge.check(command, capture, judge.Expectation(words), **options):
            yield f"{folder}: {problem}"
    finally:
        os.chdir("..")


def not_for_us(program, capture, reason):
    """A program that has to run untouched, alone, as a child, and before one that is tracked."""
    words = f"not-tracked='{reason}'"
    below = ["sh", "-c", f"{program}; {program}; exit 3"]
    yield from checked("alone", [program], capture, words)
    yield from checked("before", [program, FIXTURE], capture, f"{words} ledger")
    if capture == "ebpf":
        yield from checked("below", below, capture, f"{words} status=3")
        return
    # Inline capture may not see that one was there.
    result = tracked.track(below, capture, "below.mtk")
    yield from judge.output_problems(tracked.run(below), result,
                                     judge.Expectation(f"{words} status=3"))


def musl_program(capture):
    """Another C library: its loader neither takes our shim nor says anything."""
    build("musl-gcc", "-O1", "-g", PLAIN, "-o", "program", "-pthread")
    yield from not_for_us(os.path.abspath("program"), capture, "musl")


def program_of_32_bits(capture):
    """Another word size: its loader says nothing on standard error."""
    build("gcc", "-m32", "-O1", "-g", PLAIN, "-o", "program", "-pthread")
    yield from not_for_us(os.path.abspath("program"), capture, "32-bit")


def static_program(capture):
    build("gcc", "-static", "-O1", "-g", PLAIN, "-o", "program", "-pthread")
    yield from not_for_us(os.path.abspath("program"), capture, "statically linked")


def sanitized_programs(capture):
    """Sanitizers whose runtime is a library: it ends a program that has another before it,
    bears no call before it has begun, and says where a block was allocated."""
    for name in ("address", "thread", "leak"):
        build("gcc", f"-fsanitize={name}", "-O1", "-g", PLAIN, "-o", name, "-pthread")
        os.mkdir(f"of-{name}")
        os.chdir(f"of-{name}")
        yield from not_for_us(os.path.abspath(f"../{name}"), capture, "sanitizer")
        os.chdir("..")
    with open("leak.c", "w", encoding="ascii") as source:
        source.write("#include <stdlib.h>\nvoid *volatile kept;\n"
                     "int main(void) { kept = malloc(7); kept = 0; return 0; }\n")
    build("gcc", "-fsanitize=address", "-O1", "-g", "leak.c", "-o", "leaking")
    # What it says is not for a report of ours, where memtrack itself is built with sanitizers.
    command = ["env", "-u", "ASAN_OPTIONS", os.path.abspath("leaking")]
    result = tracked.track(command, capture, "leaking.mtk")
    if result.status != tracked.run(command).status:
        yield f"leaking: exit status {result.status}"
    if not re.search(rb"#1 \w+ in main ", result.err):
        yield f"leaking: {result.err!r}"


def linked(library, capture):
    """An allocator that the program is linked with serves it, and its calls are recorded."""
    path = needs.library(library)
    build("gcc", *FLAGS, IN_USE, *LEDGER, "-o", "program", "-Wl,--no-as-needed", path)
    yield from checked("linked", [os.path.abspath("program"), os.path.basename(path)], capture,
                       "ledger", source=IN_USE)


def linked_jemalloc(capture):
    return linked("jemalloc", capture)


def linked_tcmalloc(capture):
    return linked("tcmalloc", capture)


def linked_mimalloc(capture):
    return linked("mimalloc", capture)


def exchanged_environment(capture):
    """A library's constructor gives the process another environment before anything was
    allocated."""
    with open("exchange.c", "w", encoding="ascii") as source:
        source.write("extern char **environ;\nstatic char *own[] = { \"OWN=1\", 0 };\n"
                     "__attribute__((constructor(101))) static void put(void)\n"
                     "{ environ = own; }\n")
    build("gcc", "-shared", "-fPIC", "exchange.c", "-o", "exchange.so")
    build("gcc", *FLAGS, IN_USE, *LEDGER, "-o", "program", "-Wl,--no-as-needed",
          os.path.abspath("exchange.so"))
    yield from checked("run", [os.path.abspath("program")], capture, "ledger", source=IN_USE)


def static_jemalloc(capture):
    """An allocator in the executable, its names exported or not."""
    for folder, flags in (("exported", ["-rdynamic"]), ("hidden", [])):
        build("gcc", *FLAGS, *flags, IN_USE, *LEDGER, "-o", folder + "-program",
              "-l:libjemalloc.a", "-lm", "-lstdc++", "-ldl")
        yield from checked(folder, [os.path.abspath(folder + "-program"), "program"], capture,
                           "not-tracked=allocator")


def panics(capture):
    """Rust: panics unwind through callers of malloc, in threads with small stacks."""
    build("rustc", "-g", f"{judge.SOURCES}/panics.rs", "-o", "program")
    yield from checked("run", [os.path.abspath("program")], capture,
                       "size=23181 count=200 freed=200")


def direct_buffers(capture):
    """A Java machine with its guard pages, null checks by signal, and memory of its own."""
    build("javac", "-d", ".", f"{judge.SOURCES}/DirectBuffers.java")
    command = ["java", "-Xmx64m", "-cp", os.path.abspath("."), "DirectBuffers"]
    yield from checked("run", command, capture,
                       "size=2023176 count=10 freed=0 unseen-frees=any stops=bad,no-cfi,no-module")
