## SPDX-License-Identifier: LGPL-2.1-or-later
##
## A fuzz target for each reader of bytes.  With --with-fuzzing-engine it is linked with the
## engine, to be run by hand; without, it is a test: replay.c runs it on a corpus that the
## target makes itself, so that there are no binary files in the tree, or on files named.

fuzz_cflags = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(ZSTD_CFLAGS)

fuzz_targets = %D%/fuzz_cfi %D%/fuzz_pipeline %D%/fuzz_reader
%C%_fuzz_cfi_SOURCES = %D%/fuzz_cfi.c %D%/fuzz.h $(cfi_bytes)
%C%_fuzz_cfi_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_cfi_LDADD   = collector/libunwinder.a $(unwinder_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_pipeline_SOURCES = %D%/fuzz_pipeline.c %D%/fuzz.h
%C%_fuzz_pipeline_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_pipeline_LDADD   = $(collector_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_reader_SOURCES = %D%/fuzz_reader.c %D%/fuzz.h
%C%_fuzz_reader_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_reader_LDADD   = $(sample_libs) $(MT_FUZZ_LIBS)

if FUZZING_ENGINE
check_PROGRAMS += $(fuzz_targets)
else
%C%_fuzz_cfi_SOURCES += %D%/replay.c
%C%_fuzz_pipeline_SOURCES += %D%/replay.c
%C%_fuzz_reader_SOURCES += %D%/replay.c
unit_tests += $(fuzz_targets)
endif
