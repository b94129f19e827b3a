## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Every test speaks TAP, so a program with forty cases reports forty results, and one that
## can not run here says why ("1..0 # SKIP no BPF: ...") instead of passing.
##
##   X.test         a shell script; sources tests/lib.sh; appended to test_scripts
##   unit/test_X    a Check program; appended to unit_tests (tests/unit/local.mk)
##
## Check programs are run by run-program.sh, which makes them print TAP; a program that
## does not use Check counts as one test, passed if it exits with 0, skipped with 77.

unit_tests   =
test_scripts =

TEST_EXTENSIONS   = .test
LOG_DRIVER        = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_COMPILER      = $(SHELL) $(top_srcdir)/%D%/run-program.sh
TEST_LOG_DRIVER   = $(LOG_DRIVER)
TEST_LOG_COMPILER = timeout -k 10 $(TEST_SECONDS) $(SHELL)
TEST_SUITE_LOG    = %D%/test-suite.log
TEST_SECONDS      = 600

## For a header that is compiled by itself.
test_cppflags = $(LIBBPF_CFLAGS) $(LIBELF_CFLAGS) $(LIBDW_CFLAGS) $(ZSTD_CFLAGS)	\
	$(XXHASH_CFLAGS) $(MSGPACK_CFLAGS) $(CHECK_CFLAGS)

AM_TESTS_ENVIRONMENT =					\
	srcdir='$(abs_top_srcdir)';			\
	builddir='$(abs_top_builddir)';			\
	CC='$(CC)'; CXX='$(CXX)'; BPF_CC='$(BPF_CC)';	\
	HOST_CPPFLAGS='$(CPPFLAGS) $(test_cppflags)';	\
	BPF_CPPFLAGS='$(BPF_CPPFLAGS)'; NM='$(NM)';	\
	TEST_SECONDS='$(TEST_SECONDS)';			\
	PLOT_PYTHON='$(PLOT_PYTHON)';			\
	export PLOT_PYTHON srcdir builddir CC CXX BPF_CC HOST_CPPFLAGS BPF_CPPFLAGS NM TEST_SECONDS;

## What a sanitizer reports is looked for, reports.sh.
if SANITIZERS
AM_TESTS_ENVIRONMENT += SANITIZERS=yes; export SANITIZERS;
endif

## .DELETE_ON_ERROR would take the log of a failed run away.
.PRECIOUS: $(TEST_SUITE_LOG)

include $(top_srcdir)/tests/unit/local.mk
include $(top_srcdir)/tests/bench/local.mk
include $(top_srcdir)/tests/fuzz/local.mk
include $(top_srcdir)/tests/integration/local.mk
include $(top_srcdir)/tests/hostile/local.mk
include $(top_srcdir)/tests/model/local.mk

test_scripts +=			\
	%D%/bench.test		\
	%D%/budget.test		\
	%D%/exports.test	\
	%D%/headers.test	\
	%D%/plot.test		\
	%D%/preload_alone.test	\
	%D%/report.test		\
	%D%/style.test

EXTRA_DIST += %D%/reports.test
if SANITIZERS
test_scripts += %D%/reports.test
check_PROGRAMS += %D%/misbehave
endif

check_PROGRAMS += $(unit_tests)

if ENABLE_BPF
check_PROGRAMS += %D%/bpf_works
%C%_bpf_works_SOURCES = %D%/bpf_works.c
%C%_bpf_works_CFLAGS  = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(LIBBPF_CFLAGS)
%C%_bpf_works_LDADD   = $(LIBBPF_LIBS)

## What the verifier thinks of the programs, against budget.tab.
check_PROGRAMS += %D%/budget
%C%_budget_SOURCES = %D%/budget.c
%C%_budget_CFLAGS  = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(LIBBPF_CFLAGS)
%C%_budget_LDADD   = $(LIBBPF_LIBS)
endif

TESTS += $(unit_tests) $(test_scripts)
EXTRA_DIST += $(test_scripts) %D%/budget.tab %D%/lib.sh %D%/made_statistics.py	\
	%D%/named_calls.cc %D%/plot.py %D%/reports.sh	\
	%D%/run-program.sh

## Text to artifact and back, for tests that need a file; and files in memory.
check_LIBRARIES += %D%/libsample.a
%C%_libsample_a_SOURCES =	\
	%D%/artifact_text.c	\
	%D%/artifact_text.h	\
	%D%/sample_artifact.c	\
	%D%/sample_artifact.h
%C%_libsample_a_CFLAGS = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(ZSTD_CFLAGS)
sample_libs = %D%/libsample.a artifact/libartifact.a $(artifact_libs)

check_PROGRAMS += %D%/make_artifact %D%/make_bomb %D%/dump_artifact
%C%_make_artifact_SOURCES = %D%/make_artifact.c
%C%_make_artifact_CFLAGS  = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(ZSTD_CFLAGS)
%C%_make_artifact_LDADD   = $(sample_libs)
%C%_make_bomb_SOURCES = %D%/make_bomb.c
%C%_make_bomb_CFLAGS  = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(MSGPACK_CFLAGS) $(ZSTD_CFLAGS)
%C%_make_bomb_LDADD   = $(sample_libs)
%C%_dump_artifact_SOURCES = %D%/dump_artifact.c
%C%_dump_artifact_LDADD   = $(sample_libs)
