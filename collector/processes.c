/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * processes.c - see processes.h for the contract
 *
 * Invariants
 *   - numbers[] holds every process that the run has seen, by number; a process that
 *     ended in the artifact has given back its space and its strings.
 *   - Ids are given when a record is put, so that they count up in the artifact.
 *   - A process is put before its threads, a thread before its events, and a process's end
 *     after all of its events: an end waits until the merge has passed its time.
 *   - At most one live process has a given tgid.
 */
#include "collector/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define NAME_BYTES 17
/* A number above this is not one that a run can have come to. */
#define NUMBERS_MAX (16u * 1024 * 1024)

struct process {
	struct process *next; /* in the list of the living */
	uint32_t id;
	uint32_t parent; /* id */
	uint32_t tgid;
	uint32_t how;
	int64_t clock_offset_ns;
	uint64_t start_ns;
	uint64_t end_ns;
	int status;
	bool put, ending, ended;
	struct mt_space space;
	char *exe;
};

/* The thread that has a slot now. */
struct holder {
	struct process *process;
	uint32_t id;
	uint32_t tid;
	uint64_t start_ns;
	bool put;
	char name[NAME_BYTES];
};

struct mt_processes {
	struct mt_encode *encode;
	struct mt_modules *modules;
	struct process **numbers;
	uint32_t n_numbers;
	struct process *living;
	struct holder *holders; /* MT_SLOTS of them */
	uint32_t n_processes, n_threads, n_living;
	uint32_t slots_used; /* slots from here on never had a holder */
};

int mt_processes_new(struct mt_encode *encode, struct mt_modules *modules,
		     struct mt_processes **ret)
{
	mt_cleanup(mt_processes_freep) struct mt_processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->encode = encode;
	p->modules = modules;
	p->holders = calloc(MT_SLOTS, sizeof(*p->holders));
	if (!p->holders)
		return -ENOMEM;
	*ret = mt_take_ptr(p);
	return 0;
}

static void release(struct process *process)
{
	mt_space_done(&process->space);
	mt_space_init(&process->space);
	free(process->exe);
	process->exe = NULL;
}

void mt_processes_free(struct mt_processes *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n_numbers; i++) {
		if (p->numbers[i])
			release(p->numbers[i]);
		free(p->numbers[i]);
	}
	free(p->numbers);
	free(p->holders);
	free(p);
}

/* What /proc/TGID/FILE holds, without its newline; "" where that can not be read. */
static void read_proc(char *ret, size_t room, const char *format, uint32_t tgid, uint32_t tid)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", tgid, tid, format);
	ret[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, ret, room - 1);
	close(fd);
	if (len < 0)
		len = 0;
	ret[len] = '\0';
	if (len && ret[len - 1] == '\n')
		ret[len - 1] = '\0';
}

static struct process *by_tgid(const struct mt_processes *p, uint32_t tgid)
{
	for (struct process *q = p->living; q; q = q->next)
		if (q->tgid == tgid && !q->ending)
			return q;
	return NULL;
}

bool mt_processes_tracked(const struct mt_processes *p, uint32_t tgid, uint64_t since_ns)
{
	const struct process *process = by_tgid(p, tgid);

	return process && process->start_ns >= since_ns;
}

uint32_t mt_processes_live(const struct mt_processes *p)
{
	uint32_t n = 0;

	for (const struct process *q = p->living; q; q = q->next)
		n += !q->ending;
	return n;
}

static int grow_numbers(struct mt_processes *p, uint64_t number)
{
	uint32_t n = p->n_numbers ? p->n_numbers : 64;
	struct process **numbers;

	if (number < p->n_numbers)
		return 0;
	if (!number || number >= NUMBERS_MAX)
		return -EBADMSG;
	while (n <= number)
		n *= 2;
	numbers = realloc(p->numbers, n * sizeof(struct process *));
	if (!numbers)
		return -ENOMEM;
	memset(numbers + p->n_numbers, 0, (n - p->n_numbers) * sizeof(struct process *));
	p->numbers = numbers;
	p->n_numbers = n;
	return 0;
}

/* The process of that number, made if there is none. */
static int get(struct mt_processes *p, uint64_t number, struct process **ret)
{
	struct process *process;
	int r = grow_numbers(p, number);

	if (r < 0)
		return r;
	if (!p->numbers[number]) {
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		mt_space_init(&process->space);
		process->status = -1;
		process->how = MT_PROCESS_START;
		process->next = p->living;
		p->living = process;
		p->numbers[number] = process;
	}
	*ret = p->numbers[number];
	return 0;
}

static void end_at(struct process *process, uint64_t time_ns, int status)
{
	if (process->ending)
		return;
	process->ending = true;
	process->end_ns = time_ns;
	process->status = status;
}

int mt_processes_arrive(struct mt_processes *p, const struct mt_arrival *arrival)
{
	struct process *process = by_tgid(p, arrival->tgid);
	int r;

	if (process)
		end_at(process, arrival->time_ns, -1);
	r = get(p, arrival->process_id, &process);
	if (r < 0)
		return r;
	process->tgid = arrival->tgid;
	process->clock_offset_ns = arrival->clock_offset_ns;
	process->start_ns = arrival->time_ns;
	process->exe = strdup(arrival->exe);
	return process->exe ? 0 : -ENOMEM;
}

static int put_process(struct mt_processes *p, struct process *process)
{
	char name[NAME_BYTES];
	struct mt_process record = {
		.id = p->n_processes + 1,
		.parent = process->parent,
		.tgid = process->tgid,
		.how = process->how,
		.start_ns = process->start_ns,
		.exe = process->exe ? process->exe : "",
		.name = name,
	};
	const char *slash = strrchr(record.exe, '/');

	if (process->put)
		return 0;
	process->put = true;
	process->id = ++p->n_processes;
	read_proc(name, sizeof(name), "comm", process->tgid, process->tgid);
	if (!name[0]) /* gone already: what the kernel would have called it */
		snprintf(name, sizeof(name), "%.15s", slash ? slash + 1 : record.exe);
	return mt_encode_put(p->encode, MT_BATCH_PROCESS, &record);
}

static int put_thread(struct mt_processes *p, const struct holder *holder)
{
	struct mt_thread_info record = {
		.id = holder->id,
		.process = holder->process->id,
		.tid = holder->tid,
		.start_ns = holder->start_ns,
		.name = holder->name,
	};

	return mt_encode_put(p->encode, MT_BATCH_THREAD, &record);
}

static int put_holder(struct mt_processes *p, struct holder *holder)
{
	int r;

	if (holder->put)
		return 0;
	r = put_process(p, holder->process);
	if (r < 0)
		return r;
	holder->put = true;
	holder->id = ++p->n_threads;
	return put_thread(p, holder);
}

/* A fork's child may be heard of after the image that it executed shook hands. */
static void set_tgid(struct mt_processes *p, struct process *process, uint32_t tgid)
{
	const struct process *image = by_tgid(p, tgid);

	process->tgid = tgid;
	if (image && image->start_ns >= process->start_ns)
		end_at(process, image->start_ns, -1);
}

int mt_processes_thread(struct mt_processes *p, uint32_t slot, const struct mt_cell *cell)
{
	struct holder *holder = &p->holders[slot];
	struct process *process;
	int r = get(p, cell->w[1], &process);

	if (r < 0)
		return r;
	if (slot >= p->slots_used)
		p->slots_used = slot + 1;
	*holder = (struct holder){
		.process = process,
		.tid = (uint32_t)(cell->w[2] >> 32),
		.start_ns = cell->w[0] + (uint64_t)process->clock_offset_ns,
	};
	if (!process->start_ns)
		process->start_ns = holder->start_ns;
	if (!process->tgid)
		set_tgid(p, process, (uint32_t)cell->w[2]);
	read_proc(holder->name, sizeof(holder->name), "comm", process->tgid, holder->tid);
	return process->put ? put_holder(p, holder) : 0;
}

/* A fork's child has what its parent had. */
static int inherit(struct mt_processes *p, struct process *child, uint64_t parent_number)
{
	struct process *parent = parent_number < p->n_numbers ? p->numbers[parent_number] : NULL;
	int r;

	child->how = MT_PROCESS_FORK;
	if (!parent || parent == child)
		return 0;
	r = put_process(p, parent);
	if (r < 0)
		return r;
	child->parent = parent->id;
	child->clock_offset_ns = parent->clock_offset_ns;
	if (parent->exe && !child->exe)
		child->exe = strdup(parent->exe);
	return mt_space_copy(&child->space, &parent->space);
}

int mt_processes_process(struct mt_processes *p, uint32_t slot, const struct mt_cell *cell)
{
	struct holder *holder = &p->holders[slot];
	struct process *process;
	int r = get(p, cell->w[1], &process);

	if (r < 0)
		return r;
	if (process->ended || process->put)
		return 0; /* said twice */
	if (MT_CELL_KIND(cell->head) == MT_PROCESS_FORK) {
		r = inherit(p, process, cell->w[2]);
		if (r < 0)
			return r;
	}
	r = put_process(p, process);
	if (r < 0 || holder->process != process)
		return r;
	return put_holder(p, holder);
}

int mt_processes_module(struct mt_processes *p, uint32_t slot, const void *record, size_t len)
{
	struct holder *holder = &p->holders[slot];

	if (!holder->process || holder->process->ended)
		return 0;
	return mt_modules_apply(p->modules, &holder->process->space, holder->process->tgid, record,
				len);
}

int64_t mt_processes_clock_offset(const struct mt_processes *p, uint32_t slot)
{
	return p->holders[slot].process ? p->holders[slot].process->clock_offset_ns : 0;
}

int mt_processes_owner(struct mt_processes *p, uint32_t slot, struct mt_cell_owner *ret)
{
	struct holder *holder = &p->holders[slot];
	int r;

	if (!holder->process || holder->process->ended)
		return -ENOENT;
	r = put_holder(p, holder);
	if (r < 0)
		return r;
	*ret = (struct mt_cell_owner){
		.thread = holder->id,
		.space = &holder->process->space,
		.clock_offset_ns = holder->process->clock_offset_ns,
		.tgid = holder->process->tgid,
	};
	return 0;
}

static int rename_holder(struct mt_processes *p, struct holder *holder, const char *name)
{
	if (!name[0] || !strncmp(holder->name, name, sizeof(holder->name) - 1))
		return 0;
	snprintf(holder->name, sizeof(holder->name), "%s", name);
	return holder->put ? put_thread(p, holder) : 0;
}

int mt_processes_exit(struct mt_processes *p, uint32_t tgid, uint32_t tid, bool group_dead,
		      int status, uint64_t time_ns, const char *name)
{
	struct process *process = by_tgid(p, tgid);
	int r = 0;

	if (!process)
		return 0;
	for (uint32_t slot = 0; slot < p->slots_used && r == 0; slot++) {
		struct holder *holder = &p->holders[slot];

		if (holder->process == process && holder->tid == tid) {
			r = rename_holder(p, holder, name);
			break;
		}
	}
	if (group_dead)
		end_at(process, time_ns, status);
	return r;
}

static int put_end(struct mt_processes *p, struct process *process)
{
	struct mt_process_end record;
	int r;

	r = put_process(p, process);
	if (r < 0)
		return r;
	record = (struct mt_process_end){
		.id = process->id,
		.end_ns = process->end_ns,
		.status = process->status,
	};
	process->ended = true;
	release(process);
	return mt_encode_put(p->encode, MT_BATCH_PROCESS_END, &record);
}

int mt_processes_advance(struct mt_processes *p, uint64_t below_ns)
{
	struct process **at = &p->living;
	int r;

	while (*at) {
		struct process *process = *at;

		if (!process->ending || process->end_ns >= below_ns) {
			at = &process->next;
			continue;
		}
		*at = process->next;
		r = put_end(p, process);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whether the process is there and not a zombie. */
static bool alive(uint32_t tgid)
{
	char stat[256];
	const char *state;

	read_proc(stat, sizeof(stat), "stat", tgid, tgid);
	state = strrchr(stat, ')');
	return state && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
}

int mt_processes_sweep(struct mt_processes *p, const struct mt_segments *segments, uint64_t now_ns)
{
	char name[NAME_BYTES];
	int r = 0;

	for (struct process *q = p->living; q; q = q->next)
		if (q->tgid && !q->ending && !alive(q->tgid))
			end_at(q, now_ns, -1);
	for (uint32_t n = 0; n < p->slots_used && r == 0; n++) {
		struct holder *holder = &p->holders[n];

		if (!holder->process || holder->process->ending ||
		    !mt_segments_slot_held(segments, n))
			continue;
		read_proc(name, sizeof(name), "comm", holder->process->tgid, holder->tid);
		r = rename_holder(p, holder, name);
	}
	return r;
}
