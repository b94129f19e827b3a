/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live_debug_frame.c - a library whose unwind information is in .debug_frame only
 *
 * Compiled with -g -fno-asynchronous-unwind-tables and without frame pointers.
 */
int live_debug_frame_outer(void (*call)(void), int depth);

static __attribute__((noinline)) int inner(void (*call)(void), volatile int *cells, int n)
{
	call();
	return cells[n / 2] + n;
}

int live_debug_frame_outer(void (*call)(void), int depth)
{
	volatile int cells[64] = { 0 };

	if (depth > 0)
		return live_debug_frame_outer(call, depth - 1) + cells[depth];
	return inner(call, cells, 40) + cells[1];
}
