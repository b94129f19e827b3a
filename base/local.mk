## SPDX-License-Identifier: LGPL-2.1-or-later

EXTRA_DIST +=		\
	%D%/behind_wall.h	\
	%D%/build_id.h	\
	%D%/cleanup.h	\
	%D%/err.h
