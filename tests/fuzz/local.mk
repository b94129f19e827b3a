## SPDX-License-Identifier: LGPL-2.1-or-later
##
## A fuzz target for each reader of bytes.  With --with-fuzzing-engine it is linked with the
## engine, to be run by run.sh; without, it is a test: replay.c runs it on a corpus that the
## target makes itself, so that there are no binary files in the tree, or on files named.

fuzz_cflags = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(ZSTD_CFLAGS)

fuzz_targets =			\
	%D%/fuzz_cfi		\
	%D%/fuzz_datagrams	\
	%D%/fuzz_debug_file	\
	%D%/fuzz_elf		\
	%D%/fuzz_names		\
	%D%/fuzz_pipeline	\
	%D%/fuzz_proc		\
	%D%/fuzz_reader		\
	%D%/fuzz_report		\
	%D%/fuzz_text

%C%_fuzz_cfi_SOURCES = %D%/fuzz_cfi.c $(cfi_bytes)
%C%_fuzz_cfi_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_cfi_LDADD   = %D%/libfuzz.a collector/libunwinder.a $(unwinder_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_datagrams_SOURCES = %D%/fuzz_datagrams.c
%C%_fuzz_datagrams_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_datagrams_LDADD   = %D%/libfuzz.a $(collector_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_debug_file_SOURCES = %D%/fuzz_debug_file.c
%C%_fuzz_debug_file_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_debug_file_LDADD   = %D%/libfuzz.a tests/libsample.a report/libreport.a $(report_libs)	\
	$(MT_FUZZ_LIBS)
%C%_fuzz_elf_SOURCES = %D%/fuzz_elf.c $(cfi_bytes)
%C%_fuzz_elf_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_elf_LDADD   = %D%/libfuzz.a $(collector_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_names_SOURCES = %D%/fuzz_names.c $(fuzz_printed)
%C%_fuzz_names_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_names_LDADD   = %D%/libfuzz.a report/libreport.a $(IBERTY_LIBS) $(MT_FUZZ_LIBS)
%C%_fuzz_pipeline_SOURCES = %D%/fuzz_pipeline.c %D%/kernel.c %D%/kernel.h
%C%_fuzz_pipeline_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_pipeline_LDADD   = %D%/libfuzz.a $(collector_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_proc_SOURCES = %D%/fuzz_proc.c $(cfi_bytes)
%C%_fuzz_proc_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_proc_LDADD   = %D%/libfuzz.a $(collector_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_reader_SOURCES = %D%/fuzz_reader.c
%C%_fuzz_reader_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_reader_LDADD   = %D%/libfuzz.a $(sample_libs) $(MT_FUZZ_LIBS)
%C%_fuzz_report_SOURCES = %D%/fuzz_report.c $(fuzz_printed)
%C%_fuzz_report_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_report_LDADD   = %D%/libfuzz.a tests/libsample.a report/libreport.a $(report_libs)	\
	$(MT_FUZZ_LIBS)
%C%_fuzz_text_SOURCES = %D%/fuzz_text.c
%C%_fuzz_text_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_text_LDADD   = %D%/libfuzz.a $(collector_libs) $(MT_FUZZ_LIBS)

fuzz_printed = %D%/printed.c %D%/printed.h

## What drives a target, and makes its corpus.
check_LIBRARIES += %D%/libfuzz.a
%C%_libfuzz_a_SOURCES = %D%/around.c %D%/fuzz.h
%C%_libfuzz_a_CFLAGS  = $(fuzz_cflags)
if FUZZING_ENGINE
%C%_libfuzz_a_SOURCES += %D%/seeds.c
check_PROGRAMS += $(fuzz_targets)
else
%C%_libfuzz_a_SOURCES += %D%/replay.c
unit_tests += $(fuzz_targets)
endif

## Debug information to begin with.
debugged = %D%/debugged_4.so %D%/debugged_5.so %D%/debugged_z.so
debugged_cflags = -O2 -fPIC -shared -nostdlib -Wl,--build-id
EXTRA_%C%_fuzz_debug_file_DEPENDENCIES = $(debugged)
CLEANFILES += $(debugged)
EXTRA_DIST += %D%/debugged.c %D%/replay.c %D%/run.sh %D%/seeds.c

%D%/debugged_4.so: %D%/debugged.c
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(debugged_cflags) -g -gdwarf-4 -o $@ $<
%D%/debugged_5.so: %D%/debugged.c
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(debugged_cflags) -g -gdwarf-5 -o $@ $<
%D%/debugged_z.so: %D%/debugged.c
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(debugged_cflags) -g -gz=zlib -o $@ $<
