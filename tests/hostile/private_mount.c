/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * private_mount.c - an image on a file system that only it has mounted, and which is gone
 * when it ends
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/copy_file.h"
#include "tests/hostile/demand.h"

#define BYTES 20369
#define TAKEN 20
#define COPY "/mnt/private_mount"

LEDGER_SITE static void take_in_private(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, "main", BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		take_in_private();
		demand(!unlink(COPY) && !umount2("/mnt", MNT_DETACH));
		take_in_private();
		ledger_print();
		return 0;
	}
	demand(!unshare(CLONE_NEWNS));
	demand(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	demand(!mount("none", "/mnt", "tmpfs", 0, NULL));
	copy_file("/proc/self/exe", COPY);
	execl(COPY, argv[0], "image", NULL);
	return 1;
}
