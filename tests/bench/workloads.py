# SPDX-License-Identifier: LGPL-2.1-or-later
# workloads.py - the programs that are measured, and with which parameters

import collections
import os
import shutil
import sys

import running

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ["builddir"]
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# unit: what the program counts when it times its own loop; "allocation": it does not, and
# all of its time is taken, over the number of its allocations.
Workload = collections.namedtuple("Workload", "name unit title command env")

QUICK = ("churn-30", "churn-30-8t", "python-malloc", "gcc", "cc1")

# More of the command line of fixtures/churn.
CHURNS = {
    "churn-30": (),
    "churn-30-2t": ("--threads=2",),
    "churn-30-8t": ("--threads=8",),
    "churn-100": ("--depth=100",),
    "churn-100-2t": ("--depth=100", "--threads=2"),
    "churn-100-8t": ("--depth=100", "--threads=8"),
    "churn-30-top": ("--top",),
    "churn-30-100s": ("--stacks=100",),
    "churn-30-300s": ("--stacks=300",),
}
CHURN_TITLE = "C: 10000 blocks of 17 to 2003 bytes live in a thread, 4096 chains"
STACKS_TITLE = "C: 10000 blocks of 17 to 2003 bytes live, stacks that repeat"


def _churn(name, pairs):
    more = CHURNS[name]
    command = [f"{BUILD}/fixtures/churn", "--time", f"--pairs={pairs}", *more]
    title = STACKS_TITLE if any(word.startswith("--stacks") for word in more) else CHURN_TITLE
    return Workload(name, "pair", f"{title}: {' '.join(['churn', *command[2:]])}", command, {})


def _python(name, iterations, allocator):
    command = [PYTHON, f"{HERE}/python_loop.py", str(iterations)]
    return Workload(name, "iteration",
                    f"Python, PYTHONMALLOC={allocator}: {iterations} iterations of "
                    "python_loop.py", command, {"PYTHONMALLOC": allocator})


def _cc1():
    if not shutil.which("gcc"):
        return "cc1"
    return running.must_run(["gcc", "-print-prog-name=cc1"]).out.strip()


def _c_function(number):
    return f"""
struct item_{number} {{ struct item_{number} *next; int key; double weight[{number % 7 + 1}]; }};
static int count_{number};
static struct item_{number} *find_{number}(struct item_{number} *at, int key)
{{
	while (at && at->key != key)
		at = at->next;
	count_{number} += at != 0;
	return at;
}}
double visit_{number}(struct item_{number} *list, const int *keys, int n)
{{
	double sum = {number};
	for (int i = 0; i < n; i++) {{
		struct item_{number} *item = find_{number}(list, keys[i]);
		switch (keys[i] % 5) {{
		case 0: sum += item ? item->weight[0] : 1; break;
		case 1: sum -= keys[i] * {number}; break;
		case 2: sum *= 1.5; break;
		default: sum += count_{number} >> (i & 7); break;
		}}
	}}
	return sum;
}}
"""


def _compiles(directory, functions):
    """The driver, which starts others, and the compiler by itself."""
    source = f"{directory}/compiled.c"
    with open(source, "w", encoding="ascii") as file:
        file.writelines(_c_function(number) for number in range(functions))
    told = f"-O2 of {2 * functions} functions"
    return [
        Workload("gcc", "allocation", f"gcc -c {told} (a tree: heaptrack has its root only)",
                 ["gcc", "-O2", "-c", source, "-o", f"{directory}/compiled.o"], {}),
        Workload("cc1", "allocation", f"gcc's cc1 {told}",
                 [_cc1(), "-quiet", "-O2", source, "-o", f"{directory}/compiled.s"], {}),
    ]


def _sqlite(directory, rows):
    script = f"{directory}/inserts.sql"
    with open(script, "w", encoding="ascii") as file:
        file.write("CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT, size REAL);\n"
                   "CREATE INDEX by_name ON names (name);\nBEGIN;\n")
        for row in range(rows):
            file.write(f"INSERT INTO names VALUES ({row}, 'name {row * 7919 % rows}', "
                       f"{row / 3:.3f});\n")
        file.write("COMMIT;\n")
    return Workload("sqlite", "allocation", f"sqlite3, {rows} inserts with an index, in memory",
                    ["sqlite3", ":memory:", f".read {script}"], {})


def everything(directory, quick):
    """All workloads, by name; directory is for their files."""
    pairs = 150000 if quick else 250000
    iterations = 30000 if quick else 100000
    made = [_churn(name, pairs) for name in CHURNS]
    made += [
        _python("python-malloc", iterations, "malloc"),
        _python("python-pymalloc", iterations, "pymalloc"),
        *_compiles(directory, 25 if quick else 100),
        _sqlite(directory, 10000 if quick else 20000),
    ]
    return {workload.name: workload for workload in made}


def missing(workload):
    """Why it can not be run here, or None."""
    program = workload.command[0]
    return None if shutil.which(program) else f"{os.path.basename(program)} is not installed"
