/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capture.bpf.c - a probe of the shim becomes a stack record
 *
 * The question of each probe is: may this task move this slot's reference, and by what?
 * The registers (wire/reference.h) answer neither.  May it: the task has to know the run's
 * cookie, and has to be the thread that registered in the slot, or run on that thread's
 * memory while the thread is stopped for it.  By what: the words are read here, from the
 * window that the registers name, whose bounds are checked; digest and delta are computed
 * from that copy.  A task that lies about its window or its mask spoils its own stacks, and
 * the decoder sees that the digest does not fit.
 *
 * Invariants
 *   - The reference moves after its record is on the ring and not otherwise.
 *   - Each word of the stack is read once; words outside the window are not read.
 *   - Scratch, reference and owner of a slot are used between a compare-and-swap of
 *     mt_reference.busy from 0 and the store of 0, by one task.  Uprobe programs are
 *     preempted: nothing here is per CPU.
 *   - No frame has 64 bytes: Linux 6.13 and later give larger ones a private stack per CPU,
 *     with the same hazard.  So a global function for each step, state in the scratch.
 *   - Nothing here depends on the words of a stack but the arithmetic of stack_delta.h, and
 *     each loop is bounded by MT_GROUPS_MAX, a constant or a knob.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/maps.bpf.h"
#include "wire/stack_delta.h"

/* A vfork child of a vfork child of ...: as deep as anybody goes, and then one. */
#define VFORK_DEPTH 4

#if defined(__TARGET_ARCH_x86)
#define PROBE_COOKIE(regs) ((regs)->r9)
#define PROBE_HIGH_MASK(regs) ((regs)->r10)
#else
#error "this architecture's probe registers are not known"
#endif

/* Memory of fixed size, as the verifier has to know it of a global function's argument. */
struct group {
	__u64 words[MT_GROUP_WORDS];
};

struct live_group {
	__u64 words[2 * MT_GROUP_WORDS];
};

struct encoded_group {
	__u64 words[MT_SCRATCH_SLACK_WORDS];
};

static __always_inline struct mt_control *control_page(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline struct group *reference_group(struct mt_reference *reference, __u32 r)
{
	__u64 offset = (__u64)(r & (budget_bytes / MT_GROUP_BYTES - 1)) * MT_GROUP_BYTES;

	return (struct group *)((char *)reference + MT_WORDS_OFFSET + offset);
}

/* Where the next group's words go, or NULL: never, as long as the scratch is sound. */
static __always_inline struct encoded_group *out_at(struct mt_scratch *scratch, __u64 word)
{
	if (word > mt_scratch_out_words(budget_bytes))
		return NULL;
	return (struct encoded_group *)((char *)(scratch + 1) + word * 8);
}

/* Whether the running task is the slot's owner, or its vfork child. */
__noinline int is_owner(__u32 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct slot_owner *owner = bpf_map_lookup_elem(&owners, &slot);
	int i;

	if (!owner || !owner->tid)
		return 0;
	for (i = 0; i <= VFORK_DEPTH; i++) {
		struct task_struct *parent;

		if (owner->tid == (__u32)task->pid && owner->start_time_ns == task->start_time)
			return 1;
		/* vfork_done is set from before the child runs until it has exec'd or is
		 * gone, which is how long its parent waits.  It is also set by a
		 * CLONE_VFORK that shares no memory, hence mm. */
		parent = task->real_parent;
		if (!task->vfork_done || task->mm != parent->mm)
			return 0;
		task = parent;
	}
	return 0;
}

/* The registration probe: the slot is the running task's from here. */
__noinline int claim_slot(__u32 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct slot_owner *owner = bpf_map_lookup_elem(&owners, &slot);
	__u64 *entry;
	__u32 i;

	if (!reference || !owner)
		return MT_PROBE_REFUSED;
	owner->start_time_ns = task->start_time;
	owner->tid = task->pid;
	owner->tgid = task->tgid;
	reference->owner_tid = task->pid;
	reference->owner_tgid = task->tgid;

	entry = (__u64 *)((char *)reference + MT_DICTIONARY_OFFSET);
	MT_NO_UNROLL
	for (i = 0; i < MT_DICTIONARY; i += 8) {
		*(volatile __u64 *)&entry[i] = 0;
		*(volatile __u64 *)&entry[i + 1] = 0;
		*(volatile __u64 *)&entry[i + 2] = 0;
		*(volatile __u64 *)&entry[i + 3] = 0;
		*(volatile __u64 *)&entry[i + 4] = 0;
		*(volatile __u64 *)&entry[i + 5] = 0;
		*(volatile __u64 *)&entry[i + 6] = 0;
		*(volatile __u64 *)&entry[i + 7] = 0;
	}
	mt_reference_claim(reference);
	return MT_PROBE_REGISTERED;
}

__noinline __u64 encode_words(struct live_group *live, const struct group *kept, __u64 bits,
			      __u64 keep, struct encoded_group *out)
{
	if (!live || !kept || !out)
		return 0;
	return mt_group_encode(live->words, kept->words, bits, keep, out->words);
}

__noinline __u64 hash_words(const struct live_group *live)
{
	if (!live)
		return 0;
	return mt_group_hash(live->words);
}

__noinline __u64 commit_words(struct group *kept, __u64 bitmap, const struct encoded_group *out,
			      __u64 keep)
{
	if (!kept || !out)
		return 0;
	return mt_group_commit(kept->words, bitmap, out->words + 1, keep);
}

/* Reads and encodes group r of the window in the scratch, if the record touches it. */
__noinline int encode_group(__u32 slot, __u32 r)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u32 groups = budget_bytes / MT_GROUP_BYTES, range, lo, bytes;
	struct encoded_group *out;
	__u64 at, n;

	if (!reference || !scratch)
		return MT_PROBE_REFUSED;
	r &= groups - 1;
	if (!mt_scratch_plan_group(scratch, reference, r, groups))
		return 0;
	range = scratch->range[r];
	if (!range) {
		mt_scratch_account(scratch, reference, r, 0, 0);
		return 0;
	}
	lo = MT_RANGE_LO(range) & (MT_GROUP_WORDS - 1);
	bytes = (MT_RANGE_HI(range) - lo) * 8;
	if (bytes > MT_GROUP_BYTES)
		return MT_PROBE_REFUSED;
	at = mt_group_address(scratch->record.start, r, groups) + lo * 8;
	if (bpf_probe_read_user(&scratch->live[lo], bytes, (void *)at))
		return MT_PROBE_FAULT;

	out = out_at(scratch, scratch->n_out);
	if (!out)
		return MT_PROBE_REFUSED;
	n = encode_words((struct live_group *)scratch->live, reference_group(reference, r),
			 mt_range_bits(range), scratch->keep, out);
	mt_scratch_account(scratch, reference, r, n,
			   hash_words((struct live_group *)scratch->live));
	return 0;
}

/* Encodes the window that was begun in the scratch. */
__noinline int encode_window(__u32 slot)
{
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u32 groups = budget_bytes / MT_GROUP_BYTES, r;
	int status;

	if (!scratch)
		return MT_PROBE_REFUSED;
	MT_NO_UNROLL
	for (r = 0; r < groups && r < MT_GROUPS_MAX; r++) {
		status = encode_group(slot, r);
		if (status)
			return status;
	}
	mt_scratch_finish(scratch);
	return 0;
}

/* The record is on the ring: group r becomes what the record says. */
__noinline int commit_group(__u32 slot, __u32 r)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	struct encoded_group *out;
	__u64 in_record, bitmap;

	if (!reference || !scratch)
		return 0;
	r &= budget_bytes / MT_GROUP_BYTES - 1;
	reference->range[r] = scratch->range[r];
	reference->group_digest[r] = scratch->group_digest[r];
	in_record = scratch->record.mask[r / 64] >> (r & 63) & 1;
	if (!in_record && scratch->keep)
		return 0;
	out = out_at(scratch, scratch->cursor);
	if (!out)
		return 0;
	bitmap = in_record ? out->words[0] : 0;
	scratch->cursor += in_record +
			   commit_words(reference_group(reference, r), bitmap, out, scratch->keep);
	return 0;
}

__noinline int commit_window(__u32 slot)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u32 groups = budget_bytes / MT_GROUP_BYTES, r;
	__u64 digest;

	if (!reference || !scratch)
		return MT_PROBE_REFUSED;
	mt_reference_move_begin(reference, scratch);
	MT_NO_UNROLL
	for (r = 0; r < groups && r < MT_GROUPS_MAX; r++)
		if (scratch->touched[r / 64] >> (r & 63) & 1)
			commit_group(slot, r);
	digest = scratch->record.digest;
	*(__u64 *)((char *)reference + MT_DICTIONARY_OFFSET +
		   (digest & (MT_DICTIONARY - 1)) * 8) = digest;
	mt_reference_move_end(reference, scratch);
	return MT_PROBE_SENT;
}

/* Latches an episode of pressure, wire/control.h, unless one is latched. */
__noinline int latch_pressure(__u32 slot)
{
	struct mt_control *shared = control_page();
	__u64 now = bpf_ktime_get_ns();

	if (!shared || __sync_val_compare_and_swap(&shared->latch, 0, now))
		return 0;
	shared->latch_time_ns = now;
	shared->latch_ring = MT_LATCH_STACKS;
	shared->latch_slot = slot;
	return 0;
}

/* Puts the record on the ring, which then may be over its watermark. */
__noinline int send_record(__u32 slot)
{
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u64 fill, flags = BPF_RB_NO_WAKEUP;
	__u64 len;
	long failed;

	if (!scratch)
		return MT_PROBE_REFUSED;
	len = scratch->record.len;
	if (len > sizeof(scratch->record) + mt_scratch_out_words(budget_bytes) * 8)
		return MT_PROBE_REFUSED;
	fill = bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA);
	if (fill < wakeup_bytes && fill + len >= wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	failed = bpf_ringbuf_output(&stacks, &scratch->record, len, flags);
	if (failed || fill + len >= watermark_bytes)
		latch_pressure(slot);
	return failed ? MT_PROBE_FULL : 0;
}

/* The probe of a window; returns MT_PROBE_*. */
__noinline int capture_window(__u64 slot_epoch, __u64 seq, __u64 start, __u64 end)
{
	__u32 slot = slot_epoch;
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	int status;

	if (!reference || !scratch || !is_owner(slot) || !mt_window_valid(start, end, budget_bytes))
		return MT_PROBE_REFUSED;
	if (seq != reference->seq) {
		/* What the mask was computed from is not the reference any more. */
		scratch->touched[0] = ~0ULL;
		scratch->touched[1] = ~0ULL;
	}
	mt_scratch_begin(scratch, reference, slot, start, end, slot_epoch >> 32,
			 bpf_ktime_get_ns());
	status = encode_window(slot);
	if (!status)
		status = send_record(slot);
	if (!status)
		status = commit_window(slot);
	return status;
}

__noinline int count_trouble(int status)
{
	struct mt_control *shared = control_page();

	if (!shared)
		return 0;
	if (status == MT_PROBE_REFUSED)
		__sync_fetch_and_add(&shared->refused_probes, 1);
	else if (status == MT_PROBE_BUSY)
		__sync_fetch_and_add(&shared->busy_probes, 1);
	else if (status == MT_PROBE_FULL)
		__sync_fetch_and_add(&shared->full_probes, 1);
	else if (status == MT_PROBE_FAULT)
		__sync_fetch_and_add(&shared->faulted_probes, 1);
	return 0;
}

SEC("uprobe")
int capture(struct pt_regs *regs)
{
	__u32 slot = PT_REGS_PARM1(regs), tid = bpf_get_current_pid_tgid();
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	int status;

	/* Who does not know the cookie is not of this run: nothing of it is touched. */
	if (!reference || !scratch || PROBE_COOKIE(regs) != cookie) {
		count_trouble(MT_PROBE_REFUSED);
		return 0;
	}
	if (__sync_val_compare_and_swap(&reference->busy, 0, tid)) {
		reference->status = MT_PROBE_BUSY;
		count_trouble(MT_PROBE_BUSY);
		return 0;
	}
	if (PT_REGS_PARM2(regs) == MT_PROBE_REGISTER) {
		status = claim_slot(slot);
	} else {
		scratch->touched[0] = PT_REGS_PARM3(regs);
		scratch->touched[1] = PROBE_HIGH_MASK(regs);
		status = capture_window(PT_REGS_PARM1(regs), PT_REGS_PARM2(regs),
					PT_REGS_PARM4(regs), PT_REGS_PARM5(regs));
	}
	count_trouble(status);
	reference->status = status;
	reference->probes++;
	/* A compare-and-swap, for its barrier. */
	__sync_val_compare_and_swap(&reference->busy, tid, 0);
	return 0;
}
