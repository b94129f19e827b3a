## SPDX-License-Identifier: LGPL-2.1-or-later
##
## A fuzz target for each reader of bytes.  With --with-fuzzing-engine it is linked with the
## engine; without, replay.c runs it on the files named, or on a corpus that the target
## makes itself: there are no binary files in the tree.

fuzz_cflags = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(ZSTD_CFLAGS)

if FUZZING_ENGINE
fuzz_main =
else
fuzz_main = %D%/replay.c
endif

unit_tests += %D%/fuzz_reader
%C%_fuzz_reader_SOURCES = %D%/fuzz_reader.c %D%/corpus.h $(fuzz_main)
%C%_fuzz_reader_CFLAGS  = $(fuzz_cflags)
%C%_fuzz_reader_LDADD   = artifact/libartifact.a $(artifact_libs) $(MT_FUZZ_LIBS)
