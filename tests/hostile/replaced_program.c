/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replaced_program.c - an image whose file is deleted, and another one put in its place,
 * while it runs, as a package's update does; its directory goes too
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/copy_file.h"
#include "tests/hostile/demand.h"

#define BYTES 20533
#define TAKEN 20
#define COPY "here/replaced (deleted)"

LEDGER_SITE static void take_replaced(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		take_replaced();
		demand(!unlink(COPY));
		copy_file("/bin/true", COPY);
		take_replaced();
		demand(!unlink(COPY) && !chdir("here") && !rmdir("../here"));
		take_replaced();
		ledger_print();
		return 0;
	}
	demand(!mkdir("here", 0777));
	copy_file("/proc/self/exe", COPY);
	execl(COPY, argv[0], "image", NULL);
	return 1;
}
