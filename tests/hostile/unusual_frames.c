/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unusual_frames.c - frames whose unwinding information is not of the simple kind: large
 * ones, realigned ones (their caller is found by an expression), ones of a size known at
 * run time, with a cold part elsewhere, entered by a jump, that never return
 *
 * Built in several ways: with .debug_frame and no .eh_frame, that also compressed, with
 * .eh_frame and no index of it.
 */
#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include "fixtures/ledger.h"

#define LEAF_BYTES 30671
#define COLD_BYTES 30673
#define GONE_BYTES 30677
#define ROUNDS 40

static jmp_buf out;
static volatile int rare;

LEDGER_SITE static void take_in_leaf(void)
{
	volatile int frame[37];

	frame[0] = 1;
	free(ledger_block(malloc(LEAF_BYTES)));
	ledger_took(__func__, "run_round", LEAF_BYTES, 1);
	ledger_gave(LEAF_BYTES, 1);
	frame[1] = frame[0];
}

LEDGER_SITE static void with_large_frame(void)
{
	volatile int frame[491];

	frame[3] = 1;
	take_in_leaf();
	frame[4] = frame[3];
}

LEDGER_SITE static void with_aligned_frame(int depth)
{
	volatile char frame[64] __attribute__((aligned(128)));

	frame[0] = 1;
	if ((uintptr_t)frame % 128)
		abort();
	if (depth)
		with_aligned_frame(depth - 1);
	else
		with_large_frame();
	frame[1] = frame[0];
}

LEDGER_SITE static void with_sized_frame(size_t bytes)
{
	volatile char *frame = alloca(bytes);
	volatile char aligned[32] __attribute__((aligned(64)));

	frame[0] = aligned[0] = 1;
	with_aligned_frame(bytes % 3);
	frame[bytes - 1] = aligned[0];
}

/* The compiler moves what is done for a rare value into another section. */
__attribute__((cold)) LEDGER_SITE static void take_when_cold(void)
{
	free(ledger_block(malloc(COLD_BYTES)));
	ledger_took(__func__, "run_round", COLD_BYTES, 1);
	ledger_gave(COLD_BYTES, 1);
}

LEDGER_SITE static int with_cold_part(int i)
{
	volatile int frame[50];

	frame[i % 50] = i;
	if (__builtin_expect(rare, 0)) {
		take_when_cold();
		frame[0] = 2;
		take_when_cold();
	}
	return frame[i % 50];
}

/* The return address of its call is that of what comes behind the caller. */
LEDGER_SITE __attribute__((noreturn)) static void take_and_leave(void)
{
	free(ledger_block(malloc(GONE_BYTES)));
	ledger_took(__func__, "call_at_end", GONE_BYTES, 1);
	ledger_gave(GONE_BYTES, 1);
	longjmp(out, 1);
}

LEDGER_SITE __attribute__((noreturn, aligned(1))) static void call_at_end(int i)
{
	volatile char frame[100];

	frame[i % 100] = 1;
	__asm__ volatile("" : : "r"(frame) : "memory");
	take_and_leave();
}

LEDGER_SITE __attribute__((aligned(1))) static int behind_end(int i)
{
	volatile char frame[2000];

	frame[i] = 3;
	return frame[i];
}

LEDGER_SITE static void run_round(int i)
{
	with_sized_frame(20 + 7 * i);
	rare = 1;
	if (with_cold_part(i + 1) != i + 1 && i)
		abort();
	if (!setjmp(out))
		call_at_end(i);
	if (behind_end(i) != 3)
		abort();
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++)
		run_round(i);
	ledger_print();
	return 0;
}
