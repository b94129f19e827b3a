## SPDX-License-Identifier: LGPL-2.1-or-later
##
## One Check program for each module, named after it:
##
##   unit_tests += %D%/test_err
##   %C%_test_err_SOURCES = %D%/test_err.c
##   %C%_test_err_CFLAGS  = $(unit_cflags)
##   %C%_test_err_LDADD   = $(CHECK_LIBS)

unit_cflags = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(CHECK_CFLAGS)

unit_tests += %D%/test_assemble %D%/test_build_id %D%/test_merge %D%/test_size %D%/test_tuning
unit_tests += %D%/test_arena %D%/test_policy
%C%_test_arena_SOURCES    = %D%/test_arena.c preload/arena.c
%C%_test_arena_CFLAGS     = $(unit_cflags)
%C%_test_arena_LDADD      = $(CHECK_LIBS)
%C%_test_assemble_SOURCES = %D%/test_assemble.c
%C%_test_assemble_CFLAGS  = $(unit_cflags)
%C%_test_assemble_LDADD   = collector/libcollector.a $(CHECK_LIBS)
%C%_test_build_id_SOURCES = %D%/test_build_id.c
%C%_test_build_id_CFLAGS  = $(unit_cflags)
%C%_test_build_id_LDADD   = $(CHECK_LIBS)
%C%_test_merge_SOURCES    = %D%/test_merge.c
%C%_test_merge_CFLAGS     = $(unit_cflags)
%C%_test_merge_LDADD      = collector/libcollector.a $(CHECK_LIBS)
%C%_test_size_SOURCES     = %D%/test_size.c
%C%_test_size_CFLAGS      = $(unit_cflags)
%C%_test_size_LDADD       = $(CHECK_LIBS)
%C%_test_policy_SOURCES   = %D%/test_policy.c
%C%_test_policy_CFLAGS    = $(unit_cflags)
%C%_test_policy_LDADD     = $(CHECK_LIBS)
%C%_test_tuning_SOURCES   = %D%/test_tuning.c
%C%_test_tuning_CFLAGS    = $(unit_cflags)
%C%_test_tuning_LDADD     = $(CHECK_LIBS)

## The collector's stages, but for the codec and the unwinder.
unit_tests += %D%/test_batch %D%/test_encode %D%/test_faults %D%/test_holds %D%/test_inside \
	%D%/test_keep %D%/test_modules %D%/test_place %D%/test_processes %D%/test_progress	\
	%D%/test_session %D%/test_stacks %D%/test_stats %D%/test_summary	\
	%D%/test_watch
collector_test_libs = tests/libsample.a $(collector_libs) $(CHECK_LIBS)
%C%_test_batch_SOURCES     = %D%/test_batch.c
%C%_test_batch_CFLAGS      = $(unit_cflags)
%C%_test_batch_LDADD       = $(collector_test_libs)
%C%_test_encode_SOURCES    = %D%/test_encode.c
%C%_test_encode_CFLAGS     = $(unit_cflags)
%C%_test_encode_LDADD      = $(collector_test_libs)
%C%_test_faults_SOURCES    = %D%/test_faults.c
%C%_test_faults_CFLAGS     = $(unit_cflags)
%C%_test_faults_LDADD      = $(collector_test_libs)
%C%_test_holds_SOURCES     = %D%/test_holds.c
%C%_test_holds_CFLAGS      = $(unit_cflags)
%C%_test_holds_LDADD       = $(collector_test_libs)
%C%_test_inside_SOURCES    = %D%/test_inside.c
%C%_test_inside_CFLAGS     = $(unit_cflags)
%C%_test_inside_LDADD      = $(collector_test_libs)
%C%_test_keep_SOURCES      = %D%/test_keep.c
%C%_test_keep_CFLAGS       = $(unit_cflags)
%C%_test_keep_LDADD        = $(collector_test_libs)
%C%_test_modules_SOURCES   = %D%/test_modules.c $(cfi_bytes)
%C%_test_modules_CFLAGS    = $(unit_cflags)
%C%_test_modules_LDADD     = $(collector_test_libs)
%C%_test_place_SOURCES     = %D%/test_place.c
%C%_test_place_CFLAGS      = $(unit_cflags)
%C%_test_place_LDADD       = $(collector_test_libs)
%C%_test_processes_SOURCES = %D%/test_processes.c
%C%_test_processes_CFLAGS  = $(unit_cflags)
%C%_test_processes_LDADD   = $(collector_test_libs)
%C%_test_progress_SOURCES  = %D%/test_progress.c
%C%_test_progress_CFLAGS   = $(unit_cflags)
%C%_test_progress_LDADD    = $(collector_test_libs)
%C%_test_session_SOURCES   = %D%/test_session.c
%C%_test_session_CFLAGS    = $(unit_cflags)
%C%_test_session_LDADD     = $(collector_test_libs)
%C%_test_stacks_SOURCES    = %D%/test_stacks.c tests/inline_slot.h tests/stack_player.h
%C%_test_stacks_CFLAGS     = $(unit_cflags)
%C%_test_stacks_LDADD      = $(collector_test_libs)
%C%_test_stats_SOURCES     = %D%/test_stats.c
%C%_test_stats_CFLAGS      = $(unit_cflags)
%C%_test_stats_LDADD       = $(collector_test_libs)
%C%_test_summary_SOURCES   = %D%/test_summary.c
%C%_test_summary_CFLAGS    = $(unit_cflags)
%C%_test_summary_LDADD     = $(collector_test_libs)
%C%_test_watch_SOURCES     = %D%/test_watch.c
%C%_test_watch_CFLAGS      = $(unit_cflags)
%C%_test_watch_LDADD       = $(collector_test_libs)

unit_tests += %D%/test_artifact %D%/test_columns %D%/test_infos %D%/test_kept_stacks	\
	%D%/test_unpack %D%/test_writer
%C%_test_artifact_SOURCES = %D%/test_artifact.c
%C%_test_artifact_CFLAGS  = $(unit_cflags) $(XXHASH_CFLAGS) $(MSGPACK_CFLAGS)
%C%_test_artifact_LDADD   = $(sample_libs) $(CHECK_LIBS)
%C%_test_columns_SOURCES  = %D%/test_columns.c
%C%_test_columns_CFLAGS   = $(unit_cflags)
%C%_test_columns_LDADD    = artifact/libartifact.a $(CHECK_LIBS)
%C%_test_infos_SOURCES    = %D%/test_infos.c
%C%_test_infos_CFLAGS     = $(unit_cflags)
%C%_test_infos_LDADD      = artifact/libartifact.a $(CHECK_LIBS)
%C%_test_kept_stacks_SOURCES = %D%/test_kept_stacks.c
%C%_test_kept_stacks_CFLAGS  = $(unit_cflags) $(XXHASH_CFLAGS) $(MSGPACK_CFLAGS)
%C%_test_kept_stacks_LDADD   = $(sample_libs) $(CHECK_LIBS)
%C%_test_unpack_SOURCES   = %D%/test_unpack.c
%C%_test_unpack_CFLAGS    = $(unit_cflags) $(MSGPACK_CFLAGS)
%C%_test_unpack_LDADD     = artifact/libartifact.a $(MSGPACK_LIBS) $(CHECK_LIBS)
%C%_test_writer_SOURCES   = %D%/test_writer.c
%C%_test_writer_CFLAGS    = $(unit_cflags)
%C%_test_writer_LDADD     = $(sample_libs) $(CHECK_LIBS)

unit_tests += %D%/test_decode %D%/test_digest %D%/test_stack_delta
%C%_test_decode_SOURCES      = %D%/test_decode.c tests/inline_slot.h tests/stack_player.h
%C%_test_decode_CFLAGS       = $(unit_cflags) $(XXHASH_CFLAGS)
%C%_test_decode_LDADD        = collector/libcollector.a $(XXHASH_LIBS) $(CHECK_LIBS)
%C%_test_digest_SOURCES      = %D%/test_digest.c
%C%_test_digest_CFLAGS       = $(unit_cflags) $(XXHASH_CFLAGS)
%C%_test_digest_LDADD        = $(XXHASH_LIBS) $(CHECK_LIBS)
%C%_test_stack_delta_SOURCES = %D%/test_stack_delta.c preload/compare.S tests/inline_slot.h	\
	tests/stack_player.h
%C%_test_stack_delta_CFLAGS  = $(unit_cflags)
%C%_test_stack_delta_CCASFLAGS = $(AM_CCASFLAGS)
%C%_test_stack_delta_LDADD   = collector/libcollector.a $(XXHASH_LIBS) $(CHECK_LIBS)

## The shim's code, but not its flags: here it may be sanitized.
unit_tests += %D%/test_gauges %D%/test_rest %D%/test_ring_append
%C%_test_gauges_SOURCES = %D%/test_gauges.c %D%/ring_writer.c %D%/ring_writer.h	\
	preload/ring.c
%C%_test_gauges_CFLAGS  = $(unit_cflags)
%C%_test_gauges_LDADD   = $(collector_test_libs)
%C%_test_rest_SOURCES   = %D%/test_rest.c %D%/ring_writer.c %D%/ring_writer.h preload/ring.c
%C%_test_rest_CFLAGS    = $(unit_cflags)
%C%_test_rest_LDADD     = $(collector_test_libs)
%C%_test_ring_append_SOURCES = %D%/test_ring_append.c preload/ring.c
%C%_test_ring_append_CFLAGS  = $(unit_cflags)
%C%_test_ring_append_LDADD   = $(CHECK_LIBS)

unit_tests += %D%/test_block_table %D%/test_demangle %D%/test_json_writer %D%/test_rank	\
	%D%/test_replay
%C%_test_block_table_SOURCES = %D%/test_block_table.c
%C%_test_block_table_CFLAGS  = $(unit_cflags)
%C%_test_block_table_LDADD   = report/libreport.a $(CHECK_LIBS)
%C%_test_demangle_SOURCES    = %D%/test_demangle.c
%C%_test_demangle_CFLAGS     = $(unit_cflags)
%C%_test_demangle_LDADD      = report/libreport.a $(IBERTY_LIBS) $(CHECK_LIBS)
%C%_test_json_writer_SOURCES = %D%/test_json_writer.c
%C%_test_json_writer_CFLAGS  = $(unit_cflags)
%C%_test_json_writer_LDADD   = report/libreport.a $(CHECK_LIBS)
%C%_test_rank_SOURCES        = %D%/test_rank.c
%C%_test_rank_CFLAGS         = $(unit_cflags)
%C%_test_rank_LDADD          = report/libreport.a $(CHECK_LIBS)
%C%_test_replay_SOURCES      = %D%/test_replay.c
%C%_test_replay_CFLAGS       = $(unit_cflags)
%C%_test_replay_LDADD        = report/libreport.a $(CHECK_LIBS)

## What of the shim can be had by itself.
unit_tests += %D%/test_learned %D%/test_recent
%C%_test_learned_SOURCES = %D%/test_learned.c preload/learned.c preload/learned.h
%C%_test_learned_CFLAGS  = $(unit_cflags) -fno-strict-aliasing
%C%_test_learned_LDADD   = $(CHECK_LIBS)
%C%_test_recent_SOURCES  = %D%/test_recent.c preload/recent.h
%C%_test_recent_CFLAGS   = $(unit_cflags)
%C%_test_recent_LDADD    = $(CHECK_LIBS)

## The unwinder.
unwind_test_libs = collector/libunwinder.a $(unwinder_libs) $(CHECK_LIBS)
cfi_bytes = tests/cfi_bytes.c tests/cfi_bytes.h

unit_tests += %D%/test_call_site %D%/test_call_tree %D%/test_cfi %D%/test_expression	\
	%D%/test_frame_pointer %D%/test_image %D%/test_space %D%/test_symbol_table	\
	%D%/test_teach %D%/test_unwind %D%/test_unwind_live
%C%_test_call_site_SOURCES  = %D%/test_call_site.c %D%/call_forms.S %D%/call_forms.h	\
	$(cfi_bytes)
%C%_test_call_site_CFLAGS   = $(unit_cflags)
%C%_test_call_site_LDADD    = $(unwind_test_libs)
%C%_test_call_tree_SOURCES  = %D%/test_call_tree.c
%C%_test_call_tree_CFLAGS   = $(unit_cflags)
%C%_test_call_tree_LDADD    = $(unwind_test_libs)
%C%_test_cfi_SOURCES        = %D%/test_cfi.c $(cfi_bytes)
%C%_test_cfi_CFLAGS         = $(unit_cflags)
%C%_test_cfi_LDADD          = $(unwind_test_libs)
%C%_test_expression_SOURCES = %D%/test_expression.c $(cfi_bytes)
%C%_test_expression_CFLAGS  = $(unit_cflags)
%C%_test_expression_LDADD   = $(unwind_test_libs)
%C%_test_frame_pointer_SOURCES = %D%/test_frame_pointer.c $(cfi_bytes)
%C%_test_frame_pointer_CFLAGS  = $(unit_cflags)
%C%_test_frame_pointer_LDADD   = $(unwind_test_libs)
%C%_test_image_SOURCES      = %D%/test_image.c $(cfi_bytes)
%C%_test_image_CFLAGS       = $(unit_cflags) $(ZSTD_CFLAGS)
%C%_test_image_LDADD        = $(unwind_test_libs)
%C%_test_space_SOURCES      = %D%/test_space.c $(cfi_bytes)
%C%_test_space_CFLAGS       = $(unit_cflags)
%C%_test_space_LDADD        = $(unwind_test_libs)
%C%_test_symbol_table_SOURCES = %D%/test_symbol_table.c
%C%_test_symbol_table_CFLAGS  = $(unit_cflags)
%C%_test_symbol_table_LDADD   = $(unwind_test_libs)
%C%_test_teach_SOURCES      = %D%/test_teach.c $(cfi_bytes)
%C%_test_teach_CFLAGS       = $(unit_cflags)
%C%_test_teach_LDADD        = $(collector_test_libs)
%C%_test_unwind_SOURCES     = %D%/test_unwind.c $(cfi_bytes)
%C%_test_unwind_CFLAGS      = $(unit_cflags)
%C%_test_unwind_LDADD       = $(unwind_test_libs)

## Its own stacks are what is unwound: compiled as programs are, and with its functions where
## the libraries that it loads find them.
%C%_test_unwind_live_SOURCES = preload/learned.c preload/learned.h	\
	%D%/live_cxx.cc %D%/live_stack.c %D%/live_stack.h		\
	%D%/test_unwind_live.c
%C%_test_unwind_live_CFLAGS   = $(unit_cflags) -O2 -fomit-frame-pointer
%C%_test_unwind_live_CXXFLAGS = $(MT_WARN_CXXFLAGS) $(MT_SAN_CFLAGS) -O2 -fomit-frame-pointer
%C%_test_unwind_live_LDFLAGS  = $(AM_LDFLAGS) -Wl,--export-dynamic
%C%_test_unwind_live_LDADD    = $(collector_test_libs)

live_libraries = %D%/live_debug_frame.so %D%/live_debug_frame_z.so %D%/live_lazy.so
live_cflags = -O2 -fomit-frame-pointer -fPIC -shared
debug_frame_cflags = $(live_cflags) -g -fno-asynchronous-unwind-tables -fno-exceptions
EXTRA_%C%_test_unwind_live_DEPENDENCIES = $(live_libraries)
CLEANFILES += $(live_libraries)
EXTRA_DIST += %D%/live_debug_frame.c %D%/live_lazy.c

%D%/live_lazy.so: %D%/live_lazy.c
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(live_cflags) -Wl,-z,lazy -o $@ $<
%D%/live_debug_frame.so: %D%/live_debug_frame.c
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(debug_frame_cflags) -o $@ $<
%D%/live_debug_frame_z.so: %D%/live_debug_frame.c
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(debug_frame_cflags)	\
		-Wl,--compress-debug-sections=zlib -o $@ $<

## Against libdw, on what is installed.
unit_tests += tests/oracle/cfi_oracle
tests_oracle_cfi_oracle_SOURCES = tests/oracle/cfi_oracle.c
tests_oracle_cfi_oracle_CFLAGS  = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(LIBDW_CFLAGS)	\
	$(LIBELF_CFLAGS)
tests_oracle_cfi_oracle_LDADD   = collector/libunwinder.a $(LIBDW_LIBS) $(unwinder_libs)
