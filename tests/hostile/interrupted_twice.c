/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * interrupted_twice.c - two handlers interrupt one malloc(), each at an instruction that was
 * chosen for it, and allocate
 *
 * First an allocation is stepped through, which tells what instructions there are of the library
 * that malloc() is of.  Then each of them, with some of those that come after it, is a pair: the
 * first handler comes in at the one, by a breakpoint, and the second at the other, once the first
 * has returned; or before it has.  Where malloc() is the C library's, which no handler may call
 * while it is in there, nothing is interrupted.
 *
 * All of it goes on in a handler of another signal: a chain through that is not learned, so that
 * every stack, of which no two are the same, is captured.
 */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

/* They fit in the C library's cache of the thread, which takes no lock. */
#define BYTES 611
#define FIRST_BYTES 613
#define SECOND_BYTES 617
/* How far apart the second instructions of a first one are. */
#define STRIDE 61
#define PLACES_MAX 8192
/* The first allocations are not as those to come. */
#define UNTOUCHED 3
#define PAGE_BYTES 4096
#define LEFT_WORDS 512
#define TRAP_FLAG 0x100
#define BREAKPOINT 0xcc

static volatile size_t taken, first_taken, second_taken;

/* The code of the library that malloc() is of; start is 0 if that is the C library. */
static struct {
	uint64_t start, end;
} code;

/* Its instructions, in the order in which one malloc() comes to them. */
static struct {
	uint64_t at[PLACES_MAX];
	size_t n;
	volatile bool looked_for;
} places;

/* at: where the next trap is to come, or 0; then: where the one after it is. */
static struct {
	volatile uint64_t at, then;
	bool nested;
	uint8_t kept;
} trap;

static void set_trap(uint64_t at)
{
	volatile uint8_t *byte = (uint8_t *)at;

	trap.at = at;
	if (!at)
		return;
	trap.kept = *byte;
	*byte = BREAKPOINT;
}

static void take_trap_away(void)
{
	if (trap.at)
		*(volatile uint8_t *)trap.at = trap.kept;
	trap.at = 0;
}

LEDGER_SITE static void take_interrupted(void)
{
	volatile size_t in_frame = taken;

	free(ledger_block(malloc(BYTES)));
	taken = in_frame + 1;
}

/* What a handler's capture leaves in its frame does not stay there. */
LEDGER_SITE static void write_over_stack(void)
{
	uint64_t words[LEFT_WORDS] = { 0 };

	__asm__ volatile("" : : "r"(words) : "memory");
}

LEDGER_SITE static void handle_second(void)
{
	write_over_stack();
	free(ledger_block(malloc(SECOND_BYTES)));
	second_taken = second_taken + 1;
}

LEDGER_SITE static void handle_first(uint64_t then)
{
	if (trap.nested)
		set_trap(then);
	free(ledger_block(malloc(FIRST_BYTES)));
	take_trap_away();
	first_taken = first_taken + 1;
	if (!trap.nested)
		set_trap(then);
}

static bool place_known(uint64_t at)
{
	for (size_t i = 0; i < places.n; i++)
		if (places.at[i] == at)
			return true;
	return false;
}

static void look_for_places(greg_t *regs)
{
	uint64_t at = regs[REG_RIP];

	regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (!places.looked_for)
		return;
	regs[REG_EFL] |= TRAP_FLAG;
	if (at < code.start || at >= code.end || place_known(at))
		return;
	demand(places.n < PLACES_MAX);
	places.at[places.n++] = at;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t at = trap.at, then = trap.then;

	if (at && (uint64_t)regs[REG_RIP] == at + 1) {
		take_trap_away();
		regs[REG_RIP] = (greg_t)at;
	}
	if (places.looked_for || regs[REG_EFL] & TRAP_FLAG) {
		look_for_places(regs);
		return;
	}
	trap.then = 0;
	if (then)
		handle_first(then);
	else
		handle_second();
}

static void take_next(void)
{
	take_interrupted();
	take_trap_away();
}

static void take_between(size_t first, size_t second, bool nested)
{
	trap.nested = nested;
	trap.then = places.at[second];
	set_trap(places.at[first]);
	take_next();
}

/* Finds the code, and has it ready to be written to. */
static void find_code(void)
{
	const ElfW(Phdr) * segment;
	const ElfW(Ehdr) * header;
	Dl_info own, libc;

	demand(dladdr((void *)malloc, &own) && dladdr((void *)abort, &libc));
	if (own.dli_fbase == libc.dli_fbase)
		return;
	header = own.dli_fbase;
	segment = (const void *)((const char *)own.dli_fbase + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++)
		if (segment[i].p_type == PT_LOAD && segment[i].p_flags & PF_X) {
			code.start = (uint64_t)own.dli_fbase + segment[i].p_vaddr;
			code.end = code.start + segment[i].p_memsz;
		}
	demand(code.start);
	code.start &= ~(uint64_t)(PAGE_BYTES - 1);
	demand(!mprotect((void *)code.start, code.end - code.start,
			 PROT_READ | PROT_WRITE | PROT_EXEC));
}

static void find_places(void)
{
	places.looked_for = true;
	set_trap((uint64_t)malloc);
	take_next();
	places.looked_for = false;
	/* If it was set, the flag goes with the trap that comes here. */
	__asm__ volatile("nop\n\tnop");
	demand(places.n);
}

static void take_all(int number)
{
	for (int i = 0; i < UNTOUCHED; i++)
		take_next();
	if (code.start)
		find_places();
	for (size_t i = 0; i < places.n; i++) {
		for (size_t k = i + 1 + i * 7 % STRIDE; k < places.n; k += STRIDE)
			take_between(i, k, false);
		take_between(i, i * 7 % places.n, true);
	}
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };

	demand(!sigaction(SIGTRAP, &action, NULL));
	find_code();
	demand(signal(SIGUSR1, take_all) != SIG_ERR && !raise(SIGUSR1));
	ledger_took("take_interrupted", "main", BYTES, taken);
	ledger_gave(BYTES, taken);
	ledger_took("handle_first", "main", FIRST_BYTES, first_taken);
	ledger_gave(FIRST_BYTES, first_taken);
	ledger_took("handle_second", "main", SECOND_BYTES, second_taken);
	ledger_gave(SECOND_BYTES, second_taken);
	ledger_print();
	return 0;
}
