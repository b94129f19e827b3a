/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * life.bpf.c - the run's processes: forks are followed, exec and exit told of
 *
 * Which processes are those?  The one that the collector entered in "members" before it let
 * it exec, and whatever a member forks: the kernel calls process_fork before the child can
 * run, so that no descendant escapes, whatever it does to its environment, user or
 * namespaces.  Threads are not entered: they have their process's tgid.
 *
 * Invariants
 *   - A member is removed by the thread that finds no other alive.  Where two last threads
 *     exit at once, both may find that; the later of the two may then not be a member any
 *     more, and its record is missing: the process's end is told once at least.
 *   - A record is whole on the ring or counted in lost_lives; a process that could not be
 *     entered is counted in lost_members.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/maps.bpf.h"
#include "bpf/peak.bpf.h"
#include "bpf/pressure.bpf.h"
#include "wire/life.h"

static __always_inline int is_member(__u32 tgid)
{
	return bpf_map_lookup_elem(&members, &tgid) != NULL;
}

static __always_inline void count_loss(int of_member)
{
	struct mt_control *shared = control_page();

	if (!shared)
		return;
	__sync_fetch_and_add(of_member ? &shared->lost_members : &shared->lost_lives, 1);
}

static __always_inline void set_head(struct mt_life_head *head, __u32 type, __u32 len,
				     const struct task_struct *task)
{
	head->len = len;
	head->type = type;
	head->time_ns = bpf_ktime_get_ns();
	head->tgid = task->tgid;
	head->tid = task->pid;
}

static __always_inline void note_life(void)
{
	struct mt_control *shared = control_page();

	if (shared)
		note_peak(&life, &shared->life_peak_bytes);
}

/* Room for a record of so many bytes, which the compiler knows; NULL: counted. */
static __always_inline void *reserve(__u64 bytes)
{
	void *record = bpf_ringbuf_reserve(&life, bytes, 0);

	if (!record) {
		latch_ring(MT_LATCH_LIFE, 0);
		count_loss(0);
	}
	return record;
}

/* The kernel can not wait here, but those who are about to fork can, at their next event.  A
 * collector that rests is woken: what a process has executed is to be looked at while it lives. */
static __always_inline void submit(void *record)
{
	bpf_ringbuf_submit(record, 0);
	note_life();
	if (bpf_ringbuf_query(&life, BPF_RB_AVAIL_DATA) >= life_watermark_bytes)
		latch_ring(MT_LATCH_LIFE, 0);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = child->tgid, one = 1;

	if (tgid == (__u32)parent->tgid || !is_member(parent->tgid))
		return 0;
	if (bpf_map_update_elem(&members, &tgid, &one, BPF_ANY))
		count_loss(1);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task, int old_tid, struct linux_binprm *binprm)
{
	struct mt_life_exec *record;

	if (!is_member(task->tgid))
		return 0;
	record = reserve(sizeof(*record));
	if (!record)
		return 0;
	__builtin_memset(record, 0, sizeof(*record));
	set_head(&record->head, MT_LIFE_EXEC, sizeof(*record), task);
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	/* What can not be read stays empty. */
	bpf_probe_read_kernel_str(record->filename, sizeof(record->filename), binprm->filename);
	submit(record);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	struct mt_life_exit *record;
	__u32 tgid = task->tgid;
	int dead = BPF_CORE_READ(task, signal, live.counter) == 0;

	if (!is_member(tgid))
		return 0;
	if (dead)
		bpf_map_delete_elem(&members, &tgid);

	record = reserve(sizeof(*record));
	if (!record)
		return 0;
	set_head(&record->head, MT_LIFE_EXIT, sizeof(*record), task);
	record->exit_code = task->exit_code;
	record->group_dead = dead;
	__builtin_memset(record->comm, 0, sizeof(record->comm));
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	submit(record);
	return 0;
}
