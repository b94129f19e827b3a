/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory_image.c - an image that has no file: executed from memory
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20389
#define TAKEN 40

LEDGER_SITE static void take_from_memory(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

int main(int argc, char **argv)
{
	char image[] = "image", *next[] = { argv[0], image, NULL };
	int in, out;
	off_t done = 0;
	struct stat st;

	if (argc > 1) {
		take_from_memory();
		ledger_print();
		return 0;
	}
	in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	out = memfd_create("not a file", MFD_CLOEXEC);
	demand(in >= 0 && out >= 0 && !fstat(in, &st));
	while (done < st.st_size)
		demand(sendfile(out, in, &done, (size_t)(st.st_size - done)) > 0);
	fexecve(out, next, environ);
	return 1;
}
