/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel.c - see kernel.h
 *
 * Invariants
 *   - A record is in an allocation of its exact size, so that a sanitizer sees a read past
 *     its end.
 */
#include "tests/fuzz/kernel.h"

#include <errno.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "wire/reference.h"

struct record {
	struct record *next;
	void *bytes;
	size_t len;
};

struct ring {
	struct record *first, **end;
	uint64_t produced, consumed;
};

struct mt_probes {
	struct mt_control control;
	void *references;
	struct ring stacks, life;
};

struct mt_probes *kernel_open(uint32_t slots, uint32_t budget_bytes, bool raw)
{
	struct mt_probes *probes = calloc(1, sizeof(*probes));

	fuzz_must(probes != NULL);
	probes->stacks.end = &probes->stacks.first;
	probes->life.end = &probes->life.first;
	if (!raw)
		probes->references = calloc(slots, MT_WORDS_OFFSET + budget_bytes);
	fuzz_must(raw || probes->references);
	return probes;
}

static void take_first(struct ring *ring)
{
	struct record *record = ring->first;

	ring->first = record->next;
	if (!ring->first)
		ring->end = &ring->first;
	ring->consumed += record->len;
	free(record->bytes);
	free(record);
}

void kernel_close(struct mt_probes *probes)
{
	while (probes->stacks.first)
		take_first(&probes->stacks);
	while (probes->life.first)
		take_first(&probes->life);
	free(probes->references);
	free(probes);
}

struct mt_control *kernel_control(struct mt_probes *probes)
{
	return &probes->control;
}

void *kernel_references(struct mt_probes *probes)
{
	return probes->references;
}

static void put(struct ring *ring, const void *bytes, size_t len)
{
	struct record *record = malloc(sizeof(*record));

	fuzz_must(record != NULL);
	*record = (struct record){ .bytes = malloc(len ? len : 1), .len = len };
	fuzz_must(record->bytes != NULL);
	memcpy(record->bytes, bytes, len);
	*ring->end = record;
	ring->end = &record->next;
	ring->produced += len;
}

void kernel_put_stack(struct mt_probes *probes, const void *record, size_t len)
{
	put(&probes->stacks, record, len);
}

void kernel_put_life(struct mt_probes *probes, const void *record, size_t len)
{
	put(&probes->life, record, len);
}

static int drain(struct ring *ring, mt_bpf_record_fn fn, void *ctx)
{
	while (ring->first) {
		int r = fn(ctx, ring->first->bytes, ring->first->len);

		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		take_first(ring);
	}
	return 0;
}

int mt_probes_drain(struct mt_probes *probes, mt_bpf_record_fn on_stack, mt_bpf_record_fn on_life,
		    void *ctx)
{
	int r = drain(&probes->stacks, on_stack, ctx);

	return r < 0 ? r : drain(&probes->life, on_life, ctx);
}

uint64_t mt_probes_stacks_produced(const struct mt_probes *probes)
{
	return probes->stacks.produced;
}

uint64_t mt_probes_stacks_consumed(const struct mt_probes *probes)
{
	return probes->stacks.consumed;
}

/* There are no statistics to ask for them. */
void mt_probes_rings(const struct mt_probes *probes, struct mt_probes_ring *ret_stacks,
		     struct mt_probes_ring *ret_life)
{
	*ret_stacks = (struct mt_probes_ring){ .consumed = probes->stacks.consumed,
					       .produced = probes->stacks.produced };
	*ret_life = (struct mt_probes_ring){ .consumed = probes->life.consumed,
					     .produced = probes->life.produced };
}
