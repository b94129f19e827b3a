/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replay.c - see replay.h
 *
 * Invariants
 *   What was live at the peak is kept exact without a copy of all chains at each new peak,
 *   and without a second pass: peaks are numbered, and a chain says which peak its at_peak
 *   is about.  Before a chain's live figures change, settle() copies them if that number is
 *   not the newest: they have not changed since the newest peak, so they are what was live
 *   then.  A new peak costs one addition, a change one comparison.
 *   Each block is in the figures of the total, its process, its chain and its thread, or in
 *   none of them: add_block() and end_block() are the only ones that change both.
 *   A realloc's old block stays in the table until the realloc's end is known.  A block whose
 *   pending names a thread is in that thread's open[] as HELD, once, and the other way round;
 *   when the block ends in another way, the entry becomes GONE.
 */
#include "report/replay.h"

#include <errno.h>
#include <string.h>

#include "report/grow.h"
#include "report/mix.h"

enum open_state {
	OPEN_HELD,	/* the block is live */
	OPEN_GONE,	/* it was, and has been counted as freed */
	OPEN_UNTRACKED, /* it was not known */
};

static uint64_t add_to(uint64_t sum, uint64_t x)
{
	return sum + x < sum ? UINT64_MAX : sum + x;
}

int mt_replay_init(struct mt_replay *replay)
{
	*replay = (struct mt_replay){ .seed = mt_mix_seed() };
	replay->sizes.seed = replay->seed;
	if (mt_grow(&replay->chain_of, &replay->nodes_room, MT_NODE_FIRST,
		    sizeof(*replay->chain_of)) ||
	    mt_grow(&replay->chains, &replay->chains_room, 1, sizeof(*replay->chains)) ||
	    mt_grow(&replay->processes, &replay->processes_room, 1, sizeof(*replay->processes)) ||
	    mt_grow(&replay->threads, &replay->threads_room, 1, sizeof(*replay->threads))) {
		mt_replay_done(replay);
		return -ENOMEM;
	}
	replay->nodes_len = MT_NODE_FIRST;
	replay->chains_len = 1;
	replay->processes_len = 1;
	replay->threads_len = 1;
	return 0;
}

void mt_replay_done(struct mt_replay *replay)
{
	for (size_t i = 0; i < replay->processes_len; i++)
		mt_block_table_done(&replay->processes[i].live);
	for (size_t i = 0; i < replay->threads_len; i++)
		free(replay->threads[i].open);
	mt_sizes_done(&replay->sizes);
	free(replay->chain_of);
	free(replay->chains);
	free(replay->processes);
	free(replay->threads);
	*replay = (struct mt_replay){ 0 };
}

/* Makes room for id, which is declared already or comes next. */
static int declare(void *array, size_t *len, size_t *room, uint32_t id, size_t element_bytes)
{
	int err;

	if (id > *len)
		return -EPROTO;
	if (id < *len)
		return 0;
	err = mt_grow(array, room, *len + 1, element_bytes);
	if (err)
		return err;
	++*len;
	return 1;
}

int mt_replay_node(struct mt_replay *replay, uint32_t id)
{
	int ret = declare(&replay->chain_of, &replay->nodes_len, &replay->nodes_room, id,
			  sizeof(*replay->chain_of));

	return ret < 0 ? ret : 0;
}

int mt_replay_process(struct mt_replay *replay, uint32_t id)
{
	int ret = declare(&replay->processes, &replay->processes_len, &replay->processes_room, id,
			  sizeof(*replay->processes));

	if (ret > 0)
		replay->processes[id].live.seed = replay->seed;
	return ret < 0 ? ret : 0;
}

static struct mt_block *held_block(struct mt_replay *replay, const struct mt_replay_thread *thread,
				   const struct mt_open_realloc *open)
{
	return mt_block_find(&replay->processes[thread->process].live, open->address);
}

static void forget_open(struct mt_replay *replay, struct mt_replay_thread *thread)
{
	while (thread->open_len) {
		const struct mt_open_realloc *open = &thread->open[--thread->open_len];

		if (open->state == OPEN_HELD)
			held_block(replay, thread, open)->pending = 0;
	}
}

int mt_replay_thread(struct mt_replay *replay, uint32_t id, uint32_t process)
{
	struct mt_replay_thread *thread;
	int ret;

	if (!id || !process || process >= replay->processes_len)
		return -EPROTO;
	ret = declare(&replay->threads, &replay->threads_len, &replay->threads_room, id,
		      sizeof(*replay->threads));
	if (ret < 0)
		return ret;
	thread = &replay->threads[id];
	if (thread->process != process) {
		forget_open(replay, thread);
		thread->process = process;
		thread->last_address = 0;
	}
	return 0;
}

static void settle(const struct mt_replay *replay, const struct mt_figures *figures,
		   struct mt_at_peak *at_peak)
{
	if (at_peak->peak == replay->peaks)
		return;
	at_peak->peak = replay->peaks;
	at_peak->allocations = figures->live_allocations;
	at_peak->bytes = figures->live_bytes;
}

static void count_in(struct mt_figures *figures, uint64_t size)
{
	figures->allocations++;
	figures->bytes_allocated = add_to(figures->bytes_allocated, size);
	figures->live_allocations++;
	figures->live_bytes += size;
}

static void count_out(struct mt_figures *figures, uint64_t size)
{
	figures->live_allocations--;
	figures->live_bytes -= size;
}

static void raise_peak(struct mt_peak *peak, const struct mt_figures *figures, uint64_t time_ns)
{
	if (figures->live_bytes <= peak->bytes)
		return;
	peak->bytes = figures->live_bytes;
	peak->time_ns = time_ns;
}

/*
 * The block's realloc, if one has begun, has nothing to end any more.
 */
static void let_go(struct mt_replay *replay, struct mt_block *block)
{
	struct mt_replay_thread *thread = &replay->threads[block->pending];

	if (!block->pending)
		return;
	for (uint32_t i = 0; i < thread->open_len; i++)
		if (thread->open[i].address == block->address && thread->open[i].state == OPEN_HELD)
			thread->open[i].state = OPEN_GONE;
	block->pending = 0;
}

/* by: the thread that freed it; 0: not known. */
static void end_block(struct mt_replay *replay, struct mt_replay_process *process,
		      struct mt_block *block, uint32_t by)
{
	struct mt_replay_chain *chain = &replay->chains[block->chain];
	struct mt_replay_thread *owner = &replay->threads[block->thread];
	struct mt_size *size = mt_sizes_find(&replay->sizes, block->size);
	uint64_t temporary = by == block->thread && owner->last_address == block->address;

	let_go(replay, block);
	settle(replay, &chain->figures, &chain->at_peak);
	settle(replay, &process->figures, &process->at_peak);
	count_out(&replay->total, block->size);
	count_out(&process->figures, block->size);
	count_out(&chain->figures, block->size);
	count_out(&owner->figures, block->size);

	replay->total.frees++;
	process->figures.frees++;
	chain->figures.frees++;
	size->frees++;
	if (by)
		replay->threads[by].figures.frees++;

	replay->total.temporary_allocations += temporary;
	process->figures.temporary_allocations += temporary;
	chain->figures.temporary_allocations += temporary;
	owner->figures.temporary_allocations += temporary;
	size->temporary_allocations += temporary;

	mt_block_remove(&process->live, block);
}

/* What is live at an address that is handed out again has ended.  Returns the new block's
 * implicit count. */
static uint32_t make_way(struct mt_replay *replay, struct mt_replay_process *process,
			 struct mt_block *block)
{
	uint32_t implicit = block->implicit;

	if (block->pending) {
		end_block(replay, process, block, block->pending);
		return implicit;
	}
	replay->contradictions++;
	end_block(replay, process, block, 0);
	return implicit + 1;
}

static int find_chain(struct mt_replay *replay, uint32_t node, struct mt_replay_chain **ret)
{
	uint32_t *chain = &replay->chain_of[node];

	if (!*chain) {
		int err = mt_grow(&replay->chains, &replay->chains_room, replay->chains_len + 1,
				  sizeof(*replay->chains));

		if (err)
			return err;
		*chain = (uint32_t)replay->chains_len;
		replay->chains[replay->chains_len++].node = node;
	}
	*ret = &replay->chains[*chain];
	return 0;
}

static int add_block(struct mt_replay *replay, const struct mt_event *event)
{
	struct mt_replay_thread *thread = &replay->threads[event->thread];
	struct mt_replay_process *process = &replay->processes[thread->process];
	struct mt_replay_chain *chain;
	struct mt_block *block = mt_block_find(&process->live, event->address);
	uint32_t implicit = 0;
	int err;

	err = find_chain(replay, event->node, &chain);
	if (err)
		return err;
	if (block)
		implicit = make_way(replay, process, block);
	err = mt_block_add(&process->live, event->address, &block);
	if (err)
		return err;
	err = mt_sizes_add(&replay->sizes, event->size);
	if (err)
		return err;
	block->size = event->size;
	block->time_ns = event->time_ns;
	block->chain = (uint32_t)(chain - replay->chains);
	block->thread = event->thread;
	block->implicit = implicit;
	thread->last_address = event->address;

	settle(replay, &chain->figures, &chain->at_peak);
	settle(replay, &process->figures, &process->at_peak);
	count_in(&replay->total, event->size);
	count_in(&process->figures, event->size);
	count_in(&chain->figures, event->size);
	count_in(&thread->figures, event->size);
	raise_peak(&process->peak, &process->figures, event->time_ns);
	if (replay->total.live_bytes > replay->peak.bytes)
		replay->peaks++;
	raise_peak(&replay->peak, &replay->total, event->time_ns);
	return 0;
}

/*
 * The live block that a free at this time can mean.  A free that is older than the block
 * means an earlier one: *ret_late says that it was taken as freed when its address was
 * handed out again.
 */
static struct mt_block *block_at(struct mt_replay *replay, const struct mt_event *event,
				 int *ret_late)
{
	struct mt_replay_thread *thread = &replay->threads[event->thread];
	struct mt_replay_process *process = &replay->processes[thread->process];
	struct mt_block *block = mt_block_find(&process->live, event->address);

	*ret_late = 0;
	if (!block || event->time_ns >= block->time_ns)
		return block;
	if (block->implicit) {
		block->implicit--;
		replay->contradictions--;
		thread->figures.frees++;
		*ret_late = 1;
	}
	return NULL;
}

static void free_block(struct mt_replay *replay, const struct mt_event *event)
{
	struct mt_replay_thread *thread = &replay->threads[event->thread];
	struct mt_block *block;
	int late;

	block = block_at(replay, event, &late);
	if (block)
		end_block(replay, &replay->processes[thread->process], block, event->thread);
	else if (!late)
		replay->untracked_frees++;
	thread->last_address = 0;
}

/*
 * With all places taken the oldest is dropped: its realloc was abandoned (a signal handler
 * that never returned), and its block goes on living, as without an end.
 */
static int begin_realloc(struct mt_replay *replay, const struct mt_event *event)
{
	struct mt_replay_thread *thread = &replay->threads[event->thread];
	struct mt_block *block;
	int late;
	uint32_t state;

	if (!thread->open) {
		thread->open = calloc(MT_REPLAY_OPEN_MAX, sizeof(*thread->open));
		if (!thread->open)
			return -ENOMEM;
	}
	block = block_at(replay, event, &late);
	if (block) {
		let_go(replay, block);
		block->pending = event->thread;
		state = OPEN_HELD;
	} else {
		state = late ? OPEN_GONE : OPEN_UNTRACKED;
	}
	if (thread->open_len == MT_REPLAY_OPEN_MAX) {
		if (thread->open[0].state == OPEN_HELD)
			held_block(replay, thread, &thread->open[0])->pending = 0;
		memmove(&thread->open[0], &thread->open[1],
			(MT_REPLAY_OPEN_MAX - 1) * sizeof(thread->open[0]));
		thread->open_len--;
	}
	thread->open[thread->open_len++] = (struct mt_open_realloc){ .address = event->address,
								     .state = state };
	return 0;
}

/* The thread's last realloc freed its block. */
static void end_realloc(struct mt_replay *replay, uint32_t thread_id)
{
	struct mt_replay_thread *thread = &replay->threads[thread_id];
	struct mt_open_realloc *open;

	if (!thread->open_len) {
		replay->contradictions++;
		return;
	}
	open = &thread->open[--thread->open_len];
	if (open->state == OPEN_HELD)
		end_block(replay, &replay->processes[thread->process],
			  held_block(replay, thread, open), thread_id);
	else if (open->state == OPEN_UNTRACKED)
		replay->untracked_frees++;
}

static void fail_realloc(struct mt_replay *replay, uint32_t thread_id)
{
	struct mt_replay_thread *thread = &replay->threads[thread_id];
	struct mt_open_realloc *open;

	if (!thread->open_len) {
		replay->contradictions++;
		return;
	}
	open = &thread->open[--thread->open_len];
	if (open->state == OPEN_HELD)
		held_block(replay, thread, open)->pending = 0;
	else if (open->state == OPEN_GONE)
		replay->contradictions++;
}

int mt_replay_event(struct mt_replay *replay, const struct mt_event *event)
{
	int has_address = event->type != MT_EVENT_REALLOC_FAILED &&
			  event->type != MT_EVENT_REALLOC_FREED;

	if (!event->thread || event->thread >= replay->threads_len ||
	    event->node >= replay->nodes_len)
		return -EPROTO;
	replay->events++;
	if (event->time_ns > replay->last_ns)
		replay->last_ns = event->time_ns;
	if (has_address && !event->address) {
		replay->contradictions++;
		return 0;
	}
	if (event->type != MT_EVENT_REALLOC_BEGIN)
		replay->calls[event->function]++;

	switch (event->type) {
	case MT_EVENT_ALLOC:
		return add_block(replay, event);
	case MT_EVENT_FREE:
		free_block(replay, event);
		return 0;
	case MT_EVENT_REALLOC_BEGIN:
		return begin_realloc(replay, event);
	case MT_EVENT_REALLOC_END:
		end_realloc(replay, event->thread);
		return add_block(replay, event);
	case MT_EVENT_REALLOC_FAILED:
		fail_realloc(replay, event->thread);
		return 0;
	case MT_EVENT_REALLOC_FREED:
		end_realloc(replay, event->thread);
		replay->threads[event->thread].last_address = 0;
		return 0;
	default:
		return -EPROTO;
	}
}

static void leave(struct mt_figures *figures, uint64_t size)
{
	count_out(figures, size);
	figures->left_allocations++;
	figures->left_bytes = add_to(figures->left_bytes, size);
}

static void drop_blocks(struct mt_replay *replay, struct mt_replay_process *process)
{
	for (size_t i = 0; i < process->live.room; i++)
		if (process->live.blocks[i].address)
			let_go(replay, &process->live.blocks[i]);
	settle(replay, &process->figures, &process->at_peak);
	for (size_t i = 0; i < process->live.room; i++) {
		const struct mt_block *block = &process->live.blocks[i];
		struct mt_replay_chain *chain = &replay->chains[block->chain];

		if (!block->address)
			continue;
		settle(replay, &chain->figures, &chain->at_peak);
		leave(&replay->total, block->size);
		leave(&process->figures, block->size);
		leave(&chain->figures, block->size);
		leave(&replay->threads[block->thread].figures, block->size);
	}
	mt_block_table_done(&process->live);
}

int mt_replay_process_end(struct mt_replay *replay, uint32_t id)
{
	if (!id || id >= replay->processes_len)
		return -EPROTO;
	drop_blocks(replay, &replay->processes[id]);
	return 0;
}

void mt_replay_finish(struct mt_replay *replay)
{
	for (size_t i = 1; i < replay->processes_len; i++)
		drop_blocks(replay, &replay->processes[i]);
	for (size_t i = 0; i < replay->chains_len; i++)
		settle(replay, &replay->chains[i].figures, &replay->chains[i].at_peak);
	mt_sizes_sort(&replay->sizes);
}
