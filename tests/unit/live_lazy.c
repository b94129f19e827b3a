/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live_lazy.c - a library whose call of another is bound when it is made
 *
 * live_late is an indirect function of the program that loads this: ld.so's resolver, which
 * is entered from the PLT on the caller's stack, runs the program's code to find it.
 */
int live_late(int n);
int live_lazy_call(int n);

int live_lazy_call(int n)
{
	return live_late(n) + 1;
}
