# SPDX-License-Identifier: LGPL-2.1-or-later
# tools.py - what programs are run under: nothing, memtrack in its variants, its peers
#
# Each tool leaves what it records in a directory that it is given, and nothing else does.

import collections
import ctypes.util
import functools
import os
import shutil
import sys
import tempfile

import running

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ["builddir"]
RUN = f"{BUILD}/collector/memtrack-run"

# prefix(directory): what comes before the command; env(directory): what is added to the
# environment; missing(): why it can not be used here, or None.
Tool = collections.namedtuple("Tool", "name title prefix env missing")

QUICK = ("untracked", "inline-8k", "ebpf-8k", "heaptrack", "heaptrack-raw")

MEMTRACK = {
    "inline-8k": ("--capture=inline",),
    "inline-32k": ("--capture=inline", "--stack-size=32K"),
    "ebpf-8k": ("--capture=ebpf",),
    "ebpf-32k": ("--capture=ebpf", "--stack-size=32K"),
    "inline-8k-new": ("--capture=inline", "--no-learned-stacks"),
    "ebpf-8k-new": ("--capture=ebpf", "--no-learned-stacks"),
    "ebpf-32k-new": ("--capture=ebpf", "--stack-size=32K", "--no-learned-stacks"),
    "ebpf-8k-raw": ("--capture=ebpf", "--no-stack-compression"),
    "ebpf-32k-raw": ("--capture=ebpf", "--stack-size=32K", "--no-stack-compression"),
    "ebpf-no-stacks": ("--capture=ebpf", "--no-stacks"),
}


def _nothing(_):
    return {}


def _says(command, env=None):
    """Why a trial of it fails, or None."""
    try:
        running.must_run(command, env, 30)
    except (running.Failure, OSError) as failure:
        return str(failure)
    return None


@functools.lru_cache(maxsize=None)
def _memtrack_lacks(*options):
    with tempfile.TemporaryDirectory() as directory:
        return _says([RUN, "-o", f"{directory}/trial.mtk", *options, "--", "/bin/true"])


def is_memtrack(name):
    return name in MEMTRACK


def is_ebpf(name):
    return name.startswith("ebpf-")


def _memtrack(name):
    options = MEMTRACK[name]
    return Tool(name, f"memtrack-run {' '.join(options)}",
                lambda directory: [RUN, "-v", "-o", f"{directory}/memtrack.mtk", *options, "--"],
                _nothing, lambda: _memtrack_lacks(*options))


def _not_installed(program):
    return None if shutil.which(program) else f"{program} is not installed"


def _wrapper(name, title, program, *options):
    """A peer that is a command before the command; {} in an option is the directory."""
    return Tool(name, title,
                lambda directory: [program, *(word.format(directory) for word in options)],
                _nothing, lambda: _not_installed(program))


def _preloaded(name, title, library, variables, probe=lambda env: None):
    """A peer that is a library; {} in the value of a variable is the directory."""
    file = ctypes.util.find_library(library)

    def env(directory):
        made = {key: value.format(directory) for key, value in variables.items()}
        return dict(made, LD_PRELOAD=file)

    return Tool(name, title, lambda directory: [], env,
                lambda: probe(env("/tmp")) if file else f"lib{library} is not installed")


def _no_profiles(env):
    """Whether this jemalloc was built without: it says so and goes on."""
    result = running.run(["/bin/true"], dict(env, MALLOC_CONF="prof:true"), 30)
    return "built without heap profiles" if "prof" in result.err else None


def _peers():
    memleak = next(filter(shutil.which, ("memleak-bpfcc", "memleak")), "memleak-bpfcc")
    return [
        _wrapper("heaptrack", "heaptrack", "heaptrack", "-o", "{}/heaptrack"),
        _wrapper("heaptrack-raw", "heaptrack --raw", "heaptrack", "--raw", "-o",
                 "{}/heaptrack"),
        _preloaded("bytehound", "bytehound", "bytehound",
                   {"MEMORY_PROFILER_OUTPUT": "{}/bytehound.%p.dat"}),
        Tool("memleak", "memleak of bcc", lambda directory: [
            sys.executable, "-B", f"{HERE}/attached.py", memleak, "-a", "-p", "{}", "--"],
             _nothing, lambda: _not_installed(memleak)),
        _wrapper("dhat", "valgrind --tool=dhat", "valgrind", "--tool=dhat",
                 "--trace-children=yes", "--dhat-out-file={}/dhat.%p"),
        _preloaded("jemalloc", "jemalloc, each allocation profiled (lg_prof_sample:0)",
                   "jemalloc", {"MALLOC_CONF": "prof:true,lg_prof_sample:0,prof_final:true,"
                                               "prof_prefix:{}/jemalloc"}, _no_profiles),
        _preloaded("tcmalloc", "tcmalloc's heap profiler", "tcmalloc",
                   {"HEAPPROFILE": "{}/tcmalloc"}),
    ]


def everything():
    """All tools, by name."""
    made = [Tool("untracked", "nothing", lambda directory: [], _nothing, lambda: None)]
    made += [_memtrack(name) for name in MEMTRACK] + _peers()
    return {tool.name: tool for tool in made}
