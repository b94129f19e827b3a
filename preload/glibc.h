/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * glibc.h - what only glibc has, weak
 *
 * The shim may be preloaded into a program of another C library, whose loader would refuse
 * the whole program over a symbol that it does not find.  A weak one is NULL there: look at
 * its address before its value.
 */
#include <link.h>
#include <stddef.h>

/* Where argc lay when the image started: the end of the main thread's stack. 2.1 */
extern void *__libc_stack_end __attribute__((weak));

/* A thread's struct rseq, from its thread pointer; 0 bytes: not registered.  2.35 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* 0 once there was a second thread.  2.32 */
extern char __libc_single_threaded __attribute__((weak));

/* The loader's, of the program's name space; r_version 2: there is another.  2.35 */
extern struct r_debug _r_debug __attribute__((weak));

extern const char *gnu_get_libc_version(void) __attribute__((weak));
