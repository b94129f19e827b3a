## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Headers only: whoever uses a codec compiles it.

EXTRA_DIST +=			\
	%D%/control.h		\
	%D%/digest.h		\
	%D%/functions.h		\
	%D%/learned.h		\
	%D%/life.h		\
	%D%/reference.h		\
	%D%/ring.h		\
	%D%/scratch.h		\
	%D%/session.h		\
	%D%/stack_delta.h	\
	%D%/stack_encode.h	\
	%D%/stack_record.h
