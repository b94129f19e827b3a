## SPDX-License-Identifier: LGPL-2.1-or-later

dist_man_MANS += %D%/memtrack-collector.8 %D%/memtrack-plot.1 %D%/memtrack-report.1	\
	%D%/memtrack-run.1
dist_doc_DATA += %D%/ARCHITECTURE.md %D%/FORMAT.md %D%/STATS.md
