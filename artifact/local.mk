## SPDX-License-Identifier: LGPL-2.1-or-later

noinst_LIBRARIES += %D%/libartifact.a

%C%_libartifact_a_SOURCES =	\
	%D%/columns.c		\
	%D%/columns.h		\
	%D%/format.h		\
	%D%/frames.c		\
	%D%/frames.h		\
	%D%/infos.c		\
	%D%/infos.h		\
	%D%/layout.h		\
	%D%/output.c		\
	%D%/output.h		\
	%D%/reader.c		\
	%D%/reader.h		\
	%D%/symbol_list.c	\
	%D%/symbol_list.h	\
	%D%/unpack.c		\
	%D%/unpack.h		\
	%D%/weight.h		\
	%D%/writer.c		\
	%D%/writer.h
%C%_libartifact_a_CFLAGS = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(ZSTD_CFLAGS)	\
	$(XXHASH_CFLAGS) $(MSGPACK_CFLAGS)

## What links libartifact.a links these after it.
artifact_libs = $(ZSTD_LIBS) $(XXHASH_LIBS) $(MSGPACK_LIBS)
