## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Figures, not tests: the machine is to be left alone while they are made.

if ENABLE_BPF
check_PROGRAMS += %D%/bpf_stats
%C%_bpf_stats_SOURCES = %D%/bpf_stats.c
%C%_bpf_stats_CFLAGS  = $(MT_WARN_CFLAGS) $(LIBBPF_CFLAGS)
%C%_bpf_stats_LDADD   = $(LIBBPF_LIBS)
endif

## Windows of real programs, through the codec.  The recorder is preloaded: never with
## sanitizers; -rpath makes libtool build a shared object of what is not installed.
check_LTLIBRARIES += %D%/record_windows.la
%C%_record_windows_la_SOURCES = %D%/record_windows.c %D%/window_record.h
%C%_record_windows_la_CFLAGS  = $(MT_WARN_CFLAGS) -O2 -g -fno-builtin
%C%_record_windows_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

check_PROGRAMS += %D%/replay_stacks
%C%_replay_stacks_SOURCES = %D%/replay_stacks.c %D%/window_record.h preload/compare.c	\
	%D%/replay_compare.S preload/image.c
%C%_replay_stacks_CFLAGS  = $(MT_WARN_CFLAGS) -O2 -g -fno-strict-aliasing
%C%_replay_stacks_LDADD   = collector/libcollector.a $(XXHASH_LIBS)

EXTRA_DIST +=			\
	%D%/arguments.py	\
	%D%/attached.py		\
	%D%/bench.py		\
	%D%/figures.py		\
	%D%/machine.py		\
	%D%/python_loop.py	\
	%D%/rendering.py	\
	%D%/replay.py		\
	%D%/running.py		\
	%D%/summary.py		\
	%D%/tools.py		\
	%D%/workloads.py
CLEANFILES += bench.json bench-quick.json bench-replay.json

bench_python = $(AM_V_at)builddir='$(abs_top_builddir)' srcdir='$(abs_top_srcdir)' python3 -B
bench_programs = fixtures/churn
if ENABLE_BPF
bench_programs += %D%/bpf_stats
endif

## BENCH_FLAGS="--tools=ebpf-8k,heaptrack --workloads=churn-30 --rounds=1", say.
bench: all $(bench_programs)
	$(bench_python) $(srcdir)/%D%/bench.py --json=bench.json $(BENCH_FLAGS)

bench-quick: all $(bench_programs)
	$(bench_python) $(srcdir)/%D%/bench.py --quick --json=bench-quick.json $(BENCH_FLAGS)

bench-replay: %D%/replay_stacks %D%/record_windows.la
	$(bench_python) $(srcdir)/%D%/replay.py --json=bench-replay.json

.PHONY: bench bench-quick bench-replay
