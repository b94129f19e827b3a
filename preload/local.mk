## SPDX-License-Identifier: LGPL-2.1-or-later
##
## The shim lives in other people's processes; each flag has a reason:
##   without MT_SAN_CFLAGS       a sanitizer would bring its allocator along
##   -mgeneral-regs-only         callers, the loader among them, keep vectors across malloc
##   -mno-red-zone               the probe's nop may be a call that pushes
##   -ftls-model=initial-exec    the first touch of a thread-local must not call malloc
##   -fno-builtin-malloc ...     nor may a loop become a call of an interposed function
##   -fno-plt                    one kind of relocation less to wait for, real.c
##   -fno-strict-aliasing        a stack's words are of any type
##   -fcf-protection             with the notes of the .S files, which say it for all
##   -nostartfiles               crti.o has no such note, and the shim no use for it

pkglib_LTLIBRARIES += %D%/libmemtrack-preload.la

%C%_libmemtrack_preload_la_SOURCES =	\
	%D%/address.h			\
	%D%/apart.c			\
	%D%/apart.h			\
	%D%/arena.c			\
	%D%/arena.h			\
	%D%/binding.c			\
	%D%/binding.h			\
	%D%/capture.c			\
	%D%/capture.h			\
	%D%/compare.c			\
	%D%/compare.h			\
	%D%/compare.S			\
	%D%/entry.S			\
	%D%/entry.h			\
	%D%/glibc.h			\
	%D%/image.c			\
	%D%/image.h			\
	%D%/learned.c			\
	%D%/learned.h			\
	%D%/loader_lock.c		\
	%D%/loader_lock.h		\
	%D%/modules.c			\
	%D%/modules.h			\
	%D%/probe.S			\
	%D%/probe.c			\
	%D%/probe.h			\
	%D%/real.c			\
	%D%/real.h			\
	%D%/recent.h			\
	%D%/ring.c			\
	%D%/ring.h			\
	%D%/sandbox.c			\
	%D%/sandbox.h			\
	%D%/sanitizer.c			\
	%D%/sanitizer.h			\
	%D%/serve.c			\
	%D%/session.c			\
	%D%/session.h			\
	%D%/syscall.h			\
	%D%/thread.c			\
	%D%/thread.h

%C%_libmemtrack_preload_la_CFLAGS = $(MT_WARN_CFLAGS)					\
	$(MT_OWN_LOOPS_CFLAGS)								\
	-O2 -mgeneral-regs-only -mno-red-zone -fvisibility=hidden			\
	-ftls-model=initial-exec -fno-builtin-malloc					\
	-fno-plt -fno-strict-aliasing -fno-stack-protector -fcf-protection=full

%C%_libmemtrack_preload_la_LDFLAGS = -module -avoid-version -shared -Wc,-nostartfiles	\
	-Wl,-z,now -Wl,-z,defs -Wl,--version-script=$(top_srcdir)/%D%/exports.map

EXTRA_%C%_libmemtrack_preload_la_DEPENDENCIES = %D%/exports.map

EXTRA_DIST += %D%/exports.map
