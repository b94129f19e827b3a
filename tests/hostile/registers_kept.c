/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * registers_kept.c - what a call may not change is as it was after malloc(), calloc(),
 * realloc() and free(): callee-saved registers, the stack pointer and the words above it,
 * the direction flag, both floating-point control words; and what it may but should not:
 * the upper halves of vector registers stay unused, which is slow otherwise.  A handler
 * that allocates leaves all registers and the red zone of what it interrupts.
 */
#include <cpuid.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30533
#define HANDLER_BYTES 30539
#define ROUNDS 4000
#define SPINS 60

void *call_guarded(void *function, size_t one, size_t other, uint64_t *changed);
/* Spins until *done with all caller-saved registers and the red zone in use. */
uint64_t spin_guarded(const int *done);

/* Bits of call_guarded()'s last argument: rbx rbp r12 r13 r14 r15 rsp, words, flag. */
static uint64_t changed;
static int can_ask;

static uint32_t vectors_in_use(void)
{
	uint32_t low, high;

	if (!can_ask)
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return low & 4;
}

static void learn_whether_to_ask(void)
{
	uint32_t a, b, c, d;

	can_ask = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE) && (c & bit_AVX) &&
		  __get_cpuid_count(13, 1, &a, &b, &c, &d) && (a & 4);
}

static void *guarded(void *function, size_t one, size_t other)
{
	uint64_t bits = 0;
	uint32_t used;
	void *result;

	if (can_ask)
		__asm__ volatile("vzeroupper" ::: "memory");
	used = vectors_in_use();
	result = call_guarded(function, one, other, &bits);
	changed |= bits;
	if (vectors_in_use() & ~used)
		changed |= 1 << 16;
	return result;
}

LEDGER_SITE static void take_guarded(void)
{
	void *block = ledger_block(guarded((void *)malloc, BLOCK_BYTES, 0));
	void *other = ledger_block(guarded((void *)calloc, 1, BLOCK_BYTES));

	block = ledger_block(guarded((void *)realloc, (size_t)block, BLOCK_BYTES));
	guarded((void *)free, (size_t)block, 0);
	guarded((void *)free, (size_t)other, 0);
	ledger_took(NULL, NULL, BLOCK_BYTES, 3);
	ledger_gave(BLOCK_BYTES, 3);
}

static uint32_t control_words(void)
{
	uint32_t vector = __builtin_ia32_stmxcsr();
	uint16_t x87;

	__asm__ volatile("fnstcw %0" : "=m"(x87));
	return vector | (uint32_t)x87 << 16;
}

/* Rounds towards zero, flushes what is too small, 53 bits. */
static void set_control_words(void)
{
	uint16_t x87 = 0x0e7f;

	__builtin_ia32_ldmxcsr(0xff80);
	__asm__ volatile("fldcw %0" : : "m"(x87));
}

static int signals;

static void on_timer(int signal)
{
	free(ledger_block(malloc(HANDLER_BYTES)));
	ledger_took(NULL, NULL, HANDLER_BYTES, 1);
	ledger_gave(HANDLER_BYTES, 1);
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
}

static uint64_t spin(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval timer = { { 0, 500 }, { 0, 500 } }, off = { 0 };
	uint64_t bits = 0;
	int done;

	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL))
		exit(3);
	for (done = 0; done < SPINS; done = __atomic_load_n(&signals, __ATOMIC_RELAXED))
		bits |= spin_guarded(&signals);
	setitimer(ITIMER_REAL, &off, NULL);
	return bits;
}

static int check(void)
{
	uint32_t before;

	set_control_words();
	before = control_words();
	for (int i = 0; i < ROUNDS; i++)
		take_guarded();
	if (changed)
		fprintf(stderr, "changed: %#lx\n", (unsigned long)changed);
	if (control_words() != before)
		fprintf(stderr, "control words %#x, not %#x\n", control_words(), before);
	return changed || control_words() != before;
}

static void *work(void *unused)
{
	return (void *)(long)check();
}

int main(void)
{
	pthread_t thread;
	uint64_t bits;
	void *wrong;

	learn_whether_to_ask();
	if (check() || pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, &wrong) ||
	    wrong)
		return 4;
	bits = spin();
	if (bits) {
		fprintf(stderr, "the interrupted has %#lx changed\n", (unsigned long)bits);
		return 5;
	}
	printf("size %d allocations %d frees %d\n", BLOCK_BYTES, 6 * ROUNDS, 6 * ROUNDS);
	return 0;
}
