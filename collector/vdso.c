/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vdso.c - see vdso.h for the contract
 */
#include "collector/vdso.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "base/cleanup.h"

/* It is one or two pages; what lies behind it is not ours to read. */
#define VDSO_MAX_BYTES (64 * 1024)

/* Its length, by its mapping's end. */
static size_t vdso_bytes(uintptr_t at)
{
	mt_cleanup(mt_fclosep) FILE *file = fopen("/proc/self/maps", "re");
	mt_cleanup(mt_freep) char *line = NULL;
	uint64_t start, end;
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start == at)
			return end - start < VDSO_MAX_BYTES ? end - start : VDSO_MAX_BYTES;
	return 0;
}

int mt_vdso_image(struct mt_image **ret)
{
	uintptr_t at = getauxval(AT_SYSINFO_EHDR);
	size_t len = at ? vdso_bytes(at) : 0;
	struct mt_image *image = NULL;
	int r = len ? mt_image_new_memory((const void *)at, len, &image) : 0;

	if (r == -ENOMEM)
		return r;
	*ret = image;
	return 0;
}
