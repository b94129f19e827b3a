## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Programs that break profilers, README says how; cases.tab has how they are run and what
## is to come of it.  As fixtures, but each of one source, compiled and linked at once, so
## that a program costs a name in one of the lists below: of C, C++ and assembly programs,
## and of shared objects.  For a program's own flags:
##
##   %D%/NAME: hostile_flags = -fsome-flag
##   %D%/NAME: hostile_libs  = -lsomething
##
## What has a rule of its own is a name in hostile_extra, and its source in hostile_files.

hostile_c     =
hostile_cc    =
hostile_asm   =
hostile_so    =
hostile_extra =

hostile_files =			\
	%D%/README		\
	%D%/cases.tab		\
	%D%/hostile.py		\
	%D%/judge.py		\
	%D%/needs.py

hostile_flags =
hostile_libs  =
hostile_base  = -include config.h -iquote $(top_builddir) -iquote $(top_srcdir) $(CPPFLAGS)
hostile_end   = fixtures/libledger.a $(hostile_libs) -pthread
hostile_ccld  = $(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(hostile_base) $(fixture_cflags)
hostile_cxxld = $(AM_V_CXXLD)$(MKDIR_P) %D% && $(CXX) $(hostile_base) $(fixture_cxxflags)

%D%/%: %D%/%.c fixtures/libledger.a
	$(hostile_ccld) $(hostile_flags) -o $@ $< $(hostile_end)
%D%/%: %D%/%.S fixtures/libledger.a
	$(hostile_ccld) $(hostile_flags) -o $@ $< $(hostile_end)
%D%/%: %D%/%.cc fixtures/libledger.a
	$(hostile_cxxld) $(hostile_flags) -o $@ $< $(hostile_end)
%D%/%.so: %D%/%.c
	$(hostile_ccld) -fPIC -shared $(hostile_flags) -o $@ $< $(hostile_libs) -pthread

## From the start of a process, malloc, LD_PRELOAD, processes, descriptors, names, signals.
hostile_c +=			\
	%D%/preinit_dlsym

## End of the lists.
hostile_built   = $(hostile_c) $(hostile_cc) $(hostile_asm) $(hostile_so) $(hostile_extra)
hostile_sources = $(hostile_c:=.c) $(hostile_cc:=.cc) $(hostile_asm:=.S) $(hostile_so:.so=.c)

check_DATA    = $(hostile_built)
CLEANFILES   += $(hostile_built)
EXTRA_DIST   += $(hostile_sources) $(hostile_files)
test_scripts += %D%/hostile.test

## make check-hostile HOSTILE="NAME ...": those rows of cases.tab only.
HOSTILE =
AM_TESTS_ENVIRONMENT += HOSTILE='$(HOSTILE)'; export HOSTILE;
check-hostile: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=%D%/hostile.test
.PHONY: check-hostile
