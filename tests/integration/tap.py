# SPDX-License-Identifier: LGPL-2.1-or-later
# tap.py - test results as TAP on stdout, for the drivers in this folder
#
# A case has passed if the list of its problems is empty; the problems are shown.

import sys
import traceback

MOST_PROBLEMS = 20


class Tap:
    def __init__(self):
        self.cases = 0

    def _say(self, verdict, name, comments=()):
        self.cases += 1
        print(f"{verdict} {self.cases} - {name}")
        for comment in comments:
            for line in str(comment).splitlines():
                print(f"# {line}")
        sys.stdout.flush()

    def case(self, name, problems):
        problems = list(problems)
        if not problems:
            self._say("ok", name)
            return
        shown = problems[:MOST_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"... {len(problems)} problems in all")
        self._say("not ok", name, shown)

    def skip(self, name, reason):
        self._say("ok", f"{name} # SKIP {reason}")

    def attempt(self, name, function, *args):
        """function(*args) gives the problems; an exception is one, and ends the case only."""
        try:
            problems = list(function(*args) or ())
        except Exception:
            problems = [traceback.format_exc()]
        self.case(name, problems)

    def plan(self):
        print(f"1..{self.cases}")
