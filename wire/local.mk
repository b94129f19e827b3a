## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Headers only: whoever compiles a codec includes it.

EXTRA_DIST +=			\
	%D%/control.h		\
	%D%/digest.h		\
	%D%/functions.h		\
	%D%/reference.h		\
	%D%/ring.h		\
	%D%/session.h		\
	%D%/stack_delta.h	\
	%D%/stack_record.h
