/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * processes.c - see processes.h for the contract
 *
 * Invariants
 *   - numbers has every process that the run has seen, by number; of one that ended long ago
 *     only its id.
 *   - Ids are given when a record is put, so that they count up in the artifact.
 *   - A process is put before its threads, a thread before its events, and a process's end
 *     after all of its events: an end waits until the merge has passed its time.
 *   - What the kernel tells of an exit waits for the same: a process of which only its own
 *     cells tell, a fork's child, is known when they are merged.
 *   - The clock of another time namespace is known from two looks at two clocks, between which
 *     time passed: its events may seem later than they were, by less than CLOCK_SLACK_NS.
 *   - A process that is foreign ends when no thread of it has a slot, and none of that number
 *     is in its PID namespace: a thread that has not allocated yet has no slot.
 *   - A fork's child that speaks when its parent has ended has the parent's modules: those
 *     that ended last are kept.
 */
#include "collector/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/clock.h"
#include "collector/inside.h"
#include "collector/proc_state.h"

#define NAME_BYTES 17
#define BLOCK_NUMBERS 4096u
#define BLOCKS 4096u
/* More than can have a slot at a time. */
#define LIVING_MAX (2 * MT_SLOTS)
#define EXITS_MAX 8192u
#define CLOCK_SLACK_NS (2000 * 1000 * 1000ULL)
/* So many untracked programs may be between a process and the one that it has for a parent. */
#define BETWEEN_MAX 16

struct process {
	struct process *next; /* in the list of the living, or of those that are kept */
	uint32_t number;
	uint32_t id;
	uint32_t parent; /* id */
	uint32_t above;	 /* number of the parent of a new image, until that is put; 0: none */
	uint32_t tgid;
	uint32_t how;
	int status;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t born;	/* mt_proc_start(), the same after an exec; 0: not known */
	uint64_t sweep; /* the last one that found a thread of it */
	bool put, ending, ended;
	bool other_clock;	/* its times are about ours */
	bool inside;		/* in a PID namespace below ours */
	bool kernel_tgid;	/* tgid is ours, wherever the process is */
	bool foreign;		/* tgid is one of there: means nothing here */
	uint64_t pid_namespace; /* inside: whose tgid it is; 0: not known */
	uint32_t outer_tgid;	/* of a foreign one: what it is here; 0: not known */
	struct mt_space space;
	struct mt_space listing; /* of its modules, until it is complete */
	char *exe;
};

struct number {
	struct process *process; /* NULL: not seen, or of the past */
	uint32_t id;		 /* once it has ended */
};

/* The thread that has a slot now. */
struct holder {
	uint32_t number; /* 0: none */
	uint32_t id;
	uint32_t tid;
	uint64_t start_ns;
	bool put;
	char name[NAME_BYTES];
};

/* An exit that waits for the merge to come to its time. */
struct exit {
	uint64_t time_ns;
	uint32_t tgid, tid;
	int status;
	bool group_dead;
	char name[NAME_BYTES];
};

struct mt_processes {
	struct mt_encode *encode;
	struct mt_modules *modules;
	struct number *numbers[BLOCKS];
	struct process *living;
	struct process *kept, **kept_last; /* those that ended, the first of them first */
	uint32_t n_kept;
	struct holder *holders; /* MT_SLOTS of them */
	struct exit *exits;	/* EXITS_MAX of them, a ring */
	uint32_t first_exit, n_exits;
	uint32_t n_processes, n_threads, n_living;
	uint32_t slots_used; /* slots from here on never had a holder */
	uint64_t sweeps;
};

int mt_processes_new(struct mt_encode *encode, struct mt_modules *modules,
		     struct mt_processes **ret)
{
	mt_cleanup(mt_processes_freep) struct mt_processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->encode = encode;
	p->modules = modules;
	p->kept_last = &p->kept;
	p->holders = calloc(MT_SLOTS, sizeof(*p->holders));
	p->exits = calloc(EXITS_MAX, sizeof(*p->exits));
	if (!p->holders || !p->exits)
		return -ENOMEM;
	*ret = mt_take_ptr(p);
	return 0;
}

static void free_process(struct process *process)
{
	mt_space_done(&process->space);
	mt_space_done(&process->listing);
	free(process->exe);
	free(process);
}

void mt_processes_free(struct mt_processes *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		for (uint32_t n = 0; p->numbers[i] && n < BLOCK_NUMBERS; n++)
			if (p->numbers[i][n].process)
				free_process(p->numbers[i][n].process);
		free(p->numbers[i]);
	}
	free(p->exits);
	free(p->holders);
	free(p);
}

/* The thread's name as the kernel has it; "" where that can not be read. */
static void read_name(char *ret, size_t room, uint32_t tgid, uint32_t tid)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", tgid, tid);
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
		if (q->tgid == tgid && !q->ending && !q->foreign)
			return q;
	return NULL;
}

bool mt_processes_tracked(const struct mt_processes *p, uint32_t tgid, uint64_t since_ns)
{
	const struct process *process = by_tgid(p, tgid);

	return process && process->start_ns >= since_ns;
}

bool mt_processes_holds(const struct mt_processes *p, uint32_t tgid)
{
	const struct process *process = by_tgid(p, tgid);

	return process && process->sweep == p->sweeps;
}

void mt_processes_each(const struct mt_processes *p, void (*fn)(void *ctx, uint32_t tgid),
		       void *ctx)
{
	for (const struct process *q = p->living; q; q = q->next)
		if (!q->ending && !q->foreign && q->tgid)
			fn(ctx, q->tgid);
}

uint32_t mt_processes_live(const struct mt_processes *p)
{
	uint32_t n = 0;

	for (const struct process *q = p->living; q; q = q->next)
		n += !q->ending;
	return n;
}

/* The process of that number; NULL if there is none, or none any more. */
static struct process *find(const struct mt_processes *p, uint64_t number)
{
	if (number >= (uint64_t)BLOCKS * BLOCK_NUMBERS || !p->numbers[number / BLOCK_NUMBERS])
		return NULL;
	return p->numbers[number / BLOCK_NUMBERS][number % BLOCK_NUMBERS].process;
}

static int find_entry(struct mt_processes *p, uint64_t number, struct number **ret)
{
	struct number **block;

	if (!number || number >= (uint64_t)BLOCKS * BLOCK_NUMBERS)
		return -EBADMSG;
	block = &p->numbers[number / BLOCK_NUMBERS];
	if (!*block) {
		*block = calloc(BLOCK_NUMBERS, sizeof(**block));
		if (!*block)
			return -ENOMEM;
	}
	*ret = &(*block)[number % BLOCK_NUMBERS];
	return 0;
}

static int make(struct mt_processes *p, uint64_t number, struct number *entry)
{
	struct process *process;

	if (p->n_living >= LIVING_MAX)
		return -EBADMSG;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	mt_space_init(&process->space);
	mt_space_init(&process->listing);
	process->number = (uint32_t)number;
	process->status = -1;
	process->how = MT_PROCESS_START;
	process->next = p->living;
	p->living = process;
	p->n_living++;
	entry->process = process;
	return 0;
}

/* The process of that number, made if there was none; -ENOENT: it is of the past. */
static int get(struct mt_processes *p, uint64_t number, struct process **ret)
{
	struct number *entry;
	int r = find_entry(p, number, &entry);

	if (r == 0 && !entry->process && !entry->id)
		r = make(p, number, entry);
	if (r < 0)
		return r;
	if (!entry->process || entry->process->ended)
		return -ENOENT;
	*ret = entry->process;
	return 0;
}

/* How much later than it was a time of the process may seem. */
static uint64_t slack_ns(const struct process *process)
{
	return process->other_clock ? CLOCK_SLACK_NS : 0;
}

static void end_at(struct process *process, uint64_t time_ns, int status)
{
	if (process->ending)
		return;
	process->ending = true;
	process->end_ns = time_ns;
	process->status = status;
}

/* Who has executed the image: the one before it, if that is of the same process, or else a child
 * of the nearest tracked one above.  Its number; 0: nobody. */
static uint32_t find_above(const struct mt_processes *p, const struct process *before,
			   uint32_t tgid, uint64_t born)
{
	const struct process *above = NULL;

	if (before && (!before->born || before->born == born))
		return before->number;
	for (int i = 0; p->living && !above && tgid && i < BETWEEN_MAX; i++) {
		tgid = mt_proc_parent(tgid);
		above = tgid ? by_tgid(p, tgid) : NULL;
	}
	return above ? above->number : 0;
}

int mt_processes_arrive(struct mt_processes *p, const struct mt_arrival *arrival)
{
	struct process *process = by_tgid(p, arrival->tgid);
	uint64_t born = mt_proc_start(arrival->tgid);
	uint32_t above = find_above(p, process, arrival->tgid, born);
	struct number *entry;
	int r = find_entry(p, arrival->process_id, &entry);

	if (r == 0 && (entry->process || entry->id))
		r = -EBADMSG;
	if (r == 0)
		r = make(p, arrival->process_id, entry);
	if (r < 0)
		return r;
	if (process)
		end_at(process, arrival->time_ns, -1);
	process = entry->process;
	process->tgid = arrival->tgid;
	process->kernel_tgid = true;
	process->inside = arrival->tgid != arrival->inner_tgid;
	if (process->inside)
		process->pid_namespace = mt_proc_namespace(process->tgid, "pid");
	process->other_clock = arrival->other_clock;
	process->start_ns = arrival->time_ns;
	process->born = born;
	process->above = above;
	process->exe = strdup(arrival->exe);
	return process->exe ? 0 : -ENOMEM;
}

/* What the process is called here; 0: not known. */
static uint32_t tgid_here(const struct process *process)
{
	return process->foreign ? process->outer_tgid : process->tgid;
}

static int put_alone(struct mt_processes *p, struct process *process)
{
	uint32_t here = tgid_here(process);
	char name[NAME_BYTES];
	struct mt_process record = {
		.id = p->n_processes + 1,
		.parent = process->parent,
		.tgid = here ? here : process->tgid,
		.how = process->how,
		.start_ns = process->start_ns,
		.exe = process->exe ? process->exe : "",
		.name = name,
	};
	const char *slash = strrchr(record.exe, '/');

	process->put = true;
	process->id = ++p->n_processes;
	name[0] = '\0';
	if (here)
		read_name(name, sizeof(name), here, here);
	if (!name[0]) /* gone already: what the kernel would have called it */
		snprintf(name, sizeof(name), "%.15s", slash ? slash + 1 : record.exe);
	return mt_encode_put(p->encode, MT_BATCH_PROCESS, &record);
}

/* What has to be put before the process: its parent, if that is not; NULL: nothing has. */
static struct process *find_first(struct mt_processes *p, struct process *process)
{
	struct number *entry;

	if (!process->above || find_entry(p, process->above, &entry) < 0)
		return NULL;
	if (entry->process && !entry->process->put && !entry->process->ended)
		return entry->process;
	process->parent = entry->process ? entry->process->id : entry->id;
	return NULL;
}

/* Its parents come before it, whose numbers are those of processes that were there before. */
static int put_process(struct mt_processes *p, struct process *process)
{
	struct process *first, *next;
	int r = 0;

	while (r == 0 && !process->put) {
		for (first = process; (next = find_first(p, first));)
			first = next;
		r = put_alone(p, first);
	}
	return r;
}

static int put_thread(struct mt_processes *p, const struct process *process,
		      const struct holder *holder)
{
	struct mt_thread_info record = {
		.id = holder->id,
		.process = process->id,
		.tid = holder->tid,
		.start_ns = holder->start_ns,
		.name = holder->name,
	};

	return mt_encode_put(p->encode, MT_BATCH_THREAD, &record);
}

/* A thread's number, and its name, as they are here; it is known by another one. */
static void look_inside(const struct process *process, struct holder *holder)
{
	uint32_t tid = mt_inside_thread(process->outer_tgid, holder->tid);

	if (!tid)
		return;
	holder->tid = tid;
	read_name(holder->name, sizeof(holder->name), process->outer_tgid, tid);
}

static int put_holder(struct mt_processes *p, struct process *process, struct holder *holder)
{
	int r;

	if (holder->put)
		return 0;
	r = put_process(p, process);
	if (r < 0)
		return r;
	if (process->foreign)
		look_inside(process, holder);
	holder->put = true;
	holder->id = ++p->n_threads;
	return put_thread(p, process, holder);
}

/*
 * A fork's child may be heard of after the image that it executed shook hands.  Of another
 * one with that tgid, as the kernel counts, the end was missed.
 */
static void set_tgid(struct mt_processes *p, struct process *process, uint32_t tgid,
		     bool kernel_tgid)
{
	struct process *other = by_tgid(p, tgid);

	process->tgid = tgid;
	process->kernel_tgid = kernel_tgid;
	if (!other)
		return;
	if (other->start_ns >= process->start_ns)
		end_at(process, other->start_ns, -1);
	else if (kernel_tgid)
		end_at(other, process->start_ns, -1);
}

int mt_processes_thread(struct mt_processes *p, uint32_t slot, const struct mt_cell *cell)
{
	struct holder *holder = &p->holders[slot];
	struct process *process;
	int r;

	*holder = (struct holder){ 0 };
	r = get(p, cell->w[1], &process);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (slot >= p->slots_used)
		p->slots_used = slot + 1;
	*holder = (struct holder){
		.number = process->number,
		.tid = (uint32_t)(cell->w[2] >> 32),
		.start_ns = cell->w[0],
	};
	if (!process->start_ns)
		process->start_ns = holder->start_ns;
	if (!process->tgid)
		set_tgid(p, process, (uint32_t)cell->w[2],
			 MT_CELL_KIND(cell->head) == MT_CAPTURE_EBPF);
	if (!process->foreign)
		read_name(holder->name, sizeof(holder->name), process->tgid, holder->tid);
	return process->put ? put_holder(p, process, holder) : 0;
}

/* A fork's child is in the PID namespace that its parent was in, or is the first of another. */
static void set_namespace(struct process *child, const struct process *parent)
{
	bool first = child->tgid == 1 && !child->kernel_tgid;

	child->inside = parent->inside || first;
	child->foreign = child->inside && !child->kernel_tgid;
	/* Whoever has the number here has nothing to do with it (set_tgid()). */
	if (child->foreign)
		child->ending = false;
	child->pid_namespace = parent->pid_namespace;
	if (first)
		child->pid_namespace = mt_proc_namespace(tgid_here(parent), "pid_for_children");
	if (child->foreign)
		child->outer_tgid = mt_inside_child(tgid_here(parent), child->tgid);
}

/* A fork's child has what its parent had. */
static int inherit(struct mt_processes *p, struct process *child, uint64_t parent_number)
{
	struct process *parent = find(p, parent_number);
	int r;

	child->how = MT_PROCESS_FORK;
	if (!parent || parent == child)
		return 0;
	r = put_process(p, parent);
	if (r < 0)
		return r;
	child->parent = parent->id;
	child->other_clock = parent->other_clock;
	set_namespace(child, parent);
	if (parent->exe && !child->exe) {
		child->exe = strdup(parent->exe);
		if (!child->exe)
			return -ENOMEM;
	}
	return mt_space_copy(&child->space, &parent->space);
}

int mt_processes_process(struct mt_processes *p, uint32_t slot, const struct mt_cell *cell)
{
	struct holder *holder = &p->holders[slot];
	struct process *process;
	int r = get(p, cell->w[1], &process);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (process->put)
		return 0; /* said twice */
	if (MT_CELL_KIND(cell->head) == MT_PROCESS_FORK) {
		r = inherit(p, process, cell->w[2]);
		if (r < 0)
			return r;
		/* It was that of whoever has the number here. */
		if (process->foreign && holder->number == process->number)
			holder->name[0] = '\0';
	}
	r = put_process(p, process);
	if (r < 0 || holder->number != process->number)
		return r;
	return put_holder(p, process, holder);
}

/* The process whose thread has the slot; NULL if it has ended. */
static struct process *holding(const struct mt_processes *p, uint32_t slot)
{
	struct process *process = find(p, p->holders[slot].number);

	return process && !process->ended ? process : NULL;
}

int mt_processes_module(struct mt_processes *p, uint32_t slot, const void *record, size_t len)
{
	struct process *process = holding(p, slot);

	if (!process)
		return 0;
	return mt_modules_apply(p->modules, &process->space, &process->listing, tgid_here(process),
				record, len);
}

uint32_t mt_processes_tgid(const struct mt_processes *p, uint32_t slot)
{
	const struct process *process = holding(p, slot);

	return process ? process->tgid : 0;
}

int mt_processes_owner(struct mt_processes *p, uint32_t slot, struct mt_cell_owner *ret)
{
	struct process *process = holding(p, slot);
	int r;

	if (!process)
		return -ENOENT;
	r = put_holder(p, process, &p->holders[slot]);
	if (r < 0)
		return r;
	*ret = (struct mt_cell_owner){
		.thread = p->holders[slot].id,
		.space = &process->space,
		.tgid = process->tgid,
	};
	return 0;
}

static int rename_holder(struct mt_processes *p, const struct process *process,
			 struct holder *holder, const char *name)
{
	if (!name[0] || !strncmp(holder->name, name, sizeof(holder->name) - 1))
		return 0;
	snprintf(holder->name, sizeof(holder->name), "%s", name);
	return holder->put ? put_thread(p, process, holder) : 0;
}

/* Who had the tgid at that time; the image that began last, of those that did. */
static struct process *find_at(const struct mt_processes *p, uint32_t tgid, uint64_t time_ns)
{
	struct process *found = NULL;

	for (struct process *q = p->living; q; q = q->next)
		if (q->tgid == tgid && !q->foreign && q->start_ns <= time_ns + slack_ns(q) &&
		    (!found || q->start_ns >= found->start_ns))
			found = q;
	return found;
}

static int apply_exit(struct mt_processes *p, const struct exit *what)
{
	struct process *process = find_at(p, what->tgid, what->time_ns);

	if (!process)
		return 0;
	if (what->group_dead) {
		/* Better than what the next one with the tgid had to tell. */
		if (process->status == -1 && process->end_ns >= what->time_ns)
			process->ending = false;
		end_at(process, what->time_ns, what->status);
	}
	for (uint32_t slot = 0; slot < p->slots_used; slot++) {
		struct holder *holder = &p->holders[slot];

		if (holder->number == process->number && holder->tid == what->tid)
			return rename_holder(p, process, holder, what->name);
	}
	return 0;
}

static int apply_first_exit(struct mt_processes *p)
{
	const struct exit *what = &p->exits[p->first_exit];

	p->first_exit = (p->first_exit + 1) % EXITS_MAX;
	p->n_exits--;
	return apply_exit(p, what);
}

int mt_processes_exit(struct mt_processes *p, uint32_t tgid, uint32_t tid, bool group_dead,
		      int status, uint64_t time_ns, const char *name)
{
	struct exit *what;
	int r = 0;

	if (p->n_exits == EXITS_MAX)
		r = apply_first_exit(p);
	what = &p->exits[(p->first_exit + p->n_exits++) % EXITS_MAX];
	*what = (struct exit){
		.time_ns = time_ns,
		.tgid = tgid,
		.tid = tid,
		.status = status,
		.group_dead = group_dead,
	};
	snprintf(what->name, sizeof(what->name), "%s", name);
	return r;
}

/* Of the processes that ended, the first is forgotten, but for its id. */
static void forget_first(struct mt_processes *p)
{
	struct process *first = p->kept;
	struct number *entry;

	p->kept = first->next;
	if (!p->kept)
		p->kept_last = &p->kept;
	p->n_kept--;
	entry = &p->numbers[first->number / BLOCK_NUMBERS][first->number % BLOCK_NUMBERS];
	*entry = (struct number){ .id = first->id };
	free_process(first);
}

/* The process is in no list when it comes here. */
static int put_end(struct mt_processes *p, struct process *process)
{
	struct mt_process_end record;
	int r = put_process(p, process);

	process->ended = true;
	process->next = NULL;
	*p->kept_last = process;
	p->kept_last = &process->next;
	if (++p->n_kept > MT_PROCESSES_KEPT)
		forget_first(p);
	if (r < 0)
		return r;
	record = (struct mt_process_end){
		.id = process->id,
		.end_ns = process->end_ns,
		.status = process->status,
	};
	return mt_encode_put(p->encode, MT_BATCH_PROCESS_END, &record);
}

int mt_processes_advance(struct mt_processes *p, uint64_t below_ns)
{
	struct process **at = &p->living;
	int r = 0;

	while (r == 0 && p->n_exits && p->exits[p->first_exit].time_ns < below_ns)
		r = apply_first_exit(p);
	while (r == 0 && *at) {
		struct process *process = *at;

		if (!process->ending || process->end_ns + slack_ns(process) >= below_ns) {
			at = &process->next;
			continue;
		}
		*at = process->next;
		p->n_living--;
		r = put_end(p, process);
	}
	return r;
}

/* Foreign, and without a thread that has a slot: does it live? */
static bool in_doubt(const struct mt_processes *p, const struct process *process)
{
	return process->foreign && process->sweep != p->sweeps && !process->ending &&
	       process->pid_namespace && !process->outer_tgid;
}

/* What those that are in doubt are called here. */
static void find_foreign(struct mt_processes *p)
{
	mt_cleanup(mt_proc_closep) DIR *proc = opendir("/proc");
	uint32_t tgid;

	while ((tgid = mt_proc_next(proc))) {
		uint64_t pid_namespace = mt_proc_namespace(tgid, "pid");
		uint32_t inner_tgid = 0;

		for (struct process *q = p->living; q && pid_namespace; q = q->next) {
			if (!in_doubt(p, q) || q->pid_namespace != pid_namespace)
				continue;
			if (!inner_tgid)
				inner_tgid = mt_proc_inner_tgid(tgid);
			if (q->tgid == inner_tgid)
				q->outer_tgid = tgid;
		}
	}
}

int mt_processes_sweep(struct mt_processes *p, const struct mt_segments *segments)
{
	uint32_t n_in_doubt = 0;
	char name[NAME_BYTES];
	int r = 0;

	p->sweeps++;
	for (uint32_t slot = 0; slot < p->slots_used && r == 0; slot++) {
		struct process *process = holding(p, slot);

		if (!process || process->ending || !mt_segments_slot_held(segments, slot))
			continue;
		process->sweep = p->sweeps;
		if (process->foreign)
			continue;
		read_name(name, sizeof(name), process->tgid, p->holders[slot].tid);
		r = rename_holder(p, process, &p->holders[slot], name);
	}
	for (const struct process *q = p->living; q; q = q->next)
		n_in_doubt += in_doubt(p, q);
	if (n_in_doubt)
		find_foreign(p);
	/* A thread that holds a slot is alive, whatever number its process has here.  The clock is
	 * read when that is known: all that a process did is before its end. */
	for (struct process *q = p->living; q; q = q->next)
		if (q->tgid && q->sweep != p->sweeps && !mt_proc_lives(tgid_here(q)))
			end_at(q, mt_clock_ns(), -1);
	return r;
}
