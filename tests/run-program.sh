# SPDX-License-Identifier: LGPL-2.1-or-later
# run-program.sh - run a test program, and have its results as TAP on stdout
#
# A Check program prints TAP when told so, its plan last.  It also exits with 1 if a case
# failed, which the TAP driver would count as one more error; so the status is judged here:
# one that no "not ok" line explains (a sanitizer's, a crash, the time limit) is a failed
# case of its own, and so is a plan that is missing or not kept.
#
# A program that prints no TAP is one case: status 0 passed, 77 skipped, for the reason in
# its last line.

# Check's own limit is seconds for a case, which is little for a build with sanitizers, or on
# a machine that has others to serve.
CK_TAP_LOG_FILE_NAME=-
CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-15}
export CK_TAP_LOG_FILE_NAME CK_TIMEOUT_MULTIPLIER

. "$srcdir/tests/reports.sh"
out=$(mktemp) || exit 99
trap 'rm -rf "$out" "$reports"' EXIT
trap 'exit 99' HUP INT TERM

timeout -k 10 "${TEST_SECONDS:-600}" "$@" >"$out"
status=$?
if reported; then
	found=1
else
	found=
fi

awk -v status=$status -v found=$found -v program="${1##*/}" '
	/^1\.\.[0-9]+/ { plan = $0; next }
	/^(not )?ok /  { cases++ }
	/^not ok /     { failed++ }
	{ print; last = $0 }
	END {
		if (plan == "" && !cases && status == 77 && !found) {
			print "1..0 # SKIP " last
			exit
		}
		if (found)
			why = "is reported by a sanitizer"
		else if (status && !(status == 1 && failed))
			why = "exits with " status
		else if (plan == "" && cases)
			why = "has no plan"
		else if (plan != "" && substr(plan, 4) + 0 != cases)
			why = "planned " plan
		if (why != "")
			print "not ok " ++cases " - " program " " why
		else if (plan == "")
			print "ok " ++cases " - " program
		print cases ? "1.." cases : plan
	}' "$out"
