# SPDX-License-Identifier: LGPL-2.1-or-later
# hostile.py - the rows of cases.tab, which says what they are
#
# Arguments: the rows to test, where not all.  Rows are tested in processes of their own, as
# many at a time as there are processors; each adopts and ends what its runs leave behind.

import importlib
import multiprocessing
import os
import re
import shlex
import shutil
import string
import sys
import traceback

sys.path.insert(0, f"{os.environ['srcdir']}/tests/integration")

import judge  # noqa: E402
import needs  # noqa: E402
import tap  # noqa: E402
import tracked  # noqa: E402

# Modules whose functions the rows name with an @.
SCENARIOS = ("around", "artifacts", "builds", "job_control", "packagings")
TABLE = f"{judge.SOURCES}/cases.tab"


class Row:
    """A line of cases.tab."""

    def __init__(self, line):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 4:
            raise ValueError(f"cases.tab: {len(cells)} columns, not 4: {line}")
        self.name, self.run, words, expect = cells
        self.needs = words.split()
        self.captures = [capture for capture in tracked.CAPTURES
                         if not {f"{other}-only" for other in tracked.CAPTURES
                                 if other != capture} & set(self.needs)]
        self.expected = {capture: judge.Expectation(expect, capture)
                         for capture in self.captures}

    def lacks(self):
        """Why it can not be run here, or None."""
        words = (word for word in self.needs if not word.endswith("-only"))
        return next((reason for reason in map(needs.lacks, words) if reason), None)

    def _words(self):
        libraries = {word: needs.library(word) for word in self.needs if word in needs.LIBRARIES}
        run = string.Template(self.run).substitute({**judge.PLACES, **libraries})
        return shlex.split(run)

    def command(self):
        """(command, environment, source of the program or None)"""
        words = self._words()
        settings = []
        while re.match(r"\w+=", words[0]):
            settings.append(words.pop(0).split("=", 1))
        env = judge.environment(settings, self.needs)
        program = words[0]
        if program.endswith((".py", ".sh")):
            language = sys.executable if program.endswith(".py") else "sh"
            return [language, f"{judge.SOURCES}/{program}", *words[1:]], env, None
        folder = "" if program.startswith("fixtures/") else "tests/hostile/"
        source = next((path for path in (f"{os.environ['srcdir']}/{folder}{program}{suffix}"
                                         for suffix in (".c", ".cc", ".cpp"))
                       if os.path.exists(path)), None)
        if not program.startswith("/"):
            program = f"{tracked.BUILD}/{folder}{program}"
        return [program, *words[1:]], env, source

    def scenario(self):
        """The function that the row names, or None."""
        if not self.run.startswith("@"):
            return None
        return next(getattr(module, self.run[1:])
                    for module in map(importlib.import_module, SCENARIOS)
                    if hasattr(module, self.run[1:]))


def test(row, capture):
    """(title, problems) of a row in a capture, in a directory of its own."""
    place = os.path.abspath(f"{row.name}.{capture}")
    back = os.getcwd()
    os.mkdir(place)
    os.chdir(place)
    try:
        scenario = row.scenario()
        if scenario:
            leftovers = judge.Leftovers()
            problems = list(scenario(capture) or ())
            problems += leftovers.problems()
        else:
            command, env, source = row.command()
            problems = list(judge.check(command, capture, row.expected[capture], env, source))
    except Exception:
        problems = [traceback.format_exc()]
    os.chdir(back)
    if not problems:
        shutil.rmtree(place, ignore_errors=True)
    return f"{row.name}, {capture}", problems


def outcome(task):
    """(title, problems, reason to skip)"""
    row, capture, reason = task
    reason = reason or row.lacks()
    if reason:
        return f"{row.name}, {capture}", [], reason
    return (*test(row, capture), None)


def read_rows(names):
    with open(TABLE, encoding="ascii") as file:
        rows = [Row(line) for line in file if line.strip() and not line.startswith("#")]
    if len({row.name for row in rows}) != len(rows):
        raise ValueError("cases.tab: two rows of one name")
    unknown = set(names) - {row.name for row in rows}
    if unknown:
        raise ValueError(f"not in cases.tab: {sorted(unknown)}")
    return [row for row in rows if not names or row.name in names]


def main():
    results = tap.Tap()
    reasons = {capture: tracked.missing(capture) for capture in tracked.CAPTURES}
    tasks = [(row, capture, reasons[capture]) for row in read_rows(sys.argv[1:])
             for capture in row.captures]
    with multiprocessing.Pool(len(os.sched_getaffinity(0)), judge.adopt) as pool:
        for title, problems, reason in pool.imap(outcome, tasks):
            if reason:
                results.skip(title, reason)
            else:
                results.case(title, problems)
    results.plan()


if __name__ == "__main__":
    main()
