# SPDX-License-Identifier: LGPL-2.1-or-later
#
# MT_BPF_TOOLCHAIN
# ----------------
# Finds a clang that targets BPF, a bpftool and libbpf, and proves that the three work
# together by building a throw-away skeleton: a version says less, since distributions
# backport, rename and split these tools.
#
# --enable-bpf, the default, never turns into --disable-bpf by itself: a missing tool is an
# error with the remedy in it, because a memtrack without its kernel half captures inline
# and would still pass most of its tests.
#
# Sets: BPF_CC BPF_CPPFLAGS BPF_CFLAGS BPFTOOL LIBBPF_CFLAGS LIBBPF_LIBS, the conditional
# ENABLE_BPF, and HAVE_BPF in config.h.
AC_DEFUN([MT_BPF_TOOLCHAIN], [
AC_REQUIRE([AC_CANONICAL_HOST])
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_ARG_VAR([BPF_CC], [clang used for -target bpf])
AC_ARG_VAR([BPF_CFLAGS], [flags for the BPF compiler (default: -O2 -g)])
AC_ARG_VAR([BPFTOOL], [bpftool, for gen object and gen skeleton])
AC_ARG_ENABLE([bpf],
	[AS_HELP_STRING([--disable-bpf],
		[leave out the kernel side, for a machine without clang, bpftool or
		 libbpf; every capture is inline then])],
	[], [enable_bpf=yes])

BPF_CPPFLAGS=
AS_IF([test "x$enable_bpf" != xno], [
	AC_CHECK_PROGS([BPF_CC], [clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14])
	AS_IF([test -z "$BPF_CC"],
		[AC_MSG_ERROR([no clang found; install it, set BPF_CC, or pass --disable-bpf])])
	dnl Debian installs bpftool in /usr/sbin, which is not on a user's PATH.
	AC_PATH_PROG([BPFTOOL], [bpftool], [],
		[$PATH$PATH_SEPARATOR/usr/sbin$PATH_SEPARATOR/sbin])
	AS_IF([test -z "$BPFTOOL"],
		[AC_MSG_ERROR([no bpftool found; install it, set BPFTOOL, or pass --disable-bpf])])
	PKG_CHECK_MODULES([LIBBPF], [libbpf >= 1.1], [],
		[AC_MSG_ERROR([libbpf >= 1.1 not found; install libbpf-dev or pass --disable-bpf])])

	dnl <linux/types.h> wants <asm/types.h>, which a multiarch system keeps in a
	dnl directory that clang forgets once the target is bpf.  -idirafter: only as a last
	dnl resort, so that libbpf's own headers win.
	mt_triplet=`$CC -print-multiarch 2>/dev/null`
	BPF_CPPFLAGS="-D__TARGET_ARCH_x86 $LIBBPF_CFLAGS"
	AS_IF([test -n "$mt_triplet" && test -d "/usr/include/$mt_triplet"],
		[BPF_CPPFLAGS="$BPF_CPPFLAGS -idirafter /usr/include/$mt_triplet"])
	AS_IF([test -z "$BPF_CFLAGS"], [BPF_CFLAGS="-O2 -g"])

	AC_MSG_CHECKING([whether $BPF_CC and $BPFTOOL make a skeleton])
	cat >conftest.bpf.c <<_MT_EOF
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
const volatile __u32 knob = 1;
char LICENSE[[]] SEC("license") = "GPL";
SEC("socket") int prog(void *ctx) { return knob; }
_MT_EOF
	AS_IF([{ $BPF_CC -target bpf $BPF_CPPFLAGS $BPF_CFLAGS -c conftest.bpf.c -o conftest.tmp.o &&
		 $BPFTOOL gen object conftest.bpf.o conftest.tmp.o &&
		 $BPFTOOL gen skeleton conftest.bpf.o name conftest; } \
		>conftest.skel.h 2>&AS_MESSAGE_LOG_FD && test -s conftest.skel.h],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([the BPF toolchain does not work; config.log has the command that failed])])
	rm -f conftest.bpf.c conftest.bpf.o conftest.tmp.o conftest.skel.h
	AC_DEFINE([HAVE_BPF], [1], [Define to 1 if the BPF programs are built in.])
])
AC_SUBST([BPF_CPPFLAGS])
AM_CONDITIONAL([ENABLE_BPF], [test "x$enable_bpf" != xno])
])
