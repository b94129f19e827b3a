/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * mappings.h - the files that a process had mapped for execution when it shook hands
 *
 * A process waits while it shakes hands.  What it tells of its modules comes later, on a
 * ring, and by then it may have deleted their files, or have ended.
 *
 * Contract
 *   Input:     the process is not trusted: what is found is a file that it had mapped, and
 *              whether it is a module's is for the caller to check.
 *   Ownership: mt_mappings_new() gives an object for mt_mappings_free(), which takes NULL;
 *              images are borrowed.  A found image is borrowed too, until the next take.
 *   Errors:    -ENOMEM.  What can not be opened is not there.
 *   Threads:   one.
 *   Bounds:    MT_MAPPINGS_PROCESSES processes, the last ones, of MT_MAPPINGS_FILES files
 *              each.
 */
#include <stdint.h>

#include "collector/images.h"

#define MT_MAPPINGS_PROCESSES 64
#define MT_MAPPINGS_FILES 64

struct mt_mappings;

int mt_mappings_new(struct mt_images *images, struct mt_mappings **ret);
void mt_mappings_free(struct mt_mappings *mappings);

/* Opens what tgid has mapped now; takes the place of what it had before. */
int mt_mappings_take(struct mt_mappings *mappings, uint32_t tgid);

/* The file that it had mapped within [start, end); NULL: none is known. */
struct mt_image *mt_mappings_find(const struct mt_mappings *mappings, uint32_t tgid, uint64_t start,
				  uint64_t end);
