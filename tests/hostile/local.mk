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
	%D%/crowds			\
	%D%/daemonized		\
	%D%/deep_plugin		\
	%D%/descriptor_table		\
	%D%/drop_root		\
	%D%/early_guests		\
	%D%/early_neighbour_user		\
	%D%/exchange		\
	%D%/exit_handler_storm		\
	%D%/first_together		\
	%D%/forks_together		\
	%D%/ignored_children		\
	%D%/images_by_turns		\
	%D%/inner_pids		\
	%D%/late_last_thread		\
	%D%/late_plugin		\
	%D%/loader_held		\
	%D%/long_command		\
	%D%/memory_image		\
	%D%/odd_environment		\
	%D%/own_allocator		\
	%D%/own_names		\
	%D%/preinit_dlsym		\
	%D%/private_mount		\
	%D%/raw_fork		\
	%D%/relative_plugin		\
	%D%/replaced_program		\
	%D%/secure_child		\
	%D%/self_called		\
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
	%D%/sandboxed_plugin.so		\
	%D%/self_calling_malloc.so		\
	%D%/static_tls_plugin.so		\
	%D%/wrapping_malloc.so

hostile_files +=			\
	%D%/copy_file.h			\
	%D%/demand.h			\
	%D%/exchange_plugin.h		\
	%D%/filter.h			\
	%D%/odd_places.sh		\
	%D%/secure_child.sh		\
	%D%/through_loader.sh		\
	%D%/openmp_loops.c		\
	%D%/resolver_user.c

%D%/own_allocator %D%/loader_held %D%/own_names: hostile_flags = -rdynamic
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

## Signals and waits; stacks in hard places; what calls may not change; frames and code of
## all kinds; ends.
hostile_c +=			\
	%D%/allocating_recursion	\
	%D%/allocator_as_callback	\
	%D%/assembly_frames		\
	%D%/corner_arguments		\
	%D%/errno_kept			\
	%D%/frames_around_budget	\
	%D%/generated_code		\
	%D%/heap_coroutines		\
	%D%/heap_of_its_own		\
	%D%/interrupted_twice		\
	%D%/mappings			\
	%D%/never_stopped		\
	%D%/no_counter		\
	%D%/odd_thread_stacks		\
	%D%/own_rseq			\
	%D%/packaged			\
	%D%/passed_on_blocks		\
	%D%/recovered_overflow		\
	%D%/registers_kept		\
	%D%/same_names_as_libc		\
	%D%/sandboxed			\
	%D%/sandboxed_handlers		\
	%D%/signal_stacks		\
	%D%/signals_waited_for		\
	%D%/single_steps		\
	%D%/small_limits		\
	%D%/stays_stopped		\
	%D%/sudden_ends			\
	%D%/tiny_stacks			\
	%D%/two_text_segments		\
	%D%/unusual_frames		\
	%D%/usable_size_filled		\
	%D%/vanishing_pages		\
	%D%/vfork_gives_up		\
	%D%/waits_undisturbed
hostile_cc +=			\
	%D%/leaving_handlers		\
	%D%/own_operators
hostile_extra +=		\
	%D%/debug_frame_only		\
	%D%/debug_frame_packed		\
	%D%/frames_without_index
hostile_files +=		\
	%D%/far_text.ld			\
	%D%/guarded_call.S		\
	%D%/job_control.py		\
	%D%/packagings.py		\
	%D%/split_stacks.c		\
	%D%/switch_stack.S		\
	%D%/without_cfi.S

hostile_source = $(srcdir)/tests/hostile

## What they call in assembly.
%D%/assembly_frames: %D%/without_cfi.S
%D%/assembly_frames: hostile_libs = $(hostile_source)/without_cfi.S
%D%/registers_kept: %D%/guarded_call.S
%D%/registers_kept: hostile_libs = $(hostile_source)/guarded_call.S
%D%/tiny_stacks: %D%/switch_stack.S
%D%/tiny_stacks: hostile_libs = $(hostile_source)/switch_stack.S

%D%/own_operators: hostile_flags = -std=c++20
%D%/two_text_segments: %D%/far_text.ld
%D%/two_text_segments: hostile_libs =				\
	-Wl,-T,$(hostile_source)/far_text.ld -Wl,-z,noseparate-code

## The same program with unwinding information of other kinds.
hostile_no_eh_frame = -fno-asynchronous-unwind-tables -fno-unwind-tables
%D%/debug_frame_only: %D%/unusual_frames.c fixtures/libledger.a
	$(hostile_ccld) $(hostile_no_eh_frame) -o $@ $(hostile_source)/unusual_frames.c	\
		$(hostile_end)
%D%/debug_frame_packed: %D%/unusual_frames.c fixtures/libledger.a
	$(hostile_ccld) $(hostile_no_eh_frame) -gz=zlib -o $@			\
		$(hostile_source)/unusual_frames.c $(hostile_end)
%D%/frames_without_index: %D%/unusual_frames.c fixtures/libledger.a
	$(hostile_ccld) -Wl,--no-eh-frame-hdr -o $@				\
		$(hostile_source)/unusual_frames.c $(hostile_end)

## From statuses, signals and streams, debuggers, ends, limits, allocators, other languages,
## large trees, and hostile artifacts.
hostile_c +=			\
	%D%/allocator_in_use	\
	%D%/beyond_32_bits	\
	%D%/children_reaped	\
	%D%/every_descriptor	\
	%D%/growing_tree	\
	%D%/many_at_once	\
	%D%/many_stacks		\
	%D%/own_tracer		\
	%D%/paced		\
	%D%/shifting_windows	\
	%D%/signal_counter

hostile_files +=		\
	%D%/DirectBuffers.java	\
	%D%/around.py		\
	%D%/artifacts.py	\
	%D%/buffers_of_workers.js \
	%D%/builds.py		\
	%D%/fork_pool.py	\
	%D%/panics.rs		\
	%D%/hardened.c		\
	%D%/plain_blocks.c

## One source, as it is built here and there.
hostile_hardened =		\
	%D%/hardened_cet	\
	%D%/hardened_fixed	\
	%D%/hardened_hooks	\
	%D%/hardened_lto	\
	%D%/hardened_mcount
%D%/hardened_cet: hostile_flags = -fcf-protection=full -fstack-protector-strong	\
	-fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -pie -fPIE	\
	-Wl,-z,now -Wl,-z,relro
%D%/hardened_fixed: hostile_flags = -fno-pie -no-pie
%D%/hardened_hooks: hostile_flags = -finstrument-functions
%D%/hardened_lto: hostile_flags = -flto
%D%/hardened_mcount: hostile_flags = -pg -fno-omit-frame-pointer
hostile_extra += $(hostile_hardened)
$(hostile_hardened): %D%/hardened.c fixtures/libledger.a
	$(hostile_ccld) $(hostile_flags) -o $@ $(srcdir)/%D%/hardened.c $(hostile_end)

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
