/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_replay.c - report/replay.c: each rule of replay.h, and all figures against a model
 */
#include "report/replay.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define END MT_STOP_END
#define LEAF (MT_NODE_FIRST + 0)
#define OTHER (MT_NODE_FIRST + 1)

static struct mt_replay replay;
static uint64_t now;

/* Processes 1 and 2; threads 1 and 2 of process 1, thread 3 of process 2. */
static void setup(void)
{
	ck_assert_int_eq(mt_replay_init(&replay), 0);
	now = 1000;
	ck_assert_int_eq(mt_replay_process(&replay, 1), 0);
	ck_assert_int_eq(mt_replay_process(&replay, 2), 0);
	ck_assert_int_eq(mt_replay_thread(&replay, 1, 1), 0);
	ck_assert_int_eq(mt_replay_thread(&replay, 2, 1), 0);
	ck_assert_int_eq(mt_replay_thread(&replay, 3, 2), 0);
	ck_assert_int_eq(mt_replay_node(&replay, LEAF), 0);
	ck_assert_int_eq(mt_replay_node(&replay, OTHER), 0);
}

static void teardown(void)
{
	mt_replay_done(&replay);
}

static int feed(uint8_t type, uint32_t thread, uint64_t time, uint64_t address, uint64_t size,
		uint32_t node)
{
	struct mt_event event = {
		.time_ns = time,
		.address = address,
		.size = size,
		.thread = thread,
		.node = node,
		.type = type,
		.function = type,
	};

	return mt_replay_event(&replay, &event);
}

static void alloc_at(uint32_t thread, uint64_t address, uint64_t size, uint32_t node)
{
	ck_assert_int_eq(feed(MT_EVENT_ALLOC, thread, now++, address, size, node), 0);
}

static void alloc(uint32_t thread, uint64_t address, uint64_t size)
{
	alloc_at(thread, address, size, LEAF);
}

static void release(uint32_t thread, uint64_t address)
{
	ck_assert_int_eq(feed(MT_EVENT_FREE, thread, now++, address, 0, 0), 0);
}

static void begin(uint32_t thread, uint64_t address)
{
	ck_assert_int_eq(feed(MT_EVENT_REALLOC_BEGIN, thread, now++, address, 0, 0), 0);
}

static void end(uint32_t thread, uint64_t address, uint64_t size)
{
	ck_assert_int_eq(feed(MT_EVENT_REALLOC_END, thread, now++, address, size, LEAF), 0);
}

static void not_realloced(uint32_t thread)
{
	ck_assert_int_eq(feed(MT_EVENT_REALLOC_FAILED, thread, now++, 0, 0, 0), 0);
}

static void freed(uint32_t thread)
{
	ck_assert_int_eq(feed(MT_EVENT_REALLOC_FREED, thread, now++, 0, 0, 0), 0);
}

static void check(uint64_t allocations, uint64_t frees, uint64_t live_bytes)
{
	ck_assert_uint_eq(replay.total.allocations, allocations);
	ck_assert_uint_eq(replay.total.frees, frees);
	ck_assert_uint_eq(replay.total.live_allocations, allocations - frees);
	ck_assert_uint_eq(replay.total.live_bytes, live_bytes);
}

static void check_doubts(uint64_t untracked_frees, uint64_t contradictions)
{
	ck_assert_uint_eq(replay.untracked_frees, untracked_frees);
	ck_assert_uint_eq(replay.contradictions, contradictions);
}

static const struct mt_replay_chain *chain(uint32_t node)
{
	return &replay.chains[replay.chain_of[node]];
}

START_TEST(counts)
{
	alloc(1, 0x10, 100);
	alloc(1, 0x20, 0);
	release(2, 0x10);
	check(2, 1, 0);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.total.bytes_allocated, 100);
	ck_assert_uint_eq(replay.total.left_allocations, 1);
	ck_assert_uint_eq(replay.total.left_bytes, 0);
	ck_assert_uint_eq(replay.threads[1].figures.allocations, 2);
	ck_assert_uint_eq(replay.threads[1].figures.frees, 0);
	ck_assert_uint_eq(replay.threads[2].figures.frees, 1);
	ck_assert_uint_eq(replay.processes[1].figures.frees, 1);
	ck_assert_uint_eq(replay.events, 3);
	ck_assert_uint_eq(replay.calls[MT_EVENT_ALLOC], 2);
	check_doubts(0, 0);
}
END_TEST

START_TEST(beyond_32_bits)
{
	for (uint64_t i = 1; i <= 4; i++)
		alloc(1, i << 40, 5368709127);
	check(4, 0, 4 * 5368709127ULL);
	release(1, 1ULL << 40);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.peak.bytes, 4 * 5368709127ULL);
	ck_assert_uint_eq(replay.total.bytes_allocated, 4 * 5368709127ULL);
	ck_assert_uint_eq(replay.total.left_bytes, 3 * 5368709127ULL);
}
END_TEST

START_TEST(sums_stop_at_the_greatest)
{
	alloc(1, 0x10, UINT64_MAX - 1);
	release(1, 0x10);
	alloc(1, 0x10, 2);
	ck_assert_uint_eq(replay.total.bytes_allocated, UINT64_MAX);
	ck_assert_uint_eq(replay.total.live_bytes, 2);
}
END_TEST

START_TEST(unknown_address_is_an_untracked_free)
{
	release(1, 0x10);
	check(0, 0, 0);
	check_doubts(1, 0);
}
END_TEST

START_TEST(processes_have_their_own_addresses)
{
	alloc(1, 0x10, 100);
	release(3, 0x10);
	check(1, 0, 100);
	check_doubts(1, 0);
	alloc(3, 0x10, 50);
	check(2, 0, 150);
	check_doubts(1, 0);
	release(3, 0x10);
	check(2, 1, 100);
}
END_TEST

START_TEST(realloc_is_a_free_and_an_allocation)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	check(1, 0, 100);
	end(1, 0x20, 150);
	check(2, 1, 150);
	release(1, 0x20);
	check(2, 2, 0);
	check_doubts(0, 0);
	/* The two are one moment: never 250. */
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.peak.bytes, 150);
}
END_TEST

START_TEST(realloc_in_place)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	end(1, 0x10, 60);
	check(2, 1, 60);
	check_doubts(0, 0);
}
END_TEST

START_TEST(realloc_that_fails_did_not_happen)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	not_realloced(1);
	check(1, 0, 100);
	ck_assert_uint_eq(replay.total.temporary_allocations, 0);
	release(1, 0x10);
	check(1, 1, 0);
	/* Not even an event between the allocation and its free. */
	ck_assert_uint_eq(replay.total.temporary_allocations, 1);
	check_doubts(0, 0);
}
END_TEST

START_TEST(realloc_to_nothing_is_a_free)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	freed(1);
	check(1, 1, 0);
	check_doubts(0, 0);
}
END_TEST

START_TEST(realloc_without_end_leaves_the_block)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	check(1, 0, 100);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.total.left_allocations, 1);
	ck_assert_uint_eq(replay.total.frees, 0);
}
END_TEST

START_TEST(realloc_of_unknown_block)
{
	begin(1, 0x10);
	check_doubts(0, 0);
	end(1, 0x20, 10);
	check(1, 0, 10);
	check_doubts(1, 0);
	begin(1, 0x30);
	not_realloced(1);
	check_doubts(1, 0);
	begin(1, 0x30);
	freed(1);
	check(1, 0, 10);
	check_doubts(2, 0);
}
END_TEST

START_TEST(realloc_whose_address_is_taken_before_its_end)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	alloc(2, 0x10, 7);
	check(2, 1, 7);
	end(1, 0x20, 150);
	check(3, 1, 157);
	release(2, 0x10);
	check(3, 2, 150);
	check_doubts(0, 0);
	ck_assert_uint_eq(replay.threads[1].figures.frees, 1);
}
END_TEST

START_TEST(realloc_that_fails_although_its_block_is_gone)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	alloc(2, 0x10, 7);
	not_realloced(1);
	check(2, 1, 7);
	check_doubts(0, 1);
}
END_TEST

START_TEST(reallocs_nest_in_signal_handlers)
{
	alloc(1, 0x10, 100);
	alloc(1, 0x20, 200);
	begin(1, 0x10);
	begin(1, 0x20);
	end(1, 0x30, 300);
	check(3, 1, 400);
	not_realloced(1);
	check(3, 1, 400);
	release(1, 0x10);
	check(3, 2, 300);
	check_doubts(0, 0);
}
END_TEST

START_TEST(abandoned_reallocs_are_bounded)
{
	for (uint64_t i = 1; i <= 3 * MT_REPLAY_OPEN_MAX; i++) {
		alloc(1, i * 16, 1);
		begin(1, i * 16);
	}
	check(3 * MT_REPLAY_OPEN_MAX, 0, 3 * MT_REPLAY_OPEN_MAX);
	for (uint64_t i = 1; i <= 3 * MT_REPLAY_OPEN_MAX; i++)
		release(1, i * 16);
	check(3 * MT_REPLAY_OPEN_MAX, 3 * MT_REPLAY_OPEN_MAX, 0);
	check_doubts(0, 0);
}
END_TEST

START_TEST(abandoned_realloc_begins_again)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	begin(2, 0x10);
	end(2, 0x20, 30);
	check(2, 1, 30);
	release(1, 0x20);
	check(2, 2, 0);
	check_doubts(0, 0);
}
END_TEST

START_TEST(end_that_did_not_begin)
{
	end(1, 0x10, 100);
	check(1, 0, 100);
	check_doubts(0, 1);
	not_realloced(1);
	freed(1);
	check(1, 0, 100);
	check_doubts(0, 3);
}
END_TEST

START_TEST(allocation_at_a_live_address)
{
	alloc(1, 0x10, 100);
	alloc(2, 0x10, 40);
	check(2, 1, 40);
	check_doubts(0, 1);
	release(1, 0x10);
	check(2, 2, 0);
}
END_TEST

/* One event that can not be does not cost the report of all others. */
START_TEST(no_block_is_at_0)
{
	alloc(1, 0x10, 100);
	alloc(1, 0, 7);
	release(1, 0);
	begin(1, 0);
	begin(1, 0x10);
	end(1, 0, 7);
	check(1, 0, 100);
	check_doubts(0, 4);
	end(1, 0x20, 50);
	check(2, 1, 50);
	check_doubts(0, 4);
	ck_assert_uint_eq(replay.events, 7);
}
END_TEST

START_TEST(late_free_ends_the_earlier_block)
{
	alloc(1, 0x10, 100);
	now += 10;
	alloc(2, 0x10, 40);
	check_doubts(0, 1);
	ck_assert_int_eq(feed(MT_EVENT_FREE, 1, now - 5, 0x10, 0, 0), 0);
	check(2, 1, 40);
	check_doubts(0, 0);
	ck_assert_uint_eq(replay.threads[1].figures.frees, 1);
	release(2, 0x10);
	check(2, 2, 0);
	check_doubts(0, 0);
}
END_TEST

START_TEST(late_frees_of_several_blocks)
{
	for (int i = 0; i < 3; i++, now += 10)
		alloc(1, 0x10, 100);
	check_doubts(0, 2);
	ck_assert_int_eq(feed(MT_EVENT_FREE, 1, 1005, 0x10, 0, 0), 0);
	ck_assert_int_eq(feed(MT_EVENT_FREE, 1, 1015, 0x10, 0, 0), 0);
	check(3, 2, 100);
	check_doubts(0, 0);
	/* One more than there were blocks: of one that was never seen. */
	ck_assert_int_eq(feed(MT_EVENT_FREE, 1, 1005, 0x10, 0, 0), 0);
	check(3, 2, 100);
	check_doubts(1, 0);
}
END_TEST

START_TEST(late_realloc_ends_the_earlier_block)
{
	alloc(1, 0x10, 100);
	now += 10;
	alloc(2, 0x10, 40);
	ck_assert_int_eq(feed(MT_EVENT_REALLOC_BEGIN, 1, now - 5, 0x10, 0, 0), 0);
	end(1, 0x20, 7);
	check(3, 1, 47);
	check_doubts(0, 0);
}
END_TEST

START_TEST(temporary_is_freed_next_by_its_thread)
{
	alloc(1, 0x10, 1);
	release(1, 0x10);
	ck_assert_uint_eq(replay.total.temporary_allocations, 1);
	/* Another allocation in between. */
	alloc(1, 0x10, 1);
	alloc(1, 0x20, 1);
	release(1, 0x10);
	ck_assert_uint_eq(replay.total.temporary_allocations, 1);
	/* Another free in between. */
	release(1, 0x20);
	alloc(1, 0x10, 1);
	release(1, 0x999);
	release(1, 0x10);
	ck_assert_uint_eq(replay.total.temporary_allocations, 1);
	/* Another thread's events do not matter, but its free is not the thread's own. */
	alloc(1, 0x10, 1);
	alloc(2, 0x20, 1);
	release(1, 0x10);
	ck_assert_uint_eq(replay.total.temporary_allocations, 2);
	alloc(1, 0x10, 1);
	release(2, 0x10);
	ck_assert_uint_eq(replay.total.temporary_allocations, 2);
	/* The address has another owner by now. */
	alloc(1, 0x30, 1);
	release(2, 0x30);
	alloc(2, 0x30, 1);
	release(1, 0x30);
	ck_assert_uint_eq(replay.total.temporary_allocations, 2);
	ck_assert_uint_eq(chain(LEAF)->figures.temporary_allocations, 2);
	ck_assert_uint_eq(replay.threads[1].figures.temporary_allocations, 2);
}
END_TEST

START_TEST(temporary_by_realloc)
{
	alloc(1, 0x10, 1);
	begin(1, 0x10);
	end(1, 0x20, 2);
	ck_assert_uint_eq(replay.total.temporary_allocations, 1);
	begin(1, 0x20);
	freed(1);
	ck_assert_uint_eq(replay.total.temporary_allocations, 2);
	/* A signal handler allocates in between. */
	alloc(1, 0x10, 1);
	begin(1, 0x10);
	alloc(1, 0x30, 1);
	end(1, 0x20, 2);
	ck_assert_uint_eq(replay.total.temporary_allocations, 2);
}
END_TEST

START_TEST(blocks_leave_with_their_process)
{
	alloc_at(1, 0x10, 100, LEAF);
	alloc_at(3, 0x10, 1000, OTHER);
	ck_assert_int_eq(mt_replay_process_end(&replay, 2), 0);
	ck_assert_uint_eq(replay.total.live_bytes, 100);
	ck_assert_uint_eq(replay.total.left_bytes, 1000);
	alloc_at(1, 0x20, 500, LEAF);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.peak.bytes, 1100);
	ck_assert_uint_eq(replay.total.left_bytes, 1600);
	ck_assert_uint_eq(replay.total.left_allocations, 3);
	ck_assert_uint_eq(replay.total.live_bytes, 0);
	ck_assert_uint_eq(replay.total.frees, 0);
	ck_assert_uint_eq(replay.processes[1].figures.left_bytes, 600);
	ck_assert_uint_eq(replay.processes[1].peak.bytes, 600);
	ck_assert_uint_eq(replay.processes[1].at_peak.bytes, 100);
	ck_assert_uint_eq(replay.processes[2].figures.left_bytes, 1000);
	ck_assert_uint_eq(replay.processes[2].at_peak.bytes, 1000);
	ck_assert_uint_eq(chain(OTHER)->figures.left_bytes, 1000);
	ck_assert_uint_eq(replay.threads[3].figures.left_bytes, 1000);
}
END_TEST

START_TEST(process_ends_within_a_realloc)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	ck_assert_int_eq(mt_replay_process_end(&replay, 1), 0);
	ck_assert_uint_eq(replay.total.left_allocations, 1);
	/* What should not come any more does no harm. */
	end(1, 0x20, 10);
	release(1, 0x20);
	ck_assert_int_eq(mt_replay_process_end(&replay, 1), 0);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.total.left_allocations, 1);
}
END_TEST

START_TEST(thread_moves_to_another_process)
{
	alloc(1, 0x10, 100);
	begin(1, 0x10);
	ck_assert_int_eq(mt_replay_thread(&replay, 1, 2), 0);
	alloc(1, 0x10, 50);
	release(1, 0x10);
	release(2, 0x10);
	check(2, 2, 0);
	check_doubts(0, 0);
}
END_TEST

START_TEST(peak_is_the_first_of_equals)
{
	alloc(1, 0x10, 100);
	release(1, 0x10);
	alloc(1, 0x10, 100);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.peak.bytes, 100);
	ck_assert_uint_eq(replay.peak.time_ns, 1000);
}
END_TEST

START_TEST(chains_at_the_peak)
{
	alloc_at(1, 0x10, 100, LEAF);
	alloc_at(1, 0x20, 50, OTHER);
	release(1, 0x10);
	alloc_at(1, 0x30, 20, OTHER);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.peak.bytes, 150);
	ck_assert_uint_eq(chain(LEAF)->at_peak.bytes, 100);
	ck_assert_uint_eq(chain(LEAF)->at_peak.allocations, 1);
	ck_assert_uint_eq(chain(OTHER)->at_peak.bytes, 50);
	ck_assert_uint_eq(chain(OTHER)->at_peak.allocations, 1);
	ck_assert_uint_eq(chain(OTHER)->figures.bytes_allocated, 70);
}
END_TEST

START_TEST(chains_are_those_that_allocated)
{
	alloc_at(1, 0x10, 100, OTHER);
	alloc_at(1, 0x20, 100, END);
	ck_assert_uint_eq(replay.chains_len, 3);
	ck_assert_uint_eq(replay.chains[1].node, OTHER);
	ck_assert_uint_eq(replay.chains[2].node, END);
	ck_assert_uint_eq(replay.chain_of[LEAF], 0);
}
END_TEST

START_TEST(sizes)
{
	alloc(1, 0x10, 32);
	alloc(1, 0x20, 32);
	alloc(1, 0x30, 0);
	release(1, 0x10);
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.sizes.len, 2);
	ck_assert_uint_eq(replay.sizes.sizes[0].size, 0);
	ck_assert_uint_eq(replay.sizes.sizes[0].allocations, 1);
	ck_assert_uint_eq(replay.sizes.sizes[0].frees, 0);
	ck_assert_uint_eq(replay.sizes.sizes[1].size, 32);
	ck_assert_uint_eq(replay.sizes.sizes[1].allocations, 2);
	ck_assert_uint_eq(replay.sizes.sizes[1].frees, 1);
}
END_TEST

START_TEST(what_is_not_declared_is_refused)
{
	ck_assert_int_eq(feed(MT_EVENT_ALLOC, 4, now, 0x10, 1, LEAF), -EPROTO);
	ck_assert_int_eq(feed(MT_EVENT_ALLOC, 0, now, 0x10, 1, LEAF), -EPROTO);
	ck_assert_int_eq(feed(MT_EVENT_ALLOC, 1, now, 0x10, 1, OTHER + 1), -EPROTO);
	ck_assert_int_eq(feed(MT_EVENT_NONE, 1, now, 0x10, 0, 0), -EPROTO);
	ck_assert_int_eq(feed(_MT_EVENT_MAX, 1, now, 0x10, 0, 0), -EPROTO);
	ck_assert_int_eq(mt_replay_node(&replay, OTHER + 2), -EPROTO);
	ck_assert_int_eq(mt_replay_process(&replay, 4), -EPROTO);
	ck_assert_int_eq(mt_replay_thread(&replay, 5, 1), -EPROTO);
	ck_assert_int_eq(mt_replay_thread(&replay, 1, 3), -EPROTO);
	ck_assert_int_eq(mt_replay_thread(&replay, 1, 0), -EPROTO);
	ck_assert_int_eq(mt_replay_thread(&replay, 0, 1), -EPROTO);
	ck_assert_int_eq(mt_replay_process_end(&replay, 3), -EPROTO);
	ck_assert_int_eq(mt_replay_process_end(&replay, 0), -EPROTO);
	check(0, 0, 0);
}
END_TEST

/*
 * The model: all blocks in a list, all chains copied at each new peak.
 */
#define MODEL_BLOCKS 512
#define MODEL_CHAINS 24

struct model {
	struct {
		uint64_t address, size;
		uint32_t chain, process;
	} blocks[MODEL_BLOCKS];
	size_t len;
	uint64_t live, peak;
	uint64_t chains[MODEL_CHAINS], at_peak[MODEL_CHAINS];
	uint64_t allocations, frees;
};

static void model_add(struct model *model, uint64_t address, uint64_t size, uint32_t of,
		      uint32_t process)
{
	model->blocks[model->len].address = address;
	model->blocks[model->len].size = size;
	model->blocks[model->len].chain = of;
	model->blocks[model->len++].process = process;
	model->allocations++;
	model->chains[of] += size;
	model->live += size;
	if (model->live > model->peak) {
		model->peak = model->live;
		memcpy(model->at_peak, model->chains, sizeof(model->at_peak));
	}
}

static void model_remove(struct model *model, size_t at)
{
	model->live -= model->blocks[at].size;
	model->chains[model->blocks[at].chain] -= model->blocks[at].size;
	model->blocks[at] = model->blocks[--model->len];
}

static void model_step(struct model *model, uint64_t *next_address)
{
	uint32_t thread = 1 + (uint32_t)(rand() % 3), process = thread == 3 ? 2 : 1;
	uint32_t of = (uint32_t)(rand() % MODEL_CHAINS);
	uint64_t size = (uint64_t)(rand() % 1000);
	size_t at = model->len ? (size_t)rand() % model->len : 0;

	if (!model->len || (model->len < MODEL_BLOCKS && rand() % 2)) {
		*next_address += 16;
		alloc_at(thread, *next_address, size, MT_NODE_FIRST + of);
		model_add(model, *next_address, size, of, process);
	} else if (model->blocks[at].process == process && rand() % 3 == 0) {
		begin(thread, model->blocks[at].address);
		*next_address += 16;
		ck_assert_int_eq(feed(MT_EVENT_REALLOC_END, thread, now++, *next_address, size,
				      MT_NODE_FIRST + of),
				 0);
		model_remove(model, at);
		model->frees++;
		model_add(model, *next_address, size, of, process);
	} else {
		release(model->blocks[at].process == 2 ? 3 : thread % 2 + 1,
			model->blocks[at].address);
		model_remove(model, at);
		model->frees++;
	}
}

static void model_end_process(struct model *model, uint32_t process)
{
	ck_assert_int_eq(mt_replay_process_end(&replay, process), 0);
	for (size_t i = model->len; i-- > 0;)
		if (model->blocks[i].process == process)
			model_remove(model, i);
}

START_TEST(figures_are_those_of_a_model)
{
	struct model model = { 0 };
	uint64_t next_address = 0;

	srand((unsigned int)_i);
	for (uint32_t id = OTHER + 1; id < MT_NODE_FIRST + MODEL_CHAINS; id++)
		ck_assert_int_eq(mt_replay_node(&replay, id), 0);
	for (int step = 0; step < 20000; step++) {
		model_step(&model, &next_address);
		if (step % 7000 == 6999)
			model_end_process(&model, 2);
		ck_assert_uint_eq(replay.total.live_bytes, model.live);
	}
	mt_replay_finish(&replay);
	ck_assert_uint_eq(replay.peak.bytes, model.peak);
	ck_assert_uint_eq(replay.total.allocations, model.allocations);
	ck_assert_uint_eq(replay.total.frees, model.frees);
	ck_assert_uint_eq(replay.total.left_allocations, model.allocations - model.frees);
	for (uint32_t i = 0; i < MODEL_CHAINS; i++)
		ck_assert_uint_eq(chain(MT_NODE_FIRST + i)->at_peak.bytes, model.at_peak[i]);
	ck_assert_uint_eq(replay.processes[1].at_peak.bytes + replay.processes[2].at_peak.bytes,
			  model.peak);
	check_doubts(0, 0);
}
END_TEST

static TCase *cases(void)
{
	TCase *tcase = tcase_create("replay");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, counts);
	tcase_add_test(tcase, beyond_32_bits);
	tcase_add_test(tcase, sums_stop_at_the_greatest);
	tcase_add_test(tcase, unknown_address_is_an_untracked_free);
	tcase_add_test(tcase, processes_have_their_own_addresses);
	tcase_add_test(tcase, realloc_is_a_free_and_an_allocation);
	tcase_add_test(tcase, realloc_in_place);
	tcase_add_test(tcase, realloc_that_fails_did_not_happen);
	tcase_add_test(tcase, realloc_to_nothing_is_a_free);
	tcase_add_test(tcase, realloc_without_end_leaves_the_block);
	tcase_add_test(tcase, realloc_of_unknown_block);
	tcase_add_test(tcase, realloc_whose_address_is_taken_before_its_end);
	tcase_add_test(tcase, realloc_that_fails_although_its_block_is_gone);
	tcase_add_test(tcase, reallocs_nest_in_signal_handlers);
	tcase_add_test(tcase, abandoned_reallocs_are_bounded);
	tcase_add_test(tcase, abandoned_realloc_begins_again);
	tcase_add_test(tcase, end_that_did_not_begin);
	tcase_add_test(tcase, allocation_at_a_live_address);
	tcase_add_test(tcase, no_block_is_at_0);
	tcase_add_test(tcase, late_free_ends_the_earlier_block);
	tcase_add_test(tcase, late_frees_of_several_blocks);
	tcase_add_test(tcase, late_realloc_ends_the_earlier_block);
	tcase_add_test(tcase, temporary_is_freed_next_by_its_thread);
	tcase_add_test(tcase, temporary_by_realloc);
	tcase_add_test(tcase, blocks_leave_with_their_process);
	tcase_add_test(tcase, process_ends_within_a_realloc);
	tcase_add_test(tcase, thread_moves_to_another_process);
	tcase_add_test(tcase, peak_is_the_first_of_equals);
	tcase_add_test(tcase, chains_at_the_peak);
	tcase_add_test(tcase, chains_are_those_that_allocated);
	tcase_add_test(tcase, sizes);
	tcase_add_test(tcase, what_is_not_declared_is_refused);
	tcase_add_loop_test(tcase, figures_are_those_of_a_model, 0, 5);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("replay");
	SRunner *runner;
	int failures;

	suite_add_tcase(suite, cases());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
