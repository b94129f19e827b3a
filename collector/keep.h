/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * keep.h - decoded windows for the artifact, with the mappings that they were unwound by
 *
 * For memtrack-run --keep-stacks: what decoder and unwinder did can be checked afterwards
 * by memtrack-report --verify-stacks.
 *
 * Contract
 *   Input:     windows as the decoder gives them: within the largest budget.  The node was
 *              put before, and so were the space's modules and the thread.
 *   Ownership: mt_keep_new() gives an object for mt_keep_free(), which takes NULL; encode is
 *              borrowed, and is put the records of the artifact.
 *   Errors:    -ENOMEM, and what mt_encode_put() returns.
 *   Threads:   one.
 *   Bounds:    200 KiB.  A space's mappings are put once for each of its states that a stack
 *              was unwound by; again if more than MT_KEEP_SPACES other states have been since.
 */
#include <stdint.h>

#include "collector/encode.h"
#include "collector/stacks.h"

#define MT_KEEP_SPACES 256

struct mt_keep;

int mt_keep_new(struct mt_encode *encode, struct mt_keep **ret);
void mt_keep_free(struct mt_keep *keep);

/* thread: id in the artifact. */
int mt_keep_stack(struct mt_keep *keep, uint32_t thread, const struct mt_unwound_stack *stack);

/* How many were kept. */
uint64_t mt_keep_count(const struct mt_keep *keep);
