# SPDX-License-Identifier: LGPL-2.1-or-later
#
# MT_LIBRARIES
# ------------
# The libraries of the collector, the report and the tests; the shim links none of them.
# Each gives NAME_CFLAGS and NAME_LIBS: LIBELF LIBDW ZSTD XXHASH MSGPACK CHECK, and
# IBERTY_LIBS.  LIBBPF is MT_BPF_TOOLCHAIN's.  A library that is missing is an error with
# its name in it: there is no smaller memtrack to fall back to.
AC_DEFUN([MT_LIBRARIES], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
PKG_CHECK_MODULES([LIBELF], [libelf])
PKG_CHECK_MODULES([LIBDW], [libdw])
PKG_CHECK_MODULES([ZSTD], [libzstd])
PKG_CHECK_MODULES([XXHASH], [libxxhash])
dnl The C library was called msgpack until version 5, and so in Debian 12.
PKG_CHECK_MODULES([MSGPACK], [msgpack-c], [],
	[PKG_CHECK_MODULES([MSGPACK], [msgpack])])
PKG_CHECK_MODULES([CHECK], [check >= 0.15])

dnl The demangler.  libiberty has no pkg-config file, and is a static library.
AC_CHECK_HEADER([libiberty/demangle.h], [],
	[AC_MSG_ERROR([libiberty/demangle.h not found; install libiberty-dev])])
mt_save_LIBS=$LIBS
AC_CHECK_LIB([iberty], [cplus_demangle], [IBERTY_LIBS=-liberty],
	[AC_MSG_ERROR([libiberty not found; install libiberty-dev])])
LIBS=$mt_save_LIBS
AC_SUBST([IBERTY_LIBS])
])
