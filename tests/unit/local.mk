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
