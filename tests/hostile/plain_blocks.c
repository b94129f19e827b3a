/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * plain_blocks.c - blocks that keep what was written to them, for any C library and word size
 *
 * Built by scenarios with other compilers; "plain_blocks PROGRAM [ARGUMENT ...]" executes that
 * at the end, so that a tracked program can come after one that is not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES 23081
#define BLOCKS 100

static void *work(void *result)
{
	for (int i = 0; i < BLOCKS; i++) {
		char *block = malloc(BLOCK_BYTES);

		if (!block)
			return result;
		memset(block, i, BLOCK_BYTES);
		block = realloc(block, 2 * BLOCK_BYTES);
		if (!block || block[0] != (char)i || block[BLOCK_BYTES - 1] != (char)i)
			return result;
		free(block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *failed = argv;
	pthread_t thread;

	if (work(argv) || pthread_create(&thread, NULL, work, argv) ||
	    pthread_join(thread, &failed) || failed) {
		fprintf(stderr, "plain_blocks: blocks do not keep their contents\n");
		return 2;
	}
	puts("plain");
	if (fflush(stdout))
		return 3;
	if (argc > 1) {
		execv(argv[1], argv + 1);
		return 4;
	}
	return 0;
}
