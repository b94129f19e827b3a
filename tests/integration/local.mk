## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Tests of the whole: each is a script that starts a python driver of the same name, which
## prints TAP.  What they track is in fixtures/; rows of *.tab are cases.

test_scripts +=			\
	%D%/abuse.test		\
	%D%/churn.test		\
	%D%/count.test		\
	%D%/faults.test		\
	%D%/fixtures.test	\
	%D%/idle.test		\
	%D%/keep.test		\
	%D%/killed.test		\
	%D%/learned.test	\
	%D%/pressure.test	\
	%D%/programs.test	\
	%D%/progress.test	\
	%D%/refusals.test	\
	%D%/stats.test		\
	%D%/transparency.test

EXTRA_DIST +=				\
	%D%/abuse.py			\
	%D%/chains.py			\
	%D%/churn.py			\
	%D%/compare_valgrind.py		\
	%D%/count.py			\
	%D%/counted.py			\
	%D%/faults.py			\
	%D%/fixtures.py			\
	%D%/fixtures.tab		\
	%D%/idle.py			\
	%D%/keep.py			\
	%D%/killed.py			\
	%D%/learned.py			\
	%D%/ledger.py			\
	%D%/pressure.py			\
	%D%/programs.py			\
	%D%/progress.py			\
	%D%/refusals.py			\
	%D%/refusals.tab		\
	%D%/relatives.py		\
	%D%/stats.py			\
	%D%/table.py			\
	%D%/tap.py			\
	%D%/tracked.py			\
	%D%/transparency.py

## An oracle, preloaded in place of memtrack: never with sanitizers; -rpath makes libtool
## build a shared object of what is not installed.
check_LTLIBRARIES += %D%/count_preload.la
%C%_count_preload_la_SOURCES = %D%/count_preload.c
%C%_count_preload_la_CFLAGS  = $(MT_WARN_CFLAGS) -O2 -g -fno-builtin
%C%_count_preload_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

## The BPF programs, without the shim but for how it renews the probe in a child.
if ENABLE_BPF
unit_tests += %D%/capture_probe %D%/life_probe
%C%_capture_probe_SOURCES = %D%/capture_probe.c %D%/probe_sites.S preload/probe.c	\
	tests/bpf_allowed.h tests/stack_player.h
%C%_capture_probe_CFLAGS  = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(CHECK_CFLAGS)
%C%_capture_probe_LDADD   = $(collector_libs) $(CHECK_LIBS)
%C%_life_probe_SOURCES = %D%/life_probe.c %D%/probe_sites.S tests/bpf_allowed.h
%C%_life_probe_CFLAGS  = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(CHECK_CFLAGS)
%C%_life_probe_LDADD   = $(collector_libs) $(CHECK_LIBS)
else
EXTRA_DIST += %D%/capture_probe.c %D%/life_probe.c %D%/probe_sites.S
endif
