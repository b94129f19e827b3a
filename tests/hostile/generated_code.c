/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * generated_code.c - code that the program makes itself: in anonymous memory, whose place
 * is then used for other code, and in a memfd that is gone; with a frame pointer and
 * without.  The file that names such code for perf is a fifo that nobody writes to.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define FIRST_BYTES 30731
#define SECOND_BYTES 30733
#define CODE_BYTES 4096
#define ROUNDS 30

/* push %rbp; mov %rsp, %rbp; movabs $TARGET, %rax; call *%rax; pop %rbp; ret */
static const uint8_t with_frame[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,	0,    0,
				      0,    0,	  0,	0,    0,    0xff, 0xd0, 0x5d, 0xc3 };
/* sub $24, %rsp; movabs $TARGET, %rax; call *%rax; add $24, %rsp; ret */
static const uint8_t without_frame[] = { 0x48, 0x83, 0xec, 0x18, 0x48, 0xb8, 0,
					 0,    0,    0,	   0,	 0,    0,    0,
					 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x18, 0xc3 };
#define TARGET_AT 6

LEDGER_SITE static void take_first(void)
{
	free(ledger_block(malloc(FIRST_BYTES)));
	ledger_took(__func__, LEDGER_ANY, FIRST_BYTES, 1);
	ledger_gave(FIRST_BYTES, 1);
}

LEDGER_SITE static void take_second(void)
{
	free(ledger_block(malloc(SECOND_BYTES)));
	ledger_took(__func__, LEDGER_ANY, SECOND_BYTES, 1);
	ledger_gave(SECOND_BYTES, 1);
}

static void generate(uint8_t *at, const uint8_t *code, size_t bytes, void (*target)(void))
{
	memcpy(at, code, bytes);
	memcpy(at + TARGET_AT, &target, sizeof(target));
	__builtin___clear_cache((char *)at, (char *)at + bytes);
}

static void run(uint8_t *at)
{
	for (int i = 0; i < ROUNDS; i++)
		((void (*)(void))(uintptr_t)at)();
}

static uint8_t *map_code(int flags, int fd)
{
	void *at = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);

	if (at == MAP_FAILED)
		exit(3);
	return at;
}

int main(void)
{
	int fd = memfd_create("code", MFD_CLOEXEC);
	uint8_t *place = map_code(MAP_PRIVATE | MAP_ANONYMOUS, -1), *shared;
	char names[64];

	snprintf(names, sizeof(names), "/tmp/perf-%d.map", (int)getpid());
	if (mkfifo(names, 0600) || fd < 0 || ftruncate(fd, CODE_BYTES))
		return 3;
	generate(place, with_frame, sizeof(with_frame), take_first);
	run(place);
	generate(place, without_frame, sizeof(without_frame), take_second);
	run(place);
	munmap(place, CODE_BYTES);
	shared = map_code(MAP_SHARED, fd);
	close(fd);
	generate(shared, with_frame, sizeof(with_frame), take_second);
	run(shared);
	munmap(shared, CODE_BYTES);
	unlink(names);
	ledger_print();
	return 0;
}
