/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * debugged.c - a small library with debug information of many kinds, for fuzz_debug_file
 *
 * Without a C library: its code is what is here.
 */
int debugged_top(int n);

static volatile int sink;

static inline __attribute__((always_inline)) int innermost(int n)
{
	sink += n;
	return sink;
}

static inline __attribute__((always_inline)) int inner(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		int square = i * i;

		if (square > 10)
			sum += innermost(square);
		else
			sum -= innermost(i);
	}
	return sum;
}

static __attribute__((noinline)) int leaf(int n)
{
	return n & 1 ? inner(n) : innermost(n + 3);
}

/* A part of it may be moved away from the rest: then it has two ranges. */
__attribute__((noinline)) static int unlikely(int n)
{
	if (__builtin_expect(n < 0, 0)) {
		for (int i = n; i < 0; i++)
			innermost(inner(i));
		__builtin_trap();
	}
	return leaf(n) + leaf(n + 1);
}

int debugged_top(int n)
{
	return unlikely(n) + inner(n) + innermost(n);
}
