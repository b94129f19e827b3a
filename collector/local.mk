## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Everything but the two mains is in a library, so that tests link what the collector
## links.  One source, probes.c, sees the skeleton.

noinst_LIBRARIES += %D%/libcollector.a %D%/libunwinder.a

## A stack's bytes to a call chain: memtrack-report does it again.
%C%_libunwinder_a_SOURCES =	\
	%D%/call_site.c		\
	%D%/call_site.h		\
	%D%/call_tree.c		\
	%D%/call_tree.h		\
	%D%/cfi.c		\
	%D%/cfi.h		\
	%D%/cfi_entry.c		\
	%D%/cfi_entry.h		\
	%D%/cfi_program.c	\
	%D%/cfi_program.h	\
	%D%/compressed_section.c \
	%D%/compressed_section.h \
	%D%/dwarf_cursor.h	\
	%D%/expression.c	\
	%D%/expression.h	\
	%D%/file_id.c		\
	%D%/file_id.h		\
	%D%/frame_pointer.c	\
	%D%/frame_pointer.h	\
	%D%/image.c		\
	%D%/image.h		\
	%D%/images.c		\
	%D%/images.h		\
	%D%/memo.c		\
	%D%/memo.h		\
	%D%/regular.h		\
	%D%/space.c		\
	%D%/space.h		\
	%D%/symbol_table.c	\
	%D%/symbol_table.h	\
	%D%/unwind.c		\
	%D%/unwind.h		\
	%D%/unwind_full.c	\
	%D%/unwind_full.h	\
	%D%/vdso.c		\
	%D%/vdso.h		\
	%D%/window.h
%C%_libunwinder_a_CPPFLAGS = $(AM_CPPFLAGS) $(LIBELF_CFLAGS)

## What links libunwinder.a links these after it.
unwinder_libs = $(LIBELF_LIBS) $(ZSTD_LIBS)

%C%_libcollector_a_SOURCES =	\
	%D%/assemble.c		\
	%D%/assemble.h		\
	%D%/batch.c		\
	%D%/batch.h		\
	%D%/bpf_ring.c		\
	%D%/bpf_ring.h		\
	%D%/capture_choice.h	\
	%D%/channel.h		\
	%D%/clock.h		\
	%D%/decode.c		\
	%D%/decode.h		\
	%D%/empty_library.c	\
	%D%/empty_library.h	\
	%D%/encode.c		\
	%D%/encode.h		\
	%D%/faults.c		\
	%D%/faults.h		\
	%D%/forward.c		\
	%D%/forward.h		\
	%D%/gauges.c		\
	%D%/gauges.h		\
	%D%/guard.c		\
	%D%/guard.h		\
	%D%/holds.c		\
	%D%/holds.h		\
	%D%/inside.c		\
	%D%/inside.h		\
	%D%/keep.c		\
	%D%/keep.h		\
	%D%/launch.c		\
	%D%/launch.h		\
	%D%/mappings.c		\
	%D%/mappings.h		\
	%D%/merge.c		\
	%D%/merge.h		\
	%D%/modules.c		\
	%D%/modules.h		\
	%D%/pidfd.h		\
	%D%/pipeline.c		\
	%D%/pipeline.h		\
	%D%/place.c		\
	%D%/place.h		\
	%D%/policy.h		\
	%D%/pressure.c		\
	%D%/pressure.h		\
	%D%/probes.h		\
	%D%/proc_state.h	\
	%D%/processes.c		\
	%D%/processes.h		\
	%D%/progress.c		\
	%D%/progress.h		\
	%D%/rest.c		\
	%D%/rest.h		\
	%D%/segments.c		\
	%D%/segments.h		\
	%D%/session.c		\
	%D%/session.h		\
	%D%/size.h		\
	%D%/stacks.c		\
	%D%/stacks.h		\
	%D%/stats.c		\
	%D%/stats.h		\
	%D%/status_line.c	\
	%D%/status_line.h	\
	%D%/summary.c		\
	%D%/summary.h		\
	%D%/teach.c		\
	%D%/teach.h		\
	%D%/tuning.h		\
	%D%/watch.c		\
	%D%/watch.h
%C%_libcollector_a_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS) $(LIBELF_CFLAGS) $(XXHASH_CFLAGS)

if ENABLE_BPF
%C%_libcollector_a_SOURCES += %D%/probes.c %D%/uprobe_link.c %D%/uprobe_link.h
%D%/libcollector_a-probes.$(OBJEXT): bpf/memtrack.skel.h
else
%C%_libcollector_a_SOURCES += %D%/probes_none.c
endif

collector_libs = %D%/libcollector.a %D%/libunwinder.a artifact/libartifact.a $(LIBBPF_LIBS) \
	$(LIBELF_LIBS) $(ZSTD_LIBS) $(XXHASH_LIBS) $(MSGPACK_LIBS) -lpthread

bin_PROGRAMS += %D%/memtrack-run
%C%_memtrack_run_SOURCES  =	\
	%D%/memtrack_run.c	\
	%D%/run_options.c	\
	%D%/run_options.h	\
	%D%/say.c		\
	%D%/say.h
%C%_memtrack_run_CPPFLAGS = $(AM_CPPFLAGS) -DMT_PKGLIBDIR='"$(pkglibdir)"'	\
	-DMT_PKGLIBEXECDIR='"$(pkglibexecdir)"'
%C%_memtrack_run_LDADD    = $(collector_libs)

pkglibexec_PROGRAMS += %D%/memtrack-collector
%C%_memtrack_collector_SOURCES = %D%/memtrack_collector.c %D%/collector_options.c	\
	%D%/collector_options.h
%C%_memtrack_collector_LDADD   = $(collector_libs)

EXTRA_DIST += %D%/probes.c %D%/probes_none.c %D%/uprobe_link.c %D%/uprobe_link.h
