/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pipeline.c - see pipeline.h for the contract
 *
 * Invariants
 *   - T before heads before the BPF rings: whatever a cell below a head names has arrived
 *     when the cell is handed on, if all that was on these rings has.
 *   - New nodes of the call tree are put before the event, or the kept stack, that needs them.
 *   - What a target sent and means nothing is counted, and harms its own events only.
 */
#include "collector/pipeline.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/assemble.h"
#include "collector/call_tree.h"
#include "collector/clock.h"
#include "collector/gauges.h"
#include "collector/keep.h"
#include "collector/merge.h"
#include "collector/modules.h"
#include "collector/pressure.h"
#include "collector/processes.h"
#include "collector/watch.h"
#include "wire/life.h"
#include "wire/stack_record.h"

/* Of what is left of an old rate after each pass. */
#define RATE_DECAY 0.98
/* In less time than this a thread may have been stopped in mid-course: what it did says nothing. */
#define LEAST_RUN_NS (20 * 1000ULL)
/* What has come in more time may have come at its end: a burst ends a rest. */
#define MOST_RUN_NS (1000 * 1000ULL)
/* A ring that needs longer than that is one on which nothing comes. */
#define SLOWEST_NS 1e12
#define SWEEP_NS (100 * 1000 * 1000ULL)
/* A pass is due when the fastest ring has been filled so far since the last one began.  Where the
 * collector is hardly faster than the threads, time that it sleeps is time that they wait for. */
#define USUAL_SHARE 0.4
#define BUSY_SHARE 0.1
/* A pass that found less of a ring says nothing of how long all would take. */
#define TELLING_SHARE 0.025
/* A batch that does not get full goes to the encoder after this time. */
#define PUSH_NS (100 * 1000 * 1000ULL)
/* How long a record that is being written is waited for at the end of a run. */
#define FINISH_NS (1000 * 1000 * 1000ULL)

/* Of a slot's events; known until a slot is claimed, or the pass ends. */
struct owner {
	uint32_t asked; /* mt_pipeline.owners_asked */
	struct mt_cell_owner is;
};

struct mt_pipeline {
	struct mt_pipeline_config config;
	struct mt_merge *merge;
	struct mt_call_tree tree;
	struct mt_stacks *stacks;
	struct mt_modules *modules;
	struct mt_processes *processes;
	struct mt_watch *watch;
	struct mt_pressure *pressure;
	struct owner *owners;		  /* MT_SLOTS of them */
	uint32_t owners_asked;		  /* times that what was known of them became void */
	struct mt_assembler *assemblers;  /* MT_SLOTS of them */
	char *blob;			  /* MT_RECORD_MAX_BYTES for the one at hand */
	struct mt_keep *keep;		  /* NULL: stacks are not kept */
	struct mt_gauges *gauges;	  /* NULL: no statistics */
	struct mt_stats_resolve resolved; /* until the last row of it */
	uint32_t thread;		  /* whose event is resolved, id in the artifact */
	uint32_t root;
	uint32_t nodes_put; /* nodes below this are put */
	uint64_t next_sweep_ns;
	uint64_t next_push_ns;
	uint64_t refused_ns; /* of the stack record that this pass had no room for; 0: none */
	/* All stack records from before clean_ns have come; those from before mark_ns once the
	 * ring's consumer is at mark. */
	uint64_t clean_ns, mark_ns, mark;
	bool behind;	   /* not all that this pass found on the ring has come */
	bool impatient;	   /* and will not */
	uint64_t heads_ns; /* when the heads were taken last */
	double fastest;	   /* bytes a ns that the fastest ring gets, lately */
	int error;	   /* of a callback that can not return it */
	uint64_t lost_events, stray_cells, not_tracked;
};

static int on_not_tracked(void *ctx, uint32_t tgid, const char *what, const char *reason)
{
	struct mt_pipeline *p = ctx;
	struct mt_not_tracked record = { .tgid = tgid, .what = what, .reason = reason };
	char text[512];

	p->not_tracked++;
	if (p->not_tracked <= MT_PIPELINE_NOTES) {
		snprintf(text, sizeof(text), "not tracked: %u %s (%s)", tgid, what, reason);
		p->config.note(p->config.ctx, text);
	}
	return mt_encode_put(p->config.encode, MT_BATCH_NOT_TRACKED, &record);
}

static void put_new_nodes(struct mt_pipeline *p)
{
	uint32_t end = mt_call_tree_end(&p->tree);

	for (; p->nodes_put < end; p->nodes_put++) {
		const struct mt_call_node *node = mt_call_tree_node(&p->tree, p->nodes_put);
		struct mt_batch_node *record = mt_encode_node(p->config.encode);

		record->id = p->nodes_put;
		record->parent = node->parent;
		record->module = node->frame.module;
		record->offset = node->frame.offset;
		record->exact = (uint8_t)node->frame.exact;
	}
}

static int on_unwound(void *ctx, const struct mt_unwound_stack *stack)
{
	struct mt_pipeline *p = ctx;

	put_new_nodes(p);
	return mt_keep_stack(p->keep, p->thread, stack);
}

static void on_episode(void *ctx, const struct mt_pressure_episode *episode)
{
	const struct mt_pipeline *p = ctx;
	const struct mt_stats_pressure row = {
		.ring = episode->ring == MT_LATCH_STACKS ? MT_STATS_STACKS
			: episode->ring == MT_LATCH_LIFE ? MT_STATS_LIFE
							 : episode->slot,
		.slot = episode->slot,
		.by_signal = episode->pause == MT_PAUSE_SIGNAL,
		.latch_ns = episode->latch_ns,
		.release_ns = episode->release_ns,
		.processes = episode->processes,
		.n_processes = episode->n_processes,
	};

	mt_stats_pressure(p->config.stats, &row);
}

static void on_released(void *ctx)
{
	const struct mt_pipeline *p = ctx;

	p->config.released(p->config.ctx);
}

static int new_pressure(struct mt_pipeline *p)
{
	const struct mt_pressure_config config = {
		.segments = p->config.segments,
		.probes = p->config.probes,
		.merge = p->merge,
		.processes = p->processes,
		.holds = p->config.holds,
		.gather_ns = p->config.gather_ns,
		.on_episode = on_episode,
		.on_released = on_released,
		.ctx = p,
	};

	return mt_pressure_new(&config, &p->pressure);
}

int mt_pipeline_new(const struct mt_pipeline_config *config, struct mt_pipeline **ret)
{
	mt_cleanup(mt_pipeline_freep) struct mt_pipeline *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->nodes_put = MT_NODE_FIRST;
	p->owners = calloc(MT_SLOTS, sizeof(*p->owners));
	p->assemblers = calloc(MT_SLOTS, sizeof(*p->assemblers));
	p->blob = malloc(MT_RECORD_MAX_BYTES);
	if (!p->owners || !p->assemblers || !p->blob)
		return -ENOMEM;
	if ((r = mt_merge_new(config->segments, &p->merge)) < 0 ||
	    (r = mt_call_tree_init(&p->tree, UINT32_MAX)) < 0 ||
	    (r = mt_stacks_new(config->segments, &p->tree, &p->stacks)) < 0 ||
	    (r = mt_modules_new(config->encode, &p->modules)) < 0 ||
	    (r = mt_processes_new(config->encode, p->modules, &p->processes)) < 0 ||
	    (r = mt_watch_new(config->shim_name, on_not_tracked, p, &p->watch)) < 0 ||
	    (r = new_pressure(p)) < 0)
		return r;
	if (config->keep_stacks) {
		r = mt_keep_new(config->encode, &p->keep);
		if (r < 0)
			return r;
		mt_stacks_observe(p->stacks, on_unwound, p);
	}
	if (config->stats) {
		r = mt_gauges_new(config->stats, config->segments, config->probes, &p->gauges);
		if (r < 0)
			return r;
	}
	*ret = mt_take_ptr(p);
	return 0;
}

/* What is behind these was never written, and is memory only once it is touched. */
static uint32_t slots_given(const struct mt_pipeline *p)
{
	return p->config.segments->chunks_used * MT_CHUNK_SLOTS;
}

void mt_pipeline_free(struct mt_pipeline *p)
{
	if (!p)
		return;
	mt_pressure_free(p->pressure);
	mt_watch_free(p->watch);
	mt_processes_free(p->processes);
	mt_modules_free(p->modules);
	mt_stacks_free(p->stacks);
	mt_keep_free(p->keep);
	mt_gauges_free(p->gauges);
	mt_call_tree_done(&p->tree);
	mt_merge_free(p->merge);
	for (uint32_t i = 0; p->assemblers && i < slots_given(p); i++)
		mt_assembler_done(&p->assemblers[i]);
	free(p->assemblers);
	free(p->owners);
	free(p->blob);
	free(p);
}

void mt_pipeline_target(struct mt_pipeline *p, uint32_t tgid, const char *name)
{
	p->root = tgid;
	if (!p->config.probes)
		mt_watch_root(p->watch, tgid, name, mt_clock_ns());
}

int mt_pipeline_arrive(void *pipeline, const struct mt_arrival *arrival)
{
	struct mt_pipeline *p = pipeline;
	int r = mt_processes_arrive(p->processes, arrival);

	if (r == -EBADMSG) {
		p->stray_cells++; /* the counter that numbers come from is the targets' too */
		return r;
	}
	if (r == 0)
		r = mt_modules_arrive(p->modules, arrival->tgid);
	if (r == 0)
		r = mt_watch_arrived(p->watch, arrival->tgid);
	if (r < 0 && !p->error)
		p->error = r;
	return r;
}

static int owner_of(struct mt_pipeline *p, uint32_t slot, const struct mt_cell_owner **ret)
{
	struct owner *owner = &p->owners[slot];
	int r = 0;

	if (owner->asked != p->owners_asked) {
		r = mt_processes_owner(p->processes, slot, &owner->is);
		if (r == 0)
			owner->asked = p->owners_asked;
	}
	*ret = &owner->is;
	return r;
}

/* One whose size needs more bits than nearly all do. */
static int put_large_event(struct mt_pipeline *p, const struct mt_cell *cell,
			   const struct mt_batch_event *event)
{
	const struct mt_event record = {
		.time_ns = event->time_ns,
		.address = event->address,
		.size = cell->w[2],
		.thread = event->thread,
		.node = event->node,
		.type = event->type,
		.function = event->function,
	};

	return mt_encode_put(p->config.encode, MT_BATCH_EVENT, &record);
}

static int put_event(struct mt_pipeline *p, uint32_t slot, const struct mt_cell *cell,
		     enum mt_event_type type)
{
	bool has_stack = type == MT_EVENT_ALLOC || type == MT_EVENT_REALLOC_END;
	const struct mt_cell_owner *owner;
	uint64_t size = has_stack ? cell->w[2] : 0;
	struct mt_batch_event large, *event = &large;
	uint32_t node = 0;
	int r;

	r = owner_of(p, slot, &owner);
	if (r == -ENOENT) {
		p->lost_events++;
		return 0;
	}
	if (r < 0)
		return r;
	if (has_stack) {
		p->thread = owner->thread;
		r = mt_stacks_resolve(p->stacks, slot, owner->space, MT_CELL_HALF(cell->head),
				      MT_CELL_WORD(cell->head), &node);
		if (r < 0)
			return r;
		put_new_nodes(p);
	}
	if (size <= UINT32_MAX)
		event = mt_encode_event(p->config.encode);
	event->type = (uint8_t)type;
	event->function = MT_CELL_KIND(cell->head) & (uint8_t)~MT_REALLOC_FREED;
	event->thread = owner->thread;
	event->time_ns = cell->w[0];
	event->address = cell->w[1];
	event->size = (uint32_t)size;
	event->node = node;
	return event == &large ? put_large_event(p, cell, event) : 0;
}

static enum mt_event_type realloc_end(const struct mt_cell *cell)
{
	if (MT_CELL_KIND(cell->head) & MT_REALLOC_FREED)
		return MT_EVENT_REALLOC_FREED;
	return cell->w[1] ? MT_EVENT_REALLOC_END : MT_EVENT_REALLOC_FAILED;
}

static int on_note(struct mt_pipeline *p, uint32_t slot, const char *record, size_t len)
{
	static const char *const reasons[] = {
		[MT_NOTE_OWN_ALLOCATOR] = "allocator inside the executable",
		[MT_NOTE_BOUND_ELSEWHERE] = "its malloc is bound elsewhere, RTLD_DEEPBIND",
		[MT_NOTE_OTHER_NAMESPACE] = "in another link namespace, dlmopen",
		[MT_NOTE_SANITIZER] = "a sanitizer's allocator",
	};
	struct mt_note_record head;
	struct mt_cell_owner owner = { 0 };
	size_t n;

	if (len <= sizeof(head))
		return -EBADMSG;
	memcpy(&head, record, sizeof(head));
	n = strnlen(record + sizeof(head), len - sizeof(head));
	if (n == len - sizeof(head) || !head.reason ||
	    head.reason >= sizeof(reasons) / sizeof(reasons[0]))
		return -EBADMSG;
	mt_processes_owner(p->processes, slot, &owner);
	return on_not_tracked(p, owner.tgid, record + sizeof(head), reasons[head.reason]);
}

static int push_sound(void *ctx, uint32_t slot, const void *record, size_t len)
{
	return mt_stacks_push(ctx, slot, record, len);
}

static int push_record(struct mt_pipeline *p, uint32_t slot, const void *record, size_t len)
{
	if (!p->config.faults)
		return mt_stacks_push(p->stacks, slot, record, len);
	return mt_faults_push(p->config.faults, slot, record, len, push_sound, p->stacks);
}

/* One that came over a ring: it can not be left there, its event is behind it. */
static int push_stack(struct mt_pipeline *p, uint32_t slot, const void *record, size_t len)
{
	int r = push_record(p, slot, record, len);

	if (r != -EAGAIN)
		return r;
	mt_stacks_make_room(p->stacks);
	return push_record(p, slot, record, len);
}

static int on_piece(struct mt_pipeline *p, uint32_t slot, const struct mt_cell *cell)
{
	void *record;
	size_t len;
	int r = mt_assembler_add(&p->assemblers[slot], cell, &record, &len);

	switch (r) {
	case MT_RECORD_MODULE:
		r = mt_processes_module(p->processes, slot, record, len);
		break;
	case MT_RECORD_STACK:
		r = push_stack(p, slot, record, len);
		break;
	case MT_RECORD_NOTE:
		r = on_note(p, slot, record, len);
		break;
	default:
		break;
	}
	if (r == -EBADMSG) {
		p->stray_cells++;
		r = 0;
	}
	return r < 0 ? r : 0;
}

static int on_blob(struct mt_pipeline *p, uint32_t slot, const struct mt_cell *cell)
{
	size_t len = MT_CELL_WORD(cell->head);

	if (MT_CELL_KIND(cell->head) != MT_RECORD_STACK || !len || len % 8 ||
	    len > MT_RECORD_MAX_BYTES) {
		p->stray_cells++;
		return 0;
	}
	mt_merge_copy_blob(p->merge, p->blob);
	return push_stack(p, slot, p->blob, len);
}

/* A slot's cells are another thread's from here on, or their process is told of. */
static int on_claim(struct mt_pipeline *p, uint32_t slot, const struct mt_cell *cell)
{
	int r;

	if (MT_CELL_TYPE(cell->head) == MT_CELL_THREAD) {
		mt_assembler_restart(&p->assemblers[slot]);
		r = mt_stacks_claim(p->stacks, slot, MT_CELL_HALF(cell->head));
		if (r < 0)
			return r;
		r = mt_processes_thread(p->processes, slot, cell);
	} else {
		r = mt_processes_process(p->processes, slot, cell);
	}
	p->owners_asked++;
	if (r == -EBADMSG) {
		p->stray_cells++;
		return 0;
	}
	return r;
}

static int on_cell(void *ctx, uint32_t slot, const struct mt_cell *cell)
{
	struct mt_pipeline *p = ctx;

	switch (MT_CELL_TYPE(cell->head)) {
	case MT_CELL_ALLOC:
		return put_event(p, slot, cell, MT_EVENT_ALLOC);
	case MT_CELL_FREE:
		return put_event(p, slot, cell, MT_EVENT_FREE);
	case MT_CELL_REALLOC_BEGIN:
		return put_event(p, slot, cell, MT_EVENT_REALLOC_BEGIN);
	case MT_CELL_REALLOC_END:
		return put_event(p, slot, cell, realloc_end(cell));
	case MT_CELL_PROCESS:
	case MT_CELL_THREAD:
		return on_claim(p, slot, cell);
	case MT_CELL_PIECE:
		return on_piece(p, slot, cell);
	case MT_CELL_BLOB:
		return on_blob(p, slot, cell);
	case MT_CELL_LOSS:
		if (cell->w[1] > UINT32_MAX)
			p->stray_cells++; /* more than any thread can have had */
		else
			p->lost_events += cell->w[1];
		return 0;
	default:
		p->stray_cells++;
		return 0;
	}
}

/* The time of a record's head, whose upper bits are those of a time near now. */
static uint64_t near_ns(uint32_t time, uint64_t now_ns)
{
	uint64_t now = now_ns >> MT_STACK_TIME_SHIFT;

	return (now + (uint64_t)(int64_t)(int32_t)(time - (uint32_t)now)) << MT_STACK_TIME_SHIFT;
}

static int on_stack(void *ctx, const void *record, size_t len)
{
	struct mt_pipeline *p = ctx;
	uint32_t time;
	int r;

	r = push_record(p, MT_STACKS_ANY_SLOT, record, len);
	if (r == -EAGAIN) { /* So it is a record. */
		memcpy(&time, (const char *)record + offsetof(struct mt_stack_record, time),
		       sizeof(time));
		p->refused_ns = near_ns(time, mt_clock_ns());
	}
	return r;
}

static int on_life_exec(struct mt_pipeline *p, const struct mt_life_exec *exec)
{
	char name[sizeof(exec->comm) + 1], path[sizeof(exec->filename) + 1];

	snprintf(name, sizeof(name), "%.*s", (int)sizeof(exec->comm), (const char *)exec->comm);
	snprintf(path, sizeof(path), "%.*s", (int)sizeof(exec->filename),
		 (const char *)exec->filename);
	if (mt_processes_tracked(p->processes, exec->head.tgid, exec->head.time_ns))
		return mt_watch_passed(p->watch, exec->head.tgid, path, name);
	return mt_watch_exec(p->watch, exec->head.tgid, path, name, mt_clock_ns());
}

static int on_life_exit(struct mt_pipeline *p, const struct mt_life_exit *life)
{
	char name[sizeof(life->comm) + 1];
	int r = 0;

	snprintf(name, sizeof(name), "%.*s", (int)sizeof(life->comm), (const char *)life->comm);
	if (life->group_dead)
		r = mt_watch_exit(p->watch, life->head.tgid);
	if (r < 0)
		return r;
	return mt_processes_exit(p->processes, life->head.tgid, life->head.tid,
				 life->group_dead != 0, (int)life->exit_code, life->head.time_ns,
				 name);
}

static int on_life(void *ctx, const void *record, size_t len)
{
	struct mt_pipeline *p = ctx;
	struct mt_life_head head;

	if (len < sizeof(head)) {
		p->stray_cells++;
		return 0;
	}
	memcpy(&head, record, sizeof(head));
	if (head.type == MT_LIFE_EXEC && len >= sizeof(struct mt_life_exec))
		return on_life_exec(p, record);
	if (head.type == MT_LIFE_EXIT && len >= sizeof(struct mt_life_exit))
		return on_life_exit(p, record);
	return 0;
}

static bool holds_slot(void *ctx, uint32_t tgid)
{
	return mt_processes_holds(ctx, tgid);
}

/* What the kernel does not tell of, in a run without BPF; a twentieth of a processor at most. */
static int sweep(struct mt_pipeline *p, uint64_t now_ns)
{
	uint64_t took_ns;
	int r = 0;

	if (now_ns < p->next_sweep_ns)
		return 0;
	took_ns = mt_clock_cpu_ns();
	if (!p->config.probes) {
		r = mt_processes_sweep(p->processes, p->config.segments);
		if (r == 0 && p->root)
			r = mt_watch_scan(p->watch, p->root, now_ns, holds_slot, p->processes);
	}
	if (r == 0)
		r = mt_watch_tick(p->watch, now_ns);
	took_ns = mt_clock_cpu_ns() - took_ns;
	p->next_sweep_ns = now_ns + (took_ns * 20 > SWEEP_NS ? took_ns * 20 : SWEEP_NS);
	return r;
}

/* Reads the BPF rings; now_ns is from before the heads were taken. */
static int drain(struct mt_pipeline *p, uint64_t now_ns)
{
	struct mt_probes *probes = p->config.probes;
	uint64_t produced = mt_probes_stacks_produced(probes), consumed;
	int r = mt_probes_drain(probes, on_stack, on_life, p);

	if (r < 0)
		return r;
	consumed = mt_probes_stacks_consumed(probes);
	if (consumed >= p->mark) {
		p->clean_ns = p->mark_ns;
		p->mark_ns = now_ns;
		p->mark = produced;
	}
	p->behind = consumed < produced;
	return 0;
}

/* A row of what has been resolved since start_ns, before which the encoder had been waited
 * for for waited_ns; and the events are told of. */
static void measure_resolve(struct mt_pipeline *p, uint64_t start_ns, uint64_t waited_ns)
{
	struct mt_stats_resolve now = {
		.start_ns = start_ns,
		.wait_ns = mt_encode_waited_ns(p->config.encode) - waited_ns,
		.events = mt_encode_events(p->config.encode),
	}, row = now;
	struct mt_stacks_counts counts;

	mt_stacks_counts(p->stacks, &counts);
	now.records = counts.records;
	now.chains = counts.chains;
	row.records = now.records - p->resolved.records;
	row.events -= p->resolved.events;
	row.chains = now.chains - p->resolved.chains;
	p->resolved = now;
	mt_stats_drained(p->config.stats, now.events);
	if (row.events || row.records)
		mt_stats_resolve(p->config.stats, &row);
}

/* Hands the cells on that are below that time, as many as a pass may. */
static int64_t merge_cells(struct mt_pipeline *p, uint64_t below_ns)
{
	uint64_t start_ns, waited_ns;
	int64_t cells;

	p->owners_asked++;
	if (!p->config.stats)
		return mt_merge_cells(p->merge, below_ns, MT_PIPELINE_CELLS, on_cell, p);
	start_ns = mt_clock_ns();
	waited_ns = mt_encode_waited_ns(p->config.encode);
	cells = mt_merge_cells(p->merge, below_ns, MT_PIPELINE_CELLS, on_cell, p);
	measure_resolve(p, start_ns, waited_ns);
	return cells;
}

static int64_t pass(struct mt_pipeline *p, uint64_t now_ns, uint64_t below_ns)
{
	int64_t cells;
	int r = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	p->refused_ns = 0;
	mt_merge_heads(p->merge);
	if (p->config.probes)
		r = drain(p, now_ns);
	if (r < 0)
		return r;
	if (p->behind && !p->impatient && !p->refused_ns && p->clean_ns < below_ns)
		below_ns = p->clean_ns;
	/* Whatever names a record that was left on its ring happened after that was captured. */
	if (p->refused_ns && p->refused_ns < below_ns)
		below_ns = p->refused_ns;
	cells = merge_cells(p, below_ns);
	if (cells < 0)
		return cells;
	if (p->gauges)
		mt_gauges_read(p->gauges, now_ns);
	if (p->refused_ns && !cells)
		mt_stacks_make_room(p->stacks);
	r = mt_processes_advance(p->processes, mt_merge_reached_ns(p->merge));
	if (r < 0)
		return r;
	return p->refused_ns ? cells + 1 : cells; /* what was left is to be come back for */
}

/* The rate of the fastest ring while its thread ran; it is forgotten slowly, so that a pause makes
 * nobody late. */
static void note_rate(struct mt_pipeline *p, uint64_t now_ns, uint64_t running_ns)
{
	double rate = 0;

	if (running_ns > MOST_RUN_NS)
		running_ns = MOST_RUN_NS;
	if (running_ns >= LEAST_RUN_NS)
		rate = (double)mt_merge_fullest_bytes(p->merge) / (double)running_ns;
	p->heads_ns = now_ns;
	p->fastest = rate > p->fastest * RATE_DECAY ? rate : p->fastest * RATE_DECAY;
}

int64_t mt_pipeline_pass(struct mt_pipeline *p)
{
	uint64_t now_ns, running_ns;
	int64_t cells;
	int r;

	if (p->config.faults && mt_faults_pass_ms(p->config.faults))
		usleep(mt_faults_pass_ms(p->config.faults) * 1000);
	mt_pressure_look(p->pressure);
	now_ns = mt_clock_ns();
	running_ns = mt_pressure_running_ns(p->pressure, p->heads_ns, now_ns);
	cells = pass(p, now_ns, now_ns);
	note_rate(p, now_ns, running_ns);
	if (cells < 0)
		return cells;
	mt_pressure_settle(p->pressure);
	if (now_ns >= p->next_push_ns) {
		mt_encode_push(p->config.encode);
		p->next_push_ns = now_ns + PUSH_NS;
	}
	r = sweep(p, now_ns);
	if (r < 0)
		return r;
	return p->error ? p->error : cells;
}

bool mt_pipeline_gathers(const struct mt_pipeline *p)
{
	return mt_pressure_is_gathering(p->pressure);
}

bool mt_pipeline_pressed(const struct mt_pipeline *p)
{
	return mt_pressure_is_on(p->pressure);
}

/* Whether the last pass took more than half of the time in which what it found came. */
static bool is_busy(const struct mt_pipeline *p, uint64_t took_ns)
{
	uint64_t found = mt_merge_fullest_bytes(p->merge);

	return found > p->config.segments->ring_bytes * TELLING_SHARE &&
	       (double)took_ns * p->fastest > (double)found / 2;
}

uint64_t mt_pipeline_due_ns(const struct mt_pipeline *p)
{
	uint64_t took_ns = mt_clock_ns() - p->heads_ns, due_ns;
	double bytes = p->config.segments->ring_bytes *
		       (is_busy(p, took_ns) ? BUSY_SHARE : USUAL_SHARE);

	/* Its thread may be waiting: at what rate it would go on, nobody knows. */
	if (mt_merge_fullest_bytes(p->merge) > p->config.segments->ring_bytes / 2)
		return 0;
	/* A rate of long ago gets so low that the time would be no number any more. */
	if (bytes >= p->fastest * SLOWEST_NS)
		return UINT64_MAX;
	/* What the last pass took, the ring was filled in, too. */
	due_ns = (uint64_t)(bytes / p->fastest);
	return due_ns > took_ns ? due_ns - took_ns : 0;
}

int mt_pipeline_finish(struct mt_pipeline *p)
{
	const struct mt_segments *segments = p->config.segments;
	uint64_t most = (uint64_t)segments->chunks_used * MT_CHUNK_SLOTS * segments->ring_bytes /
			sizeof(struct mt_cell);
	uint64_t done = 0, begin_ns, now_ns;
	int64_t cells;
	bool waits;
	int r = 0;

	mt_pressure_stop(p->pressure);
	if (!p->config.probes)
		r = mt_processes_sweep(p->processes, segments);
	if (r == 0 && !p->config.probes)
		r = mt_watch_finish(p->watch);
	if (r < 0)
		return r;
	begin_ns = mt_clock_ns();
	do {
		now_ns = mt_clock_ns();
		cells = pass(p, now_ns, UINT64_MAX);
		done += cells > 0 ? (uint64_t)cells : 0;
		waits = p->behind && now_ns - begin_ns < FINISH_NS;
		if (waits && cells == 0)
			sched_yield();
	} while ((cells > 0 && done <= most) || (cells == 0 && waits));
	p->impatient = true;
	if (cells == 0 && p->behind)
		cells = pass(p, now_ns, UINT64_MAX);
	return cells < 0 ? (int)cells : p->error;
}

static int ignore(void *ctx, const void *record, size_t len)
{
	return 0;
}

void mt_pipeline_skip(struct mt_pipeline *p)
{
	mt_pressure_stop(p->pressure);
	if (p->config.probes)
		(void)mt_probes_drain(p->config.probes, ignore, ignore, NULL);
	mt_merge_skip(p->merge);
}

void mt_pipeline_counts(const struct mt_pipeline *p, struct mt_pipeline_counts *ret)
{
	const struct mt_control *control = p->config.segments->control;

	*ret = (struct mt_pipeline_counts){
		.events = mt_encode_events(p->config.encode),
		.lost_events = p->lost_events + control->lost_events,
		.stray_cells = p->stray_cells,
		.damaged_rings = mt_merge_damaged(p->merge),
		.missing_modules = mt_modules_missing(p->modules),
		.not_tracked = p->not_tracked,
		.kept_stacks = p->keep ? mt_keep_count(p->keep) : 0,
		.live_processes = mt_processes_live(p->processes),
		.episodes = mt_pressure_episodes(p->pressure),
		.most_paused = mt_pressure_most_paused(p->pressure),
	};
	mt_stacks_counts(p->stacks, &ret->stacks);
	for (uint32_t i = 0; i < slots_given(p); i++)
		ret->abandoned_records += p->assemblers[i].abandoned;
}
