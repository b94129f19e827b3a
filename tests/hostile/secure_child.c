/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * secure_child.c - started with other rights than its caller's, by a set-user-ID bit: what is
 * in its environment must not reach it
 */
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tests/hostile/demand.h"

#define BYTES 20543
#define LINGER_US 300000

int main(void)
{
	demand(getauxval(AT_SECURE) && geteuid() != getuid());
	for (int i = 0; i < 10; i++) {
		void *volatile block = malloc(BYTES);

		demand(block);
		free(block);
	}
	usleep(LINGER_US);
	return 0;
}
