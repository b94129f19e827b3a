# SPDX-License-Identifier: LGPL-2.1-or-later
# lib.sh - what every *.test sources: a directory of its own to work in, and TAP
#
# Set by make: srcdir (the source, which may be read-only), builddir, CC, CXX, BPF_CC, NM.
# A script exits with 0 however its cases went: the "not ok" lines are the result.

set -u
LC_ALL=C
export LC_ALL

. "$srcdir/tests/reports.sh"
work=$(mktemp -d) || exit 99
trap 'reported && echo "Bail out! a sanitizer reported"; rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
cd "$work" || exit 99

memtrack_run=$builddir/collector/memtrack-run
memtrack_report=$builddir/report/memtrack-report
preload=$builddir/preload/.libs/libmemtrack-preload.so
ok_count=0

# plan COUNT: how many cases follow.  A script that ends early is then an error.
plan() { echo "1..$1"; }

# skip_all REASON...
skip_all()
{
	echo "1..0 # SKIP $*"
	exit 0
}

# need_bpf: skips the script where the kernel or our rights do not allow BPF.  The reason
# starts with "no BPF", which ./dev check does not accept where BPF does work.
need_bpf()
{
	need_bpf_why=$("$builddir/tests/bpf_works") || skip_all "no BPF: $need_bpf_why"
}

# ok NAME COMMAND...: one case, passed if COMMAND succeeds.  What it printed is shown if not.
ok()
{
	ok_count=$((ok_count + 1))
	ok_name=$1
	shift
	if "$@" >"$work/ok.log" 2>&1; then
		echo "ok $ok_count - $ok_name"
	else
		echo "not ok $ok_count - $ok_name"
		sed 's/^/# /' "$work/ok.log"
	fi
}

# skip NAME REASON...: one case that can not run here.
skip()
{
	ok_count=$((ok_count + 1))
	skip_name=$1
	shift
	echo "ok $ok_count - $skip_name # SKIP $*"
}

# exits STATUS COMMAND...: succeeds if COMMAND exits with STATUS.
exits()
{
	exits_want=$1
	shift
	"$@"
	exits_got=$?
	[ $exits_got -eq "$exits_want" ] && return
	echo "exit status $exits_got, not $exits_want"
	return 1
}

# fails COMMAND...: succeeds if COMMAND does not.
fails() { ! "$@"; }
