/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * keep.c - see keep.h for the contract
 *
 * Invariants
 *   - A stamp names a content of a space (collector/space.h): what was put under it is true
 *     for each space that has it, a fork's child's too.
 */
#include "collector/keep.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/control.h"

struct known {
	uint64_t stamp; /* 0: free */
	uint32_t id;
};

struct mt_keep {
	struct mt_encode *encode;
	struct known known[MT_KEEP_SPACES]; /* by stamp, which counts up */
	uint32_t n_mappings;
	uint64_t n_stacks;
	struct mt_mapping mappings[MT_MAPPINGS_LEN];
	uint64_t words[MT_BUDGET_MAX_BYTES / 8];
};

int mt_keep_new(struct mt_encode *encode, struct mt_keep **ret)
{
	struct mt_keep *keep = calloc(1, sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	keep->encode = encode;
	*ret = keep;
	return 0;
}

void mt_keep_free(struct mt_keep *keep)
{
	free(keep);
}

uint64_t mt_keep_count(const struct mt_keep *keep)
{
	return keep->n_stacks;
}

/* Puts the space's ranges, in as many records as they need, and at least one. */
static int put_mappings(struct mt_keep *keep, const struct mt_space *space, uint32_t id)
{
	size_t done = 0;
	int r;

	do {
		struct mt_mappings record = { .id = id, .mappings = keep->mappings };

		for (; done < space->len && record.len < MT_MAPPINGS_LEN; done++) {
			const struct mt_space_range *range = &space->ranges[done];

			keep->mappings[record.len++] = (struct mt_mapping){
				.start = range->start,
				.end = range->end,
				.bias = range->bias,
				.module = range->module,
				.flags = range->image ? MT_MAPPING_FOUND : 0,
			};
		}
		r = mt_encode_put(keep->encode, MT_BATCH_MAPPINGS, &record);
	} while (r == 0 && done < space->len);
	return r;
}

/* The id of the space's mappings in the artifact. */
static int find_mappings(struct mt_keep *keep, const struct mt_space *space, uint32_t *ret)
{
	struct known *known = &keep->known[space->stamp % MT_KEEP_SPACES];
	int r;

	if (known->stamp != space->stamp) {
		if (keep->n_mappings == UINT32_MAX)
			return -EOVERFLOW;
		r = put_mappings(keep, space, keep->n_mappings);
		if (r < 0)
			return r;
		*known = (struct known){ .stamp = space->stamp, .id = keep->n_mappings++ };
	}
	*ret = known->id;
	return 0;
}

int mt_keep_stack(struct mt_keep *keep, uint32_t thread, const struct mt_unwound_stack *stack)
{
	const struct mt_window *window = stack->window;
	struct mt_kept_stack record = {
		.thread = thread,
		.node = stack->node,
		.flags = (window->bottom ? MT_KEPT_BOTTOM : 0) | (stack->raw ? MT_KEPT_RAW : 0),
		.start = window->start,
		.end = window->end,
		.digest = stack->digest,
		.epoch = stack->epoch,
		.words = keep->words,
	};
	int r = find_mappings(keep, stack->space, &record.mappings);

	if (r < 0)
		return r;
	for (uint64_t at = window->start; at < window->end; at += 8)
		keep->words[(at - window->start) / 8] = window->words[at / 8 & window->mask];
	r = mt_encode_put(keep->encode, MT_BATCH_KEPT_STACK, &record);
	keep->n_stacks += r == 0;
	return r;
}
