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
## What is looked up by its name has no header.
hostile_ccld  = $(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(hostile_base) $(fixture_cflags)	\
	-Wno-missing-prototypes
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
	%D%/alone_in_process		\
	%D%/atfork_handlers		\
	%D%/cancel_pending		\
	%D%/closed_streams		\
	%D%/daemonized		\
	%D%/descriptor_table		\
	%D%/drop_root		\
	%D%/early_neighbour_user		\
	%D%/exchange		\
	%D%/exit_handler_storm		\
	%D%/ignored_children		\
	%D%/images_by_turns		\
	%D%/inner_pids		\
	%D%/loader_held		\
	%D%/long_command		\
	%D%/memory_image		\
	%D%/odd_environment		\
	%D%/own_allocator		\
	%D%/preinit_dlsym		\
	%D%/private_mount		\
	%D%/raw_fork		\
	%D%/replaced_program		\
	%D%/secure_child		\
	%D%/spawn_storm		\
	%D%/stack_limits		\
	%D%/static_parent		\
	%D%/static_tls		\
	%D%/thread_names		\
	%D%/timer_and_fork		\
	%D%/traced_child		\
	%D%/unload_count		\
	%D%/ways_to_end		\
	%D%/wiped_environment		\
	%D%/wrapped

hostile_cc += %D%/late_thread_ends %D%/own_new

hostile_so +=			\
	%D%/auditor.so		\
	%D%/early_neighbour.so		\
	%D%/exchange_plugin.so		\
	%D%/loader_held_plugin.so		\
	%D%/resolver_plugin.so		\
	%D%/static_tls_plugin.so		\
	%D%/wrapping_malloc.so

hostile_files +=			\
	%D%/demand.h			\
	%D%/odd_places.sh		\
	%D%/secure_child.sh		\
	%D%/through_loader.sh		\
	%D%/openmp_loops.c		\
	%D%/resolver_user.c

%D%/own_allocator %D%/loader_held: hostile_flags = -rdynamic
%D%/static_parent: hostile_flags = -static
%D%/resolver_plugin.so: hostile_flags = -Wl,-z,lazy -Wl,-soname,resolver_plugin.so

hostile_extra += %D%/resolver_user %D%/openmp_loops
%D%/resolver_user: %D%/resolver_user.c %D%/resolver_plugin.so fixtures/libledger.a
	$(hostile_ccld) -Wl,-z,lazy -o $@ $< %D%/resolver_plugin.so '-Wl,-rpath,$$ORIGIN'	\
		$(hostile_end)
## Without OpenMP the loop is one thread's, and its row is skipped.
%D%/openmp_loops: %D%/openmp_loops.c fixtures/libledger.a
	$(hostile_ccld) -fopenmp -o $@ $< $(hostile_end) ||				\
	$(hostile_ccld) -Wno-unknown-pragmas -o $@ $< $(hostile_end)

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
