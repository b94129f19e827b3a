/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * images_by_turns.c - one process, forty images: each tries programs that can not be
 * executed, allocates, and executes the next one, from the main thread and from others; what
 * an image did not give back goes with it
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20323
#define KEPT 3
#define IMAGES 40

static char *name;
static char next[24];

LEDGER_SITE static void take_in_image(void)
{
	for (int i = 0; i < KEPT; i++)
		ledger_block(malloc(BYTES));
}

static void *go_on(void *unused)
{
	execl("/no/such/program", name, NULL);
	demand(errno == ENOENT);
	execl("/proc/self/maps", name, NULL);
	demand(errno == EACCES);
	take_in_image();
	execl("/proc/self/exe", name, next, NULL);
	demand(!"executed");
	return unused;
}

int main(int argc, char **argv)
{
	size_t turn = ledger_number(argc > 1 ? argv[1] : NULL, 1);
	pthread_t thread;

	name = argv[0];
	snprintf(next, sizeof(next), "%zu", turn + 1);
	if (turn == IMAGES) {
		take_in_image();
		ledger_took("take_in_image", LEDGER_END, BYTES, KEPT * IMAGES);
		ledger_print();
		return 0;
	}
	if (turn % 2)
		go_on(NULL);
	demand(!pthread_create(&thread, NULL, go_on, NULL));
	pause();
	return 1;
}
