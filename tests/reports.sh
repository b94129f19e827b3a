# SPDX-License-Identifier: LGPL-2.1-or-later
# reports.sh - what a sanitizer reports fails the test, in whatever process it does
#
# Sourced by lib.sh and run-program.sh.  A test sees neither what the processes that it starts
# print nor how each of them ends, so reports go to files, which are looked for at its end.  In
# a build without sanitizers, SANITIZERS is empty and nothing is done.

reports=
if [ -n "${SANITIZERS-}" ]; then
	# For the processes of all users.
	{ reports=$(mktemp -d) && chmod 1777 "$reports"; } || exit 99
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}log_path=$reports/report
	UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}print_stacktrace=1:log_path=$reports/report
	export ASAN_OPTIONS UBSAN_OPTIONS
fi

# Prints the reports as comments and removes them; succeeds if there are any.  A warning is
# about the sanitizer itself, of what it can not follow.
reported()
{
	[ -n "$reports" ] || return 1
	cat "$reports"/* 2>/dev/null | grep -v '^==[0-9]*==WARNING: ' | sed 's/^/# /' | grep .
	reported_any=$?
	rm -rf "$reports"
	return $reported_any
}
