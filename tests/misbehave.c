/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * misbehave.c - what a sanitizer reports, for reports.test: a block that nobody has any more,
 * a read behind one, or arithmetic that is undefined
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static char *volatile block;
static volatile int most = INT_MAX;

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	block = malloc(8);
	/* Of many: a register may still have one. */
	for (int i = 0; i < 100 && !strcmp(how, "leak"); i++)
		block = malloc(8);
	if (!block)
		return 2;
	if (!strcmp(how, "overrun"))
		most = block[8];
	else if (!strcmp(how, "overflow"))
		most = most + 1;
	free(block);
	return 0;
}
