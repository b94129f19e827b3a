/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own_rseq.c - takes the C library's area of restartable sequences from the kernel and gives it
 * one of its own: who relies on the library's is not restarted any more.  Handlers allocate
 * meanwhile, wherever that is allowed: not in the C library
 */
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <linux/rseq.h>

#include "fixtures/ledger.h"
#include "preload/glibc.h"
#include "tests/hostile/demand.h"

#define SIGNATURE 0x53053053
#define BYTES 21011
#define HANDLERS_BYTES 463
#define HANDLERS_MOST 1500
#define ROUNDS_MOST 1000000

static uintptr_t library_start, library_end;
static void *kept[HANDLERS_MOST];
static volatile sig_atomic_t n_kept;

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD)
			continue;
		if (!library_start)
			library_start = info->dlpi_addr + segment->p_vaddr;
		library_end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
	}
	return 1;
}

static void take_in_handler(int number, siginfo_t *info, void *context)
{
	uintptr_t ip = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if ((ip < library_start || ip >= library_end) && n_kept < HANDLERS_MOST) {
		kept[n_kept] = malloc(HANDLERS_BYTES);
		n_kept++;
	}
}

static void take_away(void)
{
	static struct rseq own __attribute__((aligned(32)));
	void *theirs = (char *)__builtin_thread_pointer() + (&__rseq_offset ? __rseq_offset : 0);

	/* What was registered is not less than 32 bytes, whatever of it is in use. */
	if (&__rseq_size && __rseq_size)
		demand(!syscall(SYS_rseq, theirs, 32, RSEQ_FLAG_UNREGISTER, SIGNATURE) ||
		       !syscall(SYS_rseq, theirs, (__rseq_size + 31) & ~31U, RSEQ_FLAG_UNREGISTER,
				SIGNATURE));
	demand(!syscall(SYS_rseq, &own, 32, 0, SIGNATURE));
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = take_in_handler, .sa_flags = SA_SIGINFO };
	struct itimerval timer = { { 0, 60 }, { 0, 60 } };
	size_t rounds = 0;

	free(malloc(1)); /* has all that comes with the first one */
	dl_iterate_phdr(find_library, NULL);
	take_away();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	while (n_kept < HANDLERS_MOST && rounds < ROUNDS_MOST) {
		free(ledger_block(malloc(BYTES)));
		rounds++;
	}
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
	ledger_took(NULL, NULL, BYTES, rounds);
	ledger_gave(BYTES, rounds);
	ledger_took(NULL, NULL, HANDLERS_BYTES, (size_t)n_kept);
	ledger_gave(HANDLERS_BYTES, (size_t)n_kept);
	for (int i = 0; i < n_kept; i++)
		free(ledger_block(kept[i]));
	ledger_print();
	return 0;
}
