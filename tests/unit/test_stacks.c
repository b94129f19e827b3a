/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_stacks.c - names of stacks to nodes: in the order of seq, lost ones told, no other chain
 *                 for anybody, bounds kept
 *
 * The shim's part is played on the reference that the collector sees, so that what the
 * collector asks for is done.  Each window's return address says which stack it is.
 */
#include "collector/stacks.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/inline_slot.h"
#include "wire/ring.h"

#define BUDGET 8192
#define HEAD_BYTES (sizeof(struct mt_stack_record) - 8)
#define WINDOW_WORDS (MT_SAVED_WORDS + 1)
#define RECORD_BYTES 512

/* A stack's name, and what the shim sent for it. */
struct captured {
	uint16_t name;
	uint32_t seq;
	uint32_t len; /* 0: nothing, it was known */
	char record[RECORD_BYTES] __attribute__((aligned(8)));
};

static struct mt_segments *segments;
static struct mt_call_tree tree;
static struct mt_stacks *stacks;
static struct mt_space space;
static struct inline_slot slot;
static struct stack_player player;

static void open_run(uint32_t flags)
{
	struct mt_segments_config config = { .budget_bytes = BUDGET,
					     .ring_bytes = 4096,
					     .flags = flags,
					     .learned = true,
					     .control_fd = -1,
					     .bpf_references_fd = -1 };
	struct mt_welcome welcome;

	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), 0);
	ck_assert_int_eq(mt_call_tree_init(&tree, UINT32_MAX), 0);
	ck_assert_int_eq(mt_stacks_new(segments, &tree, &stacks), 0);
}

static void close_run(void)
{
	mt_stacks_free(stacks);
	mt_call_tree_done(&tree);
	mt_segments_close(segments);
}

static void setup(void)
{
	open_run(0);
	mt_space_init(&space);
	slot_init_at(&slot, mt_segments_reference(segments, SLOT_INDEX), BUDGET);
	player_init(&player, BUDGET, 7);
}

static void teardown(void)
{
	player_done(&player);
	slot_done(&slot);
	mt_space_done(&space);
	close_run();
}

/* The player is where a function is called whose return address is pc. */
static void call(uint64_t pc)
{
	player.start = player.bound - 8 * WINDOW_WORDS;
	player.end = player.bound;
	memset(player_word(&player, player.start), 0, 8 * WINDOW_WORDS);
	*player_word(&player, player.start + 8 * MT_SAVED_RIP) = pc;
}

/* As the shim does: a stack that the dictionary has needs no record. */
static struct captured capture(uint64_t pc)
{
	const struct mt_reference *reference = slot.reference;
	struct captured c = { 0 };
	__u64 mask[2] = { 0, 0 };
	uint64_t digest;
	int entry;

	call(pc);
	digest = slot_digest(&slot, &player, mask);
	entry = mt_dictionary_find(slot.dictionary, digest);
	if (entry < 0 || reference->resync_asked != reference->resync_done) {
		c.len = slot_encode(&slot, &player, reference->seq, mask);
		ck_assert_uint_le(c.len, sizeof(c.record));
		memcpy(c.record, &slot.scratch->record, c.len);
		slot_commit(&slot);
		entry = (int)reference->entry;
	}
	c.name = (uint16_t)entry;
	c.seq = (uint32_t)(reference->seq / 2);
	return c;
}

static struct captured capture_raw(uint64_t pc, uint32_t number)
{
	struct captured c = { .name = MT_STACK_ALONE | number % MT_STACK_ALONE };

	call(pc);
	c.len = slot_raw(&player, number, c.record);
	return c;
}

static void push(const struct captured *c)
{
	if (c->len)
		ck_assert_int_eq(mt_stacks_push(stacks, SLOT_INDEX, c->record, c->len), 0);
}

static uint32_t resolve_name(uint16_t name, uint32_t seq)
{
	uint32_t node = UINT32_MAX;

	ck_assert_int_eq(mt_stacks_resolve(stacks, SLOT_INDEX, &space, name, seq, &node), 0);
	return node;
}

/* Which stack the event gets: its return address, or 0: lost. */
static uint64_t resolve(const struct captured *c)
{
	uint32_t node = resolve_name(c->name, c->seq);

	if (node == MT_STOP_LOST)
		return 0;
	ck_assert_uint_ge(node, MT_NODE_FIRST);
	return mt_call_tree_node(&tree, node)->frame.offset;
}

static struct mt_stacks_counts counts(void)
{
	struct mt_stacks_counts n;

	mt_stacks_counts(stacks, &n);
	return n;
}

/* A stack that is new to the slot, pushed. */
static struct captured known(uint64_t pc)
{
	struct captured c = capture(pc);

	ck_assert_uint_ne(c.len, 0);
	push(&c);
	return c;
}

/* From now on nothing is lost: the stack that was lost comes again, others too. */
static void check_recovered(uint64_t pc)
{
	uint64_t lost = counts().lost;
	struct captured c;

	for (int i = 0; i < 3; i++) {
		c = capture(pc);
		push(&c);
		ck_assert_uint_eq(resolve(&c), pc);
		c = capture(900000 + (uint64_t)i);
		push(&c);
		ck_assert_uint_eq(resolve(&c), 900000 + (uint64_t)i);
	}
	ck_assert_uint_eq(counts().lost, lost);
}

/* All are there; each event gets the one that was its own at its seq. */
START_TEST(in_order)
{
	struct captured all[50];

	for (uint32_t i = 0; i < 50; i++)
		all[i] = known(1000 + i);
	for (uint32_t i = 0; i < 50; i++)
		ck_assert_uint_eq(resolve(&all[i]), 1000 + i);
	/* A later event that names a known one. */
	all[7].seq = all[49].seq;
	ck_assert_uint_eq(resolve(&all[7]), 1007);
	ck_assert_uint_eq(counts().records, 50);
	ck_assert_uint_eq(counts().resolved, 51);
	ck_assert_uint_eq(counts().window_bytes, 50 * 8 * WINDOW_WORDS);
	ck_assert_uint_eq(counts().raw_records, 0);
	ck_assert_uint_eq(counts().lost, 0);
	ck_assert_uint_eq(counts().gaps, 0);
	ck_assert_uint_eq(slot.reference->resync_asked, 0);
}
END_TEST

START_TEST(names_that_are_none)
{
	ck_assert_uint_eq(resolve_name(MT_STACK_NONE | MT_NONE_BOOTSTRAP, 0), MT_STOP_BOOTSTRAP);
	ck_assert_uint_eq(resolve_name(MT_STACK_NONE | MT_NONE_UNWANTED, 0), MT_STOP_NONE);
	ck_assert_uint_eq(counts().lost, 0);
	ck_assert_uint_eq(resolve_name(MT_STACK_NONE | MT_NONE_LOST, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve_name(0xffff, 0), MT_STOP_LOST);
	ck_assert_uint_eq(counts().resolved, 0);
	ck_assert_uint_eq(resolve_name(MT_DICTIONARY, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve_name(MT_STACK_ALONE - 1, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve_name(MT_STACK_ALONE | 3, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve_name(5, 0), MT_STOP_LOST);
	ck_assert_uint_eq(resolve_name(5, UINT32_MAX), MT_STOP_LOST);
	ck_assert_uint_eq(counts().lost, 7);
	ck_assert_uint_eq(counts().resolved, 5);
}
END_TEST

/* A record that does not verify: its events say so, and the stack comes again. */
START_TEST(damaged_record)
{
	struct captured c, next;

	c = known(1000);
	ck_assert_uint_eq(resolve(&c), 1000);
	c = capture(1001);
	c.record[HEAD_BYTES] ^= 1;
	push(&c);
	next = known(1002);
	ck_assert_uint_eq(resolve(&c), 0);
	ck_assert_uint_eq(counts().mismatches, 1);
	ck_assert_uint_eq(counts().lost, 1);
	ck_assert_uint_eq(slot.reference->resync_asked, 1);
	ck_assert_uint_eq(slot.dictionary[c.name], 0);
	/* What was in flight is a delta against what the decoder does not have. */
	ck_assert_uint_eq(resolve(&next), 0);
	ck_assert_uint_eq(counts().stale, 1);
	ck_assert_uint_eq(slot.reference->resync_asked, 1);
	check_recovered(1001);
	check_recovered(1002);
	/* What was there before was not touched. */
	c = capture(1000);
	push(&c);
	ck_assert_uint_eq(resolve(&c), 1000);
	ck_assert_uint_eq(counts().lost, 2);
}
END_TEST

/* A head that is damaged names no slot and no number. */
START_TEST(damaged_head)
{
	struct captured c;

	for (size_t bit = 0; bit < 48 * 8; bit += 5) {
		c = capture(1000 + bit);
		c.record[bit / 8] ^= (char)(1 << bit % 8);
		ck_assert_int_eq(mt_stacks_push(stacks, MT_STACKS_ANY_SLOT, c.record, c.len), 0);
	}
	ck_assert_uint_eq(counts().malformed, 77);
	ck_assert_uint_eq(counts().records, 0);
	ck_assert_uint_eq(resolve(&c), 0);
	check_recovered(1000);
}
END_TEST

START_TEST(not_records)
{
	struct captured c = capture(1000);
	struct mt_stack_record *head = (struct mt_stack_record *)c.record;
	uint16_t other = MT_DICTIONARY_WAYS;

	ck_assert_int_eq(mt_stacks_push(stacks, SLOT_INDEX, c.record, 0), 0);
	ck_assert_int_eq(mt_stacks_push(stacks, SLOT_INDEX, c.record, HEAD_BYTES - 1), 0);
	ck_assert_int_eq(mt_stacks_push(stacks, SLOT_INDEX, c.record, c.len - 8), 0);
	/* Another's ring. */
	ck_assert_int_eq(mt_stacks_push(stacks, SLOT_INDEX + 1, c.record, c.len), 0);
	head->slot = (__u16)MT_SLOTS;
	record_seal(head, BUDGET);
	ck_assert_int_eq(mt_stacks_push(stacks, MT_STACKS_ANY_SLOT, c.record, c.len), 0);
	head->slot = SLOT_INDEX;
	/* An entry of neither set. */
	while (((head->entry ^ other) & ~7U) == mt_dictionary_set(head->digest, 0) ||
	       ((head->entry ^ other) & ~7U) == mt_dictionary_set(head->digest, 1))
		other *= 2;
	head->entry ^= other;
	record_seal(head, BUDGET);
	ck_assert_int_eq(mt_stacks_push(stacks, SLOT_INDEX, c.record, c.len), 0);
	ck_assert_uint_eq(counts().malformed, 6);
	ck_assert_uint_eq(counts().records, 0);
	head->entry ^= other;
	record_seal(head, BUDGET);
	/* There may be more room than the record needs. */
	ck_assert_int_eq(mt_stacks_push(stacks, MT_STACKS_ANY_SLOT, c.record, sizeof(c.record)), 0);
	ck_assert_uint_eq(counts().record_bytes, c.len);
	ck_assert_uint_eq(resolve(&c), 1000);
}
END_TEST

/* The first record, or one in the middle, never comes; then the slot says nothing new. */
START_TEST(one_stack_for_ever)
{
	struct captured first = capture(1000), c;
	uint32_t asked;

	for (int i = 0; i < 10; i++) {
		c = capture(1000);
		ck_assert_uint_eq(c.len, 0);
	}
	ck_assert_uint_eq(resolve(&first), 0);
	ck_assert_uint_eq(slot.reference->resync_asked, 1);
	asked = slot.reference->resync_asked;
	first = capture(1000);
	ck_assert_uint_ne(first.len, 0);
	push(&first);
	/* In flight from before: is told lost, and asks for nothing. */
	ck_assert_uint_eq(c.seq, first.seq - 1);
	ck_assert_uint_eq(resolve(&c), 0);
	ck_assert_uint_eq(slot.reference->resync_asked, asked);
	ck_assert_uint_ne(slot.dictionary[first.name], 0);
	ck_assert_uint_eq(resolve(&first), 1000);
	check_recovered(1000);
	ck_assert_uint_eq(counts().lost, 2);
}
END_TEST

/* Stacks whose digests have one set twice, the same, one more than that has entries. */
static void find_set(uint64_t pcs[MT_DICTIONARY_WAYS + 1])
{
	uint32_t set = 0, n = 0;
	__u64 mask[2];

	for (uint64_t pc = 5000; n < MT_DICTIONARY_WAYS + 1; pc++) {
		uint64_t digest;
		uint32_t its;

		call(pc);
		digest = slot_digest(&slot, &player, mask);
		its = mt_dictionary_set(digest, 0);
		if (its != mt_dictionary_set(digest, 1) || (n && its != set))
			continue;
		set = its;
		pcs[n++] = pc;
	}
}

/* A lost record took the place of another: its events do not get the other's chain. */
START_TEST(lost_record_is_not_the_one_before)
{
	uint64_t pcs[MT_DICTIONARY_WAYS + 1], victim = 0;
	struct captured all[MT_DICTIONARY_WAYS], lost, later, other;

	find_set(pcs);
	other = known(777);
	for (int i = 0; i < MT_DICTIONARY_WAYS; i++) {
		all[i] = known(pcs[i]);
		ck_assert_uint_eq(resolve(&all[i]), pcs[i]);
	}
	lost = capture(pcs[MT_DICTIONARY_WAYS]);
	for (int i = 0; i < MT_DICTIONARY_WAYS; i++)
		victim = all[i].name == lost.name ? pcs[i] : victim;
	ck_assert_uint_ne(victim, 0);
	if (_i) /* Something comes after it. */
		later = known(778);
	ck_assert_uint_eq(resolve(&lost), 0);
	ck_assert_uint_eq(slot.dictionary[lost.name], 0);
	if (_i)
		ck_assert_uint_eq(resolve(&later), 0);
	/* The others of the set, and from before, are what they were. */
	for (int i = 0; i < MT_DICTIONARY_WAYS; i++) {
		all[i].seq = lost.seq;
		ck_assert_uint_eq(resolve(&all[i]), pcs[i] == victim ? 0 : pcs[i]);
	}
	other.seq = lost.seq;
	ck_assert_uint_eq(resolve(&other), 777);
	check_recovered(pcs[MT_DICTIONARY_WAYS]);
	check_recovered(victim);
}
END_TEST

/* The lost record's entry is overwritten again, by a record that waits: not trusted. */
START_TEST(lost_between_equals)
{
	uint64_t pcs[MT_DICTIONARY_WAYS + 1];
	struct captured first, lost, again;

	find_set(pcs);
	first = known(pcs[0]);
	ck_assert_uint_eq(resolve(&first), pcs[0]);
	/* The entry is another's, then the first one's again. */
	slot.dictionary[first.name] = 0;
	lost = capture(pcs[1]);
	ck_assert_uint_eq(lost.name, first.name);
	slot.dictionary[first.name] = 0;
	again = known(pcs[0]);
	ck_assert_uint_eq(again.name, first.name);
	ck_assert_uint_eq(resolve(&lost), 0);
	ck_assert_uint_eq(resolve(&again), 0); /* against what was lost */
	check_recovered(pcs[0]);
	check_recovered(pcs[1]);
}
END_TEST

/* Numbers that no record ever had: nothing is lost. */
START_TEST(skipped_numbers)
{
	struct captured c = known(1000), other = known(1001);

	ck_assert_uint_eq(resolve(&c), 1000);
	ck_assert_uint_eq(resolve(&other), 1001);
	/* Left in the middle: void, two numbers on. */
	slot.reference->digest = 0;
	slot.reference->seq += 4;
	c = capture(1000);
	ck_assert_uint_eq(c.len, 0);
	ck_assert_uint_eq(resolve(&c), 1000);
	c = known(1002);
	ck_assert_uint_eq(resolve(&c), 1002);
	other.seq = c.seq;
	ck_assert_uint_eq(resolve(&other), 1001);
	ck_assert_uint_eq(counts().gaps, 1);
	ck_assert_uint_eq(counts().lost, 0);
	ck_assert_uint_eq(slot.reference->resync_asked, 0);
}
END_TEST

/* A move that ended before its digest was in the dictionary: the entry is the older one's. */
START_TEST(torn_move)
{
	uint64_t pcs[MT_DICTIONARY_WAYS + 1];
	struct captured older, torn, c;
	uint64_t digest;

	find_set(pcs);
	older = known(pcs[0]);
	digest = slot.dictionary[older.name];
	ck_assert_uint_eq(resolve(&older), pcs[0]);
	slot.dictionary[older.name] = 0;
	torn = known(pcs[1]);
	ck_assert_uint_eq(torn.name, older.name);
	slot.dictionary[older.name] = digest;
	slot.reference->seq--;
	c = known(2000);
	ck_assert_uint_eq(resolve(&c), 2000);
	c = capture(pcs[0]);
	ck_assert_uint_eq(c.len, 0);
	ck_assert_uint_ne(resolve(&c), pcs[1]);
	check_recovered(pcs[0]);
	check_recovered(pcs[1]);
}
END_TEST

START_TEST(duplicates)
{
	struct captured all[20], c;

	for (uint32_t i = 0; i < 20; i++) {
		all[i] = known(1000 + i);
		push(&all[i]);
		push(&all[i / 2]);
	}
	ck_assert_uint_eq(counts().records, 20);
	ck_assert_uint_eq(counts().duplicates, 40);
	for (uint32_t i = 0; i < 20; i++) {
		ck_assert_uint_eq(resolve(&all[i]), 1000 + i);
		push(&all[i]);
		push(&all[0]);
	}
	for (uint32_t i = 0; i < 20; i++) {
		c = all[i];
		c.seq = all[19].seq;
		ck_assert_uint_eq(resolve(&c), 1000 + i);
	}
	ck_assert_uint_eq(counts().duplicates, 80);
	ck_assert_uint_eq(counts().lost, 0);
	ck_assert_uint_eq(slot.reference->resync_asked, 0);
	check_recovered(1003);
}
END_TEST

/* In another order than they were sent, by a few places. */
START_TEST(swapped)
{
	struct captured all[40];

	for (uint32_t i = 0; i < 40; i++)
		all[i] = capture(1000 + i);
	for (uint32_t i = 0; i < 40; i++)
		push(&all[i / 8 * 8 + 7 - i % 8]);
	for (uint32_t i = 0; i < 40; i++)
		ck_assert_uint_eq(resolve(&all[i]), 1000 + i);
	ck_assert_uint_eq(counts().duplicates + counts().gaps + counts().lost, 0);

	/* Too late: the other is in flight, both are lost, no more. */
	for (uint32_t i = 0; i < 2; i++)
		all[i] = capture(2000 + i);
	push(&all[1]);
	ck_assert_uint_eq(resolve(&all[0]), 0);
	ck_assert_uint_eq(resolve(&all[1]), 0);
	push(&all[0]);
	ck_assert_uint_eq(counts().duplicates, 1);
	ck_assert_uint_eq(counts().lost, 2);
	check_recovered(2000);
	check_recovered(2001);
}
END_TEST

/* An event that was overtaken by captures of a handler: it means what its entry was then. */
START_TEST(overtaken)
{
	uint64_t pcs[MT_DICTIONARY_WAYS + 1];
	struct captured first, c[3];

	find_set(pcs);
	first = known(pcs[0]);
	ck_assert_uint_eq(resolve(&first), pcs[0]);
	for (int i = 0; i < 3; i++) {
		slot.dictionary[first.name] = 0;
		c[i] = known(pcs[i + 1]);
		ck_assert_uint_eq(c[i].name, first.name);
	}
	for (int i = 2; i >= 0; i--)
		ck_assert_uint_eq(resolve(&c[i]), pcs[i + 1]);
	ck_assert_uint_eq(resolve(&first), pcs[0]);
	ck_assert_uint_eq(counts().lost, 0);
}
END_TEST

/* What the last owner of the slot knew is not the next one's; nor is anybody taught by what comes
 * out when that has claimed it. */
START_TEST(next_owner)
{
	const struct mt_learned *learned = mt_segments_learned(segments, SLOT_INDEX);
	uint16_t next = (uint16_t)(slot.reference->generation + 1);
	struct captured c = known(1000), lost;

	ck_assert_int_eq(mt_stacks_claim(stacks, SLOT_INDEX, next), 0);
	ck_assert_uint_eq(resolve(&c), 1000);
	ck_assert_uint_eq(learned->slots[SLOT_INDEX % MT_CHUNK_SLOTS].seq, 0);
	mt_claim_reference(slot.reference, slot.dictionary);
	lost = capture(1001);
	lost.name = c.name; /* As if it had come to lie there. */
	slot.dictionary[c.name] = ~slot.dictionary[c.name];
	ck_assert_uint_eq(resolve(&lost), 0);
	c = known(1002);
	resolve(&c);
	ck_assert_uint_ne(learned->slots[SLOT_INDEX % MT_CHUNK_SLOTS].seq, 0);
	check_recovered(1000);
	ck_assert_uint_eq(counts().gaps, 0);
}
END_TEST

START_TEST(raw_ones)
{
	static struct captured all[3000];
	struct captured c;

	for (uint32_t i = 0; i < 3000; i++) {
		all[i] = capture_raw(1000 + i, 100000 + i);
		push(&all[i]);
	}
	ck_assert_uint_eq(counts().raw_records, 3000);
	/* No more is applied than an event needs. */
	ck_assert_uint_eq(resolve(&all[9]), 1009);
	ck_assert_uint_eq(counts().window_bytes, 10 * 8 * WINDOW_WORDS);
	/* Of a capture that was interrupted by nine others. */
	ck_assert_uint_eq(resolve(&all[0]), 1000);
	ck_assert_uint_eq(counts().window_bytes, 10 * 8 * WINDOW_WORDS);
	/* Others do not wait for them, nor they for others. */
	c = known(5);
	ck_assert_uint_eq(resolve(&c), 5);
	for (uint32_t i = 10; i < 3000; i++)
		ck_assert_uint_eq(resolve(&all[i]), 1000 + i);
	ck_assert_uint_eq(counts().lost, 0);
	/* The numbers of the events have been round: this one has no record any more. */
	ck_assert_uint_eq(resolve(&all[5]), 0);
}
END_TEST

START_TEST(raw_ones_lost)
{
	struct captured all[12], c;

	for (uint32_t i = 0; i < 12; i++)
		all[i] = capture_raw(1000 + i, 0x3ffa + i);
	all[4].record[HEAD_BYTES + 9] ^= 1;
	for (uint32_t i = 0; i < 12; i++) {
		if (i == 2)
			continue;
		push(&all[i]);
		push(&all[i]);
	}
	ck_assert_uint_eq(counts().duplicates, 11);
	for (uint32_t i = 0; i < 12; i++)
		ck_assert_uint_eq(resolve(&all[i]), i == 2 || i == 4 ? 0 : 1000 + i);
	ck_assert_uint_eq(counts().mismatches, 1);
	ck_assert_uint_eq(counts().lost, 2);
	/* One that comes late, because others that interrupted it were complete before. */
	push(&all[2]);
	ck_assert_uint_eq(resolve(&all[2]), 1002);
	push(&all[2]);
	ck_assert_uint_eq(counts().duplicates, 12);
	ck_assert_uint_eq(slot.reference->resync_asked, 0);
	c = known(77);
	ck_assert_uint_eq(resolve(&c), 77);
}
END_TEST

/* A run without compression has no references, whatever its processes send. */
START_TEST(run_without_references)
{
	struct captured c = capture(1000), raw = capture_raw(1001, 0);

	close_run();
	open_run(MT_RUN_RAW);
	ck_assert_ptr_null(mt_segments_reference(segments, SLOT_INDEX));
	push(&raw);
	ck_assert_uint_eq(resolve(&raw), 1001);
	push(&c);
	ck_assert_uint_eq(resolve(&c), 1000);
	c.record[HEAD_BYTES] ^= 1;
	c.seq += 9;
	push(&c);
	ck_assert_uint_eq(resolve(&c), 0);
	ck_assert_uint_eq(resolve_name(3, 99), MT_STOP_LOST);
	mt_stacks_make_room(stacks);
}
END_TEST

/* Records that no event asks for: refused when there are too many, and dropped on request,
 * of the slot that has the most. */
START_TEST(bounded)
{
	struct captured c = known(1000), other;
	static char record[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	uint32_t n = 0;
	size_t len;
	int r;

	player.start = player.bound - BUDGET;
	len = slot_raw(&player, 0, record);
	for (;; n++) {
		head->slot = 5;
		head->seq = n;
		record_seal(head, BUDGET);
		r = mt_stacks_push(stacks, 5, record, len);
		if (r)
			break;
	}
	ck_assert_int_eq(r, -EAGAIN);
	/* A copy of its head is kept beside each. */
	ck_assert_uint_le((uint64_t)n * (len + sizeof(struct mt_stack_record)),
			  MT_STACKS_WAITING_BYTES);
	mt_stacks_make_room(stacks);
	ck_assert_uint_eq(counts().dropped, n);
	ck_assert_uint_eq(mt_segments_reference(segments, 5)->resync_asked, 0);
	ck_assert_int_eq(mt_stacks_push(stacks, 5, record, len), 0);
	/* The other slot's is still there. */
	ck_assert_uint_eq(resolve(&c), 1000);
	for (int i = 0; i < 3; i++)
		mt_stacks_make_room(stacks);
	ck_assert_uint_eq(counts().dropped, n + 1);
	/* What is dropped is asked for again, once. */
	c = known(1001);
	other = known(1002);
	mt_stacks_make_room(stacks);
	ck_assert_uint_eq(counts().dropped, n + 3);
	ck_assert_uint_eq(slot.reference->resync_asked, 1);
	ck_assert_uint_eq(resolve(&c), 0);
	ck_assert_uint_eq(resolve(&other), 0);
	check_recovered(1001);
	check_recovered(1002);
}
END_TEST

/* seq wraps. */
START_TEST(seq_wraps)
{
	struct captured before, after;

	slot.reference->seq = 2 * (uint64_t)(UINT32_MAX - 1);
	before = known(1000);
	ck_assert_uint_eq(before.seq, UINT32_MAX);
	after = known(1001);
	ck_assert_uint_eq(after.seq, 0);
	ck_assert_uint_eq(resolve(&before), 1000);
	ck_assert_uint_eq(resolve(&after), 1001);
	before.seq = 1;
	ck_assert_uint_eq(resolve(&before), 1000);
	/* One that was known all the time, more than half a turn of the numbers later. */
	slot.reference->seq = 2 * (5 + (1ULL << 31));
	before = capture(1000);
	ck_assert_uint_eq(before.len, 0);
	ck_assert_uint_eq(resolve(&before), 1000);
	ck_assert_uint_eq(counts().lost, 0);
}
END_TEST

#define STEPS 60000
#define IN_FLIGHT 64

/*
 * Thousands of stacks, so that entries are taken again; records lost, damaged, repeated and
 * swapped; events that come later than their records.  Each event has its own chain, or none
 * and is counted; and when all is well again nothing is lost, but what was in flight.
 */
START_TEST(faults_at_random)
{
	static struct captured flight[IN_FLIGHT];
	static uint64_t pcs[IN_FLIGHT];
	struct captured held = { 0 };
	uint64_t lost = 0, lost_before = 0, faults = 0, random, good = 0;

	player.state = (uint64_t)_i * 77 + 1;
	for (uint32_t i = 0; i < STEPS; i++) {
		bool calm = i % 20000 > 10000;
		struct captured *c = &flight[i % IN_FLIGHT], sent;

		if (i >= IN_FLIGHT) {
			uint64_t pc = resolve(c);

			ck_assert(!pc || pc == pcs[i % IN_FLIGHT]);
			lost += !pc;
			good += pc != 0;
		}
		ck_assert_uint_eq(counts().lost, lost);
		if (i % 20000 == 10000 + 4 * IN_FLIGHT)
			lost_before = lost;
		if (i % 20000 == 19999)
			ck_assert_uint_eq(lost, lost_before);

		random = player_random(&player);
		pcs[i % IN_FLIGHT] = random % 3 ? 100000 + random % 97 : 200000 + random % 2500;
		*c = capture(pcs[i % IN_FLIGHT]);
		sent = *c;
		random = player_random(&player) % 100;
		faults += !calm && random < 4;
		if (!calm && random == 0)
			continue;
		if (!calm && random == 1 && sent.len > HEAD_BYTES)
			sent.record[HEAD_BYTES + i % (sent.len - HEAD_BYTES)] ^= 1 << i % 8;
		if (!calm && random == 2 && sent.len)
			sent.record[i % HEAD_BYTES] ^= 1 << i % 8;
		if (random == 3)
			push(&sent);
		if (!calm && random == 4 && !held.len) {
			held = sent;
			continue;
		}
		push(&sent);
		push(&held);
		held.len = 0;
	}
	ck_assert_uint_gt(faults, 500);
	ck_assert_uint_gt(lost, 500);
	ck_assert_uint_gt(good, STEPS / 2);
	printf("# %lu faults, %lu of %d events lost\n", faults, lost, STEPS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stacks");
	TCase *tcase = tcase_create("stacks");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, in_order);
	tcase_add_test(tcase, names_that_are_none);
	tcase_add_test(tcase, damaged_record);
	tcase_add_test(tcase, damaged_head);
	tcase_add_test(tcase, not_records);
	tcase_add_test(tcase, one_stack_for_ever);
	tcase_add_loop_test(tcase, lost_record_is_not_the_one_before, 0, 2);
	tcase_add_test(tcase, lost_between_equals);
	tcase_add_test(tcase, skipped_numbers);
	tcase_add_test(tcase, torn_move);
	tcase_add_test(tcase, duplicates);
	tcase_add_test(tcase, swapped);
	tcase_add_test(tcase, overtaken);
	tcase_add_test(tcase, next_owner);
	tcase_add_test(tcase, raw_ones);
	tcase_add_test(tcase, raw_ones_lost);
	tcase_add_test(tcase, run_without_references);
	tcase_add_test(tcase, bounded);
	tcase_add_test(tcase, seq_wraps);
	tcase_add_loop_test(tcase, faults_at_random, 0, 4);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
