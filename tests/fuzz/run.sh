#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# run.sh - run the fuzz targets of a build that has an engine, one after the other
#
# usage: run.sh [-s SECONDS] [-o FOLDER] [TARGET...]
#   -s  seconds for each target; default 60
#   -o  where inputs that were found go; default ./fuzz-found
# In the build directory, after
#   configure CC=clang CXX=clang++ --enable-sanitizers --with-fuzzing-engine=-fsanitize=fuzzer
#   make check TESTS=
# An engine's corpus begins with the target's own and is in a temporary folder.  The last
# line of each target says what was found, and the exit status is 1 if anything was.

set -u

seconds=60
found=fuzz-found
while getopts s:o: option; do
	case $option in
	s) seconds=$OPTARG ;;
	o) found=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# Looked for, not listed: a target that is new is run.
if [ $# -eq 0 ]; then
	for target in tests/fuzz/fuzz_*; do
		[ -f "$target" ] && [ -x "$target" ] && set -- "$@" "${target##*/}"
	done
fi
[ $# -gt 0 ] || { echo "no targets in tests/fuzz: is this a build directory?" >&2; exit 2; }

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
TMPDIR=$work
# An allocation that is too large fails, as it would without a sanitizer.
ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}
UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TMPDIR ASAN_OPTIONS UBSAN_OPTIONS
status=0

for name; do
	entropic=1
	# An input goes thousands of ways: to weigh them takes as long as to run it.
	[ "$name" != fuzz_pipeline ] || entropic=0
	mkdir -p "$work/$name/seeds" "$work/$name/new" "$found/$name" || exit 2
	FUZZ_SEEDS=$work/$name/seeds "tests/fuzz/$name" -runs=0 >"$work/log" 2>&1 ||
		{ cat "$work/log"; exit 2; }
	# Only those that go another way: the time is for what they lead to.
	"tests/fuzz/$name" -merge=1 -timeout=20 -rss_limit_mb=3072 -max_len=65536 \
		-artifact_prefix="$found/$name/" "$work/$name/new" "$work/$name/seeds" \
		>"$work/log" 2>&1
	"tests/fuzz/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3072 \
		-max_len=65536 -entropic=$entropic -print_final_stats=1 -artifact_prefix="$found/$name/" \
		"$work/$name/new" >"$work/log" 2>&1
	ended=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$work/log" | tail -n 1)
	if [ $ended -eq 0 ] && rmdir "$found/$name" 2>/dev/null; then
		echo "$name: $runs runs, $edges edges, nothing found"
	else
		cp "$work/log" "$found/$name/log"
		echo "$name: $runs runs, FOUND (status $ended): $found/$name"
		status=1
	fi
done
rmdir "$found" 2>/dev/null
exit $status
