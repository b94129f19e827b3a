# SPDX-License-Identifier: LGPL-2.1-or-later
# packagings.py - programs that are made for the test, or whose chains are looked at more
# closely than a ledger can say

import os
import resource
import shutil

import judge
import tracked

PROGRAM = f"{judge.HERE}/packaged"
WHOLE = ["take_packaged", "call_inlined", "call_outer", "main"]
NAMED = ["take_packaged", "call_outer", "main"]
BYTES, COUNT = 30721, 10


def must(*command):
    result = tracked.run(list(command))
    if result.status:
        raise RuntimeError(f"{command}: {result.err!r}")


def in_place(name, function, *args):
    """A run of its own, in a directory of its own."""
    os.makedirs(name)
    os.chdir(name)
    try:
        for problem in function(*args):
            yield f"{name}: {problem}"
    finally:
        os.chdir("..")


def chains_of(artifact, size):
    """The chains of a size's allocations, as names, each with its stop."""
    return [([tracked.short_name(frame) for frame in row["chain"]], row["stop"])
            for row in tracked.allocation_chains(artifact)
            if row["bytes"] == size * row["count"]]


def packed(to, *options):
    must("objcopy", *options, PROGRAM, to)


def linked_debug_file(to):
    must("objcopy", "--only-keep-debug", PROGRAM, "apart.debug")
    must("objcopy", "--strip-all", "--add-gnu-debuglink=apart.debug", PROGRAM, to)


def without_sections(to):
    shutil.copy(PROGRAM, to)
    with open(to, "r+b") as file:
        # e_shoff; e_shnum and e_shstrndx
        for at, zeroes in ((40, 8), (60, 4)):
            file.seek(at)
            file.write(bytes(zeroes))


# name, what makes it, the chain that must be told
PACKAGINGS = (
    ("plain", lambda to: shutil.copy(PROGRAM, to), WHOLE),
    ("zlib", lambda to: packed(to, "--compress-debug-sections=zlib-gabi"), WHOLE),
    ("zlib-gnu", lambda to: packed(to, "--compress-debug-sections=zlib-gnu"), WHOLE),
    ("debuglink", linked_debug_file, WHOLE),
    ("no-debug", lambda to: must("strip", "-g", "-o", to, PROGRAM), NAMED),
    ("no-names", lambda to: must("strip", "-s", "-o", to, PROGRAM), None),
    ("no-sections", without_sections, None),
)


def one_packaging(capture, make, expected):
    try:
        make(os.path.abspath("program"))
    except RuntimeError as error:
        print(f"# not made here: {error}")
        return
    wanted = judge.Expectation(f"size={BYTES} count={COUNT} freed={COUNT}")
    yield from judge.check([os.path.abspath("program")], capture, wanted)
    found = chains_of("run.mtk", BYTES)
    for names, stop in found:
        if stop != "end" or expected and names[:len(expected)] != expected:
            yield f"{names}, {stop}"
        if not expected and len(names) < len(NAMED):
            yield f"{names} is short"
    if not found:
        yield "there is no chain"


def mount_of_the_run(capture):
    """memtrack-run, too, is in a mount namespace that ends with it: so does the program's file."""
    script = 'mount -t tmpfs none /mnt && cp "$0" /mnt/packaged && exec "$@" /mnt/packaged'
    result = tracked.run(["unshare", "-m", "sh", "-c", script, PROGRAM, tracked.RUN, "-o",
                          os.path.abspath("run.mtk"), f"--capture={capture}", "--"])
    if result.status:
        yield f"{result}"
        return
    found = chains_of("run.mtk", BYTES)
    if not found or any(stop != "end" or names[:len(NAMED)] != NAMED for names, stop in found):
        yield f"{found} do not begin with {NAMED}"


def debug_packagings(capture):
    for name, make, expected in PACKAGINGS:
        yield from in_place(name, one_packaging, capture, make, expected)


def no_invented_callers(capture):
    """Of assembly_frames: a chain never goes on where nothing says how."""
    yield from judge.check([f"{judge.HERE}/assembly_frames"], capture,
                           judge.Expectation("stops=no-cfi"))
    for names, stop in chains_of("run.mtk", 30691):
        if names[:2] != ["take_below_frame", "bare_with_frame"] or \
           names[2:3] not in ([], ["main"]) or (stop == "end") != ("main" in names):
            yield f"{names}, {stop}"
    for names, stop in chains_of("run.mtk", 30693):
        if names != ["take_below_none", "bare_without_frame"] or stop != "no-cfi":
            yield f"{names}, {stop}"


def split_stacks(capture):
    flags = f"-include config.h -iquote {tracked.BUILD} -iquote {os.environ['srcdir']} -O2 -g"
    must("gcc", *flags.split(), "-fno-builtin", "-fsplit-stack", "-fuse-ld=gold", "-o", "split",
         f"{judge.SOURCES}/split_stacks.c", f"{tracked.BUILD}/fixtures/libledger.a", "-pthread")
    yield from judge.check([os.path.abspath("split")], capture,
                           judge.Expectation("ledger stops=no-cfi,bad"))


def few_for_all(capture):
    """Also memtrack-run and the collector have 16 at most, unless they may have more: too few
    for BPF, which is then done without."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))

    options = ["--capture=inline"] if capture == "inline" else []
    result = tracked.run([tracked.RUN, "-o", "run.mtk", *options, "--",
                          f"{judge.HERE}/small_limits", "descriptors"], preexec_fn=limit)
    if result.status or result.err:
        yield f"exit status {result.status}, says {result.err!r}"
    yield from judge.artifact_problems("run.mtk", judge.Expectation("ledger"), result.out)
