## SPDX-License-Identifier: LGPL-2.1-or-later
##
## One Check program for each module, named after it:
##
##   unit_tests += %D%/test_err
##   %C%_test_err_SOURCES = %D%/test_err.c
##   %C%_test_err_CFLAGS  = $(unit_cflags)
##   %C%_test_err_LDADD   = $(CHECK_LIBS)

unit_cflags = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(CHECK_CFLAGS)

unit_tests += %D%/test_assemble %D%/test_merge %D%/test_size
%C%_test_assemble_SOURCES = %D%/test_assemble.c
%C%_test_assemble_CFLAGS  = $(unit_cflags)
%C%_test_assemble_LDADD   = collector/libcollector.a $(CHECK_LIBS)
%C%_test_merge_SOURCES    = %D%/test_merge.c
%C%_test_merge_CFLAGS     = $(unit_cflags)
%C%_test_merge_LDADD      = collector/libcollector.a $(CHECK_LIBS)
%C%_test_size_SOURCES     = %D%/test_size.c
%C%_test_size_CFLAGS      = $(unit_cflags)
%C%_test_size_LDADD       = $(CHECK_LIBS)

unit_tests += %D%/test_artifact %D%/test_columns %D%/test_infos %D%/test_unpack %D%/test_writer
%C%_test_artifact_SOURCES = %D%/test_artifact.c
%C%_test_artifact_CFLAGS  = $(unit_cflags) $(XXHASH_CFLAGS) $(MSGPACK_CFLAGS)
%C%_test_artifact_LDADD   = $(sample_libs) $(CHECK_LIBS)
%C%_test_columns_SOURCES  = %D%/test_columns.c
%C%_test_columns_CFLAGS   = $(unit_cflags)
%C%_test_columns_LDADD    = artifact/libartifact.a $(CHECK_LIBS)
%C%_test_infos_SOURCES    = %D%/test_infos.c
%C%_test_infos_CFLAGS     = $(unit_cflags)
%C%_test_infos_LDADD      = artifact/libartifact.a $(CHECK_LIBS)
%C%_test_unpack_SOURCES   = %D%/test_unpack.c
%C%_test_unpack_CFLAGS    = $(unit_cflags) $(MSGPACK_CFLAGS)
%C%_test_unpack_LDADD     = artifact/libartifact.a $(MSGPACK_LIBS) $(CHECK_LIBS)
%C%_test_writer_SOURCES   = %D%/test_writer.c
%C%_test_writer_CFLAGS    = $(unit_cflags)
%C%_test_writer_LDADD     = $(sample_libs) $(CHECK_LIBS)
