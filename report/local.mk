## SPDX-License-Identifier: LGPL-2.1-or-later
##
## All but main() is in a library, so that tests link what the program links.

noinst_LIBRARIES += %D%/libreport.a
%C%_libreport_a_SOURCES =	\
	%D%/block_table.c	\
	%D%/block_table.h	\
	%D%/debug_file.c	\
	%D%/debug_file.h	\
	%D%/demangle.c		\
	%D%/demangle.h		\
	%D%/grow.h		\
	%D%/json.c		\
	%D%/json.h		\
	%D%/json_writer.c	\
	%D%/json_writer.h	\
	%D%/mix.h		\
	%D%/printable.c		\
	%D%/printable.h		\
	%D%/rank.c		\
	%D%/rank.h		\
	%D%/replay.c		\
	%D%/replay.h		\
	%D%/run.c		\
	%D%/run.h		\
	%D%/scopes.c		\
	%D%/scopes.h		\
	%D%/sizes.c		\
	%D%/sizes.h		\
	%D%/symbolize.c		\
	%D%/symbolize.h		\
	%D%/symbols.c		\
	%D%/symbols.h		\
	%D%/text.c		\
	%D%/text.h		\
	%D%/verify.c		\
	%D%/verify.h		\
	%D%/view.h		\
	%D%/zstd_sections.c	\
	%D%/zstd_sections.h
%C%_libreport_a_CFLAGS = $(MT_WARN_CFLAGS) $(MT_SAN_CFLAGS) $(LIBELF_CFLAGS) $(LIBDW_CFLAGS)	\
	$(ZSTD_CFLAGS) $(XXHASH_CFLAGS)

## What links libreport.a links these after it.
report_libs = artifact/libartifact.a collector/libunwinder.a $(artifact_libs)	\
	$(LIBDW_LIBS) $(LIBELF_LIBS) $(IBERTY_LIBS)

## The interpreter that has matplotlib, and the version, are put in.  The module lies beside
## the script, so that it is found before the one of an installation.  [@]: or configure would
## replace the words here.
bin_SCRIPTS  += %D%/memtrack-plot
pkgdata_DATA  = %D%/plot_statistics.py
EXTRA_DIST   += %D%/memtrack_plot.py %D%/plot_statistics.py
CLEANFILES   += %D%/memtrack-plot
%D%/memtrack-plot: %D%/memtrack_plot.py $(srcdir)/%D%/plot_statistics.py	\
		$(srcdir)/%D%/local.mk config.status
	$(AM_V_GEN)$(MKDIR_P) %D%
	$(AM_V_at)test %D%/plot_statistics.py -ef $(srcdir)/%D%/plot_statistics.py ||	\
		cp -f $(srcdir)/%D%/plot_statistics.py %D%/
	$(AM_V_at)sed -e '1s|^#!.*|#!$(PLOT_PYTHON)|' -e 's|[@]VERSION[@]|$(VERSION)|' \
		-e 's|[@]pkgdatadir[@]|$(pkgdatadir)|' $(srcdir)/%D%/memtrack_plot.py >$@
	$(AM_V_at)chmod +x $@
## Not a rule for plot_statistics.py itself: in a build in the source it is its own source.
distclean-local:
	test %D%/plot_statistics.py -ef $(srcdir)/%D%/plot_statistics.py ||	\
		rm -f %D%/plot_statistics.py

bin_PROGRAMS += %D%/memtrack-report
%C%_memtrack_report_SOURCES = %D%/main.c
%C%_memtrack_report_LDADD   = %D%/libreport.a $(report_libs)
