# SPDX-License-Identifier: LGPL-2.1-or-later
#
# MT_COMPILER_FLAGS
# -----------------
# The language, warnings, sanitizers and the fuzzing engine.  Each is a variable of its
# own, so that a target can take one without another: the shim must never be built with a
# sanitizer, whose allocator it would drag into the tracked process.
#
# Sets: CC (with -std), MT_WARN_CFLAGS, MT_WARN_CXXFLAGS, MT_WERROR, MT_OWN_LOOPS_CFLAGS,
# MT_SAN_CFLAGS, MT_SAN_LDFLAGS, MT_FUZZ_LIBS and the conditionals SANITIZERS and FUZZING_ENGINE.

# MT_IF_FLAG(FLAG, IF-ACCEPTED, [IF-REFUSED])
# The compiler of the current language.  An unknown -Wno-* is only reported next to another
# warning, hence no claim about those.
AC_DEFUN([MT_IF_FLAG], [
	AC_MSG_CHECKING([whether the _AC_LANG compiler accepts $1])
	mt_save_flags=$[]_AC_LANG_PREFIX[]FLAGS
	_AC_LANG_PREFIX[]FLAGS="$[]_AC_LANG_PREFIX[]FLAGS -Werror $1"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
		[AC_MSG_RESULT([yes])
		 $2],
		[AC_MSG_RESULT([no])
		 $3])
	_AC_LANG_PREFIX[]FLAGS=$mt_save_flags
])

AC_DEFUN([MT_COMPILER_FLAGS], [
AC_ARG_ENABLE([werror],
	[AS_HELP_STRING([--enable-werror], [turn warnings into errors (developers, CI)])],
	[], [enable_werror=no])
AC_ARG_ENABLE([sanitizers],
	[AS_HELP_STRING([--enable-sanitizers],
		[address and undefined-behaviour sanitizers, in all but the shim])],
	[], [enable_sanitizers=no])
AC_ARG_WITH([fuzzing-engine],
	[AS_HELP_STRING([--with-fuzzing-engine=FLAGS],
		[link the fuzz targets with FLAGS, e.g. -fsanitize=fuzzer (needs CC=clang);
		 without it they replay their corpus in make check])],
	[], [with_fuzzing_engine=no])

dnl In CC, where AC_PROG_CC would put it: a target's own CFLAGS can not lose it.
MT_IF_FLAG([-std=gnu17], [CC="$CC -std=gnu17"],
	[AC_MSG_ERROR([the C compiler does not know C17])])

MT_WERROR=
AS_IF([test "x$enable_werror" != xno], [MT_WERROR=-Werror])

MT_WARN_CFLAGS=
for mt_flag in -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes \
	       -Wmissing-prototypes -Wwrite-strings -Wundef -Wvla -Wformat=2 \
	       -Wimplicit-fallthrough -Wno-unused-parameter; do
	MT_IF_FLAG([$mt_flag], [MT_WARN_CFLAGS="$MT_WARN_CFLAGS $mt_flag"])
done
MT_WARN_CFLAGS="$MT_WARN_CFLAGS $MT_WERROR"

AC_LANG_PUSH([C++])
MT_WARN_CXXFLAGS=
for mt_flag in -Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wvla -Wformat=2 \
	       -Wno-unused-parameter; do
	MT_IF_FLAG([$mt_flag], [MT_WARN_CXXFLAGS="$MT_WARN_CXXFLAGS $mt_flag"])
done
MT_WARN_CXXFLAGS="$MT_WARN_CXXFLAGS $MT_WERROR"
AC_LANG_POP([C++])

dnl The shim calls no function of the C library: a loop of its own that copies or clears must
dnl not become a call of memcpy or memset.
MT_OWN_LOOPS_CFLAGS=
MT_IF_FLAG([-fno-tree-loop-distribute-patterns],
	[MT_OWN_LOOPS_CFLAGS=-fno-tree-loop-distribute-patterns],
	[MT_OWN_LOOPS_CFLAGS=-fno-builtin])

dnl What is undefined ends a program, whatever its environment says: nobody reads the words of
dnl one that goes on.  The runtime is a part of the program: the malloc of a shared one would
dnl come behind that of a library which is preloaded, and crash in it before it has begun.
MT_SAN_CFLAGS=
MT_SAN_LDFLAGS=
AS_IF([test "x$enable_sanitizers" != xno], [
	MT_SAN_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined \
-fno-omit-frame-pointer"
	AC_MSG_CHECKING([how to link the sanitizers' runtime statically])
	mt_save_cflags=$CFLAGS
	for mt_flag in "-static-libasan -static-libubsan" -static-libsan; do
		CFLAGS="$mt_save_cflags $MT_SAN_CFLAGS $mt_flag"
		AC_LINK_IFELSE([AC_LANG_PROGRAM()], [MT_SAN_LDFLAGS=$mt_flag; break])
	done
	CFLAGS=$mt_save_cflags
	AS_IF([test "x$MT_SAN_LDFLAGS" = x], [AC_MSG_ERROR([not found])])
	AC_MSG_RESULT([$MT_SAN_LDFLAGS])])
AM_CONDITIONAL([SANITIZERS], [test "x$enable_sanitizers" != xno])

MT_FUZZ_LIBS=
AS_IF([test "x$with_fuzzing_engine" = xyes],
	[AC_MSG_ERROR([--with-fuzzing-engine needs the flags to link it with,
		e.g. --with-fuzzing-engine=-fsanitize=fuzzer])])
AS_IF([test "x$with_fuzzing_engine" != xno], [
	MT_FUZZ_LIBS=$with_fuzzing_engine
	MT_SAN_CFLAGS="$MT_SAN_CFLAGS -fsanitize=fuzzer-no-link"])
AM_CONDITIONAL([FUZZING_ENGINE], [test "x$with_fuzzing_engine" != xno])

AC_SUBST([MT_WARN_CFLAGS])
AC_SUBST([MT_WARN_CXXFLAGS])
AC_SUBST([MT_WERROR])
AC_SUBST([MT_OWN_LOOPS_CFLAGS])
AC_SUBST([MT_SAN_CFLAGS])
AC_SUBST([MT_SAN_LDFLAGS])
AC_SUBST([MT_FUZZ_LIBS])
])
