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

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/maps.bpf.h"
#include "bpf/peak.bpf.h"
#include "bpf/pressure.bpf.h"
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
	__u32 halves[MT_ENCODED_HALVES];
};

static __always_inline struct group *reference_group(struct mt_reference *reference, __u32 r)
{
	__u64 offset = (__u64)(r & (budget_bytes / MT_GROUP_BYTES - 1)) * MT_GROUP_BYTES;

	return (struct group *)((char *)reference + MT_WORDS_OFFSET + offset);
}

/* A place behind the record's head, or NULL: never, as long as the scratch is sound. */
static __always_inline struct encoded_group *out_at(struct mt_scratch *scratch, __u64 half)
{
	if (half > mt_scratch_out_halves(budget_bytes))
		return NULL;
	return (struct encoded_group *)(mt_scratch_out(scratch, budget_bytes) + half);
}

/* De Bruijn's sequence has each number of 6 bits once: which of them the lowest bit moves
 * to the top says which it is. */
#define DE_BRUIJN 0x03f79d71b4cb0a89ULL

static const __u8 bit_of[64] = {
	0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,	62, 55, 59, 36, 53, 51,
	43, 22, 45, 39, 33, 30, 24, 18, 12, 5,	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
	44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
};

/* Which is the lowest bit of bits that is set?  Not for 0. */
static __always_inline __u32 lowest_bit(__u64 bits)
{
	return bit_of[((bits & -bits) * DE_BRUIJN) >> 58];
}

static __always_inline __u32 highest_bit(__u64 bits)
{
	bits |= bits >> 1;
	bits |= bits >> 2;
	bits |= bits >> 4;
	bits |= bits >> 8;
	bits |= bits >> 16;
	bits |= bits >> 32;
	return bit_of[((bits ^ bits >> 1) * DE_BRUIJN) >> 58];
}

/*
 * Whether the slot's owner waits for the task, its vfork child, or that one's.  For each pointer
 * that a program follows itself the verifier looks through all of the kernel's type names, several
 * times: some 25 ms in all, which these reads, hardly ever made, do not take.
 */
static __always_inline int is_lent(const struct slot_owner *owner, struct task_struct *task)
{
	int i;

	for (i = 0; i < VFORK_DEPTH; i++) {
		struct task_struct *parent = BPF_CORE_READ(task, real_parent);

		/* vfork_done is set from before the child runs until it has exec'd or is
		 * gone, which is how long its parent waits.  It is also set by a
		 * CLONE_VFORK that shares no memory, hence mm. */
		if (!BPF_CORE_READ(task, vfork_done) ||
		    BPF_CORE_READ(task, mm) != BPF_CORE_READ(parent, mm))
			return 0;
		if (owner->tid == (__u32)BPF_CORE_READ(parent, pid) &&
		    owner->start_time_ns == BPF_CORE_READ(parent, start_time))
			return 1;
		task = parent;
	}
	return 0;
}

/* Whether the running task is the slot's owner, or its vfork child. */
__noinline int is_owner(__u32 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct slot_owner *owner = bpf_map_lookup_elem(&owners, &slot);

	if (!owner || !owner->tid)
		return 0;
	return (owner->tid == (__u32)task->pid && owner->start_time_ns == task->start_time) ||
	       is_lent(owner, task);
}

/* Not what a probe of a window may name? */
__noinline int refuses(__u32 slot, __u64 start, __u64 end)
{
	return !is_owner(slot) || !mt_window_valid(start, end, budget_bytes);
}

/* The registration probe: the slot is the running task's from here. */
__noinline int claim_slot(__u32 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct slot_owner *owner = bpf_map_lookup_elem(&owners, &slot);
	struct mt_control *shared = control_page();
	struct mt_answer *answer;

	if (!owner || !shared)
		return MT_PROBE_REFUSED;
	answer = &shared->answers[slot & (MT_BPF_SLOTS - 1)];
	owner->start_time_ns = task->start_time;
	owner->tid = task->pid;
	owner->tgid = task->tgid;
	answer->owner_tid = task->pid;
	answer->owner_tgid = task->tgid;
	return MT_PROBE_REGISTERED;
}

/* What the slot knew is another's. */
__noinline int claim_reference(__u32 slot)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	__u64 *entry;
	__u32 i;

	if (!reference)
		return MT_PROBE_REFUSED;
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
	return mt_group_encode(live->words, kept->words, bits, keep, out->halves);
}

__noinline __u64 hash_words(const struct group *group)
{
	if (!group)
		return 0;
	return mt_group_hash(group->words);
}

__noinline __u64 clear_words(struct group *kept)
{
	__u32 i;

	if (!kept)
		return 0;
	MT_NO_UNROLL
	for (i = 0; i < MT_GROUP_WORDS; i++)
		kept->words[i] = 0;
	return 0;
}

__noinline __u64 commit_words(struct group *kept, const struct encoded_group *out, __u64 lows,
			      __u64 highs, __u64 keep)
{
	if (!kept || !out)
		return 0;
	mt_group_commit(kept->words, lows, highs, out->halves, keep);
	return 0;
}

/* Reads and encodes touched group r of the window in the scratch. */
__noinline int encode_group(__u32 slot, __u32 r)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u32 groups = budget_bytes / MT_GROUP_BYTES, range, lo, bytes;
	struct encoded_group *out;
	__u64 at, n, keep;

	if (!reference || !scratch)
		return MT_PROBE_REFUSED;
	r &= groups - 1;
	range = mt_scratch_take_group(scratch, r, groups);
	if (!range) {
		mt_scratch_hashed(scratch, reference, r, 0);
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
	keep = mt_scratch_keep(scratch, reference, r, groups);
	n = encode_words((struct live_group *)scratch->live, reference_group(reference, r),
			 mt_range_bits(range), keep, out);
	if (!n && keep != scratch->keep)
		n = mt_group_encode_zero(out->halves);
	mt_scratch_encoded(scratch, r, n);
	mt_scratch_hashed(scratch, reference, r, hash_words((struct group *)scratch->live));
	return 0;
}

__noinline int plan_cover(__u32 slot, __u32 w)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

	if (!reference || !scratch)
		return 0;
	mt_scratch_plan_cover(scratch, reference, budget_bytes / MT_GROUP_BYTES, w & 1);
	return 0;
}

__noinline int plan_edge(__u32 slot, __u64 at)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

	if (!reference || !scratch)
		return 0;
	mt_touch_edge(scratch->touched, reference->range, scratch->record.start, scratch->end, at,
		      budget_bytes / MT_GROUP_BYTES);
	return 0;
}

/* mt_scratch_plan(), in calls whose frames are small. */
__noinline int plan_window(__u32 slot)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

	if (!reference || !scratch)
		return MT_PROBE_REFUSED;
	plan_cover(slot, 0);
	if (budget_bytes > 64 * MT_GROUP_BYTES)
		plan_cover(slot, 1);
	else
		scratch->touched[1] = 0;
	if (!scratch->keep)
		return 0;
	plan_edge(slot, scratch->record.start);
	plan_edge(slot, scratch->end - 1);
	plan_edge(slot, reference->start);
	plan_edge(slot, reference->end - 1);
	return 0;
}

__noinline int finish_window(__u32 slot)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

	if (!reference || !scratch)
		return MT_PROBE_REFUSED;
	mt_scratch_finish(scratch, (__u64 *)((char *)reference + MT_DICTIONARY_OFFSET),
			  budget_bytes);
	return 0;
}

/* Encodes those of the window's groups that word w of touched names. */
__noinline int encode_groups(__u32 slot, __u32 w)
{
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u64 left;
	__u32 i;
	int status;

	if (!scratch)
		return MT_PROBE_REFUSED;
	left = scratch->touched[w & 1];
	MT_NO_UNROLL
	for (i = 0; i < 64 && left; i++) {
		status = encode_group(slot, (w & 1) * 64 + lowest_bit(left));
		if (status)
			return status;
		left &= left - 1;
	}
	return 0;
}

/* Encodes the window that was begun in the scratch. */
__noinline int encode_window(__u32 slot)
{
	int status = plan_window(slot);

	if (!status)
		status = encode_groups(slot, 0);
	if (!status && budget_bytes > 64 * MT_GROUP_BYTES)
		status = encode_groups(slot, 1);
	return status ? status : finish_window(slot);
}

/* The record's group that ends at scratch->cursor, which moves to where it begins. */
__noinline int commit_halves(__u32 slot, __u32 r)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u64 at, n = 0, lows, highs, keep;
	struct encoded_group *part;
	__u8 low_index, high_index;

	r &= budget_bytes / MT_GROUP_BYTES - 1;
	if (!reference || !scratch)
		return 0;
	/* Its end says where its maps begin, they where it does itself. */
	at = scratch->cursor - 1;
	part = out_at(scratch, at);
	if (!part)
		return 0;
	low_index = ((__u8 *)part)[2];
	high_index = ((__u8 *)part)[3];
	at = scratch->cursor - mt_map_halves(low_index, high_index);
	part = out_at(scratch, at);
	if (!part)
		return 0;
	lows = mt_get_map((__u8 *)part, low_index, &n);
	highs = mt_get_map((__u8 *)part, high_index, &n);
	at -= mt_count_bits(lows) + mt_count_bits(highs);
	part = out_at(scratch, at);
	if (!part)
		return 0;
	scratch->cursor = at;
	keep = mt_scratch_keep(scratch, reference, r, budget_bytes / MT_GROUP_BYTES);
	return commit_words(reference_group(reference, r), part, lows, highs, keep);
}

/* The record is on the ring: group r becomes what the record says. */
__noinline int commit_group(__u32 slot, __u32 r)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

	if (!reference || !scratch)
		return 0;
	r &= budget_bytes / MT_GROUP_BYTES - 1;
	if (scratch->mask[r / 64] >> (r & 63) & 1)
		commit_halves(slot, r);
	else if (!scratch->keep)
		clear_words(reference_group(reference, r));
	reference->range[r] = scratch->range[r];
	reference->group_digest[r] = scratch->group_digest[r];
	return 0;
}

/* From the last to the first, as they are read. */
__noinline int commit_groups(__u32 slot, __u32 w)
{
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u64 left;
	__u32 i, bit;

	if (!scratch)
		return 0;
	left = scratch->touched[w & 1];
	MT_NO_UNROLL
	for (i = 0; i < 64 && left; i++) {
		bit = highest_bit(left);
		commit_group(slot, (w & 1) * 64 + bit);
		left &= ~(1ULL << bit);
	}
	return 0;
}

__noinline int commit_window(__u32 slot)
{
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u64 entry;

	if (!reference || !scratch)
		return MT_PROBE_REFUSED;
	mt_reference_move_begin(reference, scratch);
	if (budget_bytes > 64 * MT_GROUP_BYTES)
		commit_groups(slot, 1);
	commit_groups(slot, 0);
	entry = scratch->record.entry & (MT_DICTIONARY - 1);
	*(__u64 *)((char *)reference + MT_DICTIONARY_OFFSET + entry * 8) = scratch->record.digest;
	mt_reference_move_end(reference, scratch);
	return MT_PROBE_SENT;
}

/* The ring "stacks" is at its watermark, or has no room. */
__noinline int latch_pressure(__u32 slot)
{
	latch_ring(MT_LATCH_STACKS, slot & (MT_BPF_SLOTS - 1));
	return 0;
}

__noinline int note_stacks(void)
{
	struct mt_control *shared = control_page();

	if (shared)
		note_peak(&stacks, &shared->stacks_peak_bytes);
	return 0;
}

/* For a record of len bytes more on the ring "stacks", with so many bytes in it: a poller is woken
 * once there are wakeup_bytes. */
static __always_inline __u64 wakeup_flags(__u64 fill, __u64 len)
{
	int wakes = fill < wakeup_bytes && fill + BPF_RINGBUF_HDR_SZ + len >= wakeup_bytes;

	return wakes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Puts the record on the ring, which then may be over its watermark. */
__noinline int send_record(__u32 slot)
{
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	__u64 fill, len;
	long failed;

	if (!scratch)
		return MT_PROBE_REFUSED;
	len = (__u64)scratch->record.len_words * 8;
	if (len > mt_stack_head_bytes(budget_bytes) + mt_scratch_out_halves(budget_bytes) * 4)
		return MT_PROBE_REFUSED;
	fill = bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA);
	failed = bpf_ringbuf_output(&stacks, &scratch->record, len, wakeup_flags(fill, len));
	if (failed || fill + len >= watermark_bytes)
		latch_pressure(slot);
	if (!failed)
		note_stacks();
	return failed ? MT_PROBE_FULL : 0;
}

/* The probe of a window; returns MT_PROBE_*. */
__noinline int capture_window(__u64 slot_epoch, __u64 seq, __u64 start, __u64 end)
{
	__u32 slot = slot_epoch;
	struct mt_reference *reference = bpf_map_lookup_elem(&references, &slot);
	struct mt_scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
	int status;

	if (!reference || !scratch || refuses(slot, start, end))
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

__noinline int begin_raw(struct mt_stack_record *head, __u64 slot_epoch, __u64 seq, __u64 start,
			 __u64 end)
{
	__u64 head_bytes = mt_stack_head_bytes(budget_bytes);

	if (!head)
		return 0;
	head->len_words = (head_bytes + end - start + 8) / 8;
	head->slot = slot_epoch;
	head->entry = 0;
	head->kind = MT_STACK_RAW;
	head->pad_halves = 0;
	head->seq = seq;
	head->generation = 0;
	head->window_words = (end - start) / 8;
	head->start = start;
	head->epoch = slot_epoch >> 32;
	head->ref_digest = 0;
	head->digest = 0;
	head->time = bpf_ktime_get_ns() >> MT_STACK_TIME_SHIFT;
	head->mask[0] = 0;
	if (head_bytes == sizeof(*head))
		head->mask[1] = 0;
	head->check = mt_stack_check(head, 0);
	return 0;
}

/* What a block adds to the sum of the digest; blocks behind the window's end nothing. */
__noinline __u64 raw_part(const struct group *block, __u32 k, __u64 bytes)
{
	if (!block || k * MT_GROUP_BYTES >= bytes)
		return 0;
	return mt_digest_part(hash_words(block), k);
}

__noinline __u64 finish_raw(__u64 slot_epoch, __u64 start, __u64 end, __u64 sum)
{
	return mt_digest_finish(start, end, slot_epoch >> 32, sum);
}

/* What a reservation takes: the longest raw record. */
static __always_inline __u64 raw_record_bytes(void)
{
	return mt_stack_head_bytes(budget_bytes) + budget_bytes + 8;
}

/*
 * A window as it is.  It is read into the ring itself: no memory of a slot is used.  The
 * verifier wants a reservation of one size, so each takes what the largest would.
 */
__noinline int capture_raw(__u64 slot_epoch, __u64 seq, __u64 start, __u64 end)
{
	__u64 bytes = end - start, sum = 0, fill;
	char *record, *words, *last;
	__u32 k;

	if (bytes > budget_bytes)
		return MT_PROBE_REFUSED;
	fill = bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA);
	record = bpf_ringbuf_reserve(&stacks, raw_record_bytes(), 0);
	if (!record) {
		latch_pressure(slot_epoch);
		return MT_PROBE_FULL;
	}
	begin_raw((struct mt_stack_record *)record, slot_epoch, seq, start, end);
	words = record + mt_stack_head_bytes(budget_bytes);
	/* The last block is filled up with zeros. */
	last = words + ((bytes - 8) & (budget_bytes - MT_GROUP_BYTES));
	MT_NO_UNROLL
	for (k = 0; k < MT_GROUP_WORDS; k++)
		((__u64 *)last)[k] = 0;
	if (bpf_probe_read_user(words, bytes, (void *)start)) {
		/* Its room is not free before it is passed over. */
		bpf_ringbuf_discard(record, wakeup_flags(fill, raw_record_bytes()));
		return MT_PROBE_FAULT;
	}
	MT_NO_UNROLL
	for (k = 0; k < budget_bytes / MT_GROUP_BYTES && k < MT_GROUPS_MAX; k++)
		sum += raw_part((struct group *)(words + k * MT_GROUP_BYTES), k, bytes);
	*(__u64 *)(words + (bytes & (2 * budget_bytes - 8))) = finish_raw(slot_epoch, start, end,
									  sum);
	bpf_ringbuf_submit(record, wakeup_flags(fill, raw_record_bytes()));
	note_stacks();
	if (bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA) >= watermark_bytes)
		latch_pressure(slot_epoch);
	return MT_PROBE_SENT;
}

/* Counts what is no success, and tells the shim what became of its probe. */
__noinline int answer_probe(__u32 slot, int status)
{
	struct mt_control *shared = control_page();
	struct mt_answer *answer;

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
	if (slot >= MT_BPF_SLOTS)
		return 0;
	answer = &shared->answers[slot & (MT_BPF_SLOTS - 1)];
	answer->status = status;
	__sync_fetch_and_add(&answer->probes, 1);
	return 0;
}

SEC("uprobe")
int capture(struct pt_regs *regs)
{
	__u32 slot = PT_REGS_PARM1(regs), tid = bpf_get_current_pid_tgid();
	int claims = PT_REGS_PARM2(regs) == MT_PROBE_REGISTER;
	struct mt_reference *reference;
	struct mt_scratch *scratch;
	int status = MT_PROBE_REFUSED;

	/* Who does not know the cookie is not of this run: nothing of it is touched. */
	if (slot >= MT_BPF_SLOTS || PROBE_COOKIE(regs) != cookie) {
		answer_probe(MT_BPF_SLOTS, status);
		return 0;
	}
	if (raw) {
		if (claims)
			status = claim_slot(slot);
		else if (!refuses(slot, PT_REGS_PARM4(regs), PT_REGS_PARM5(regs)))
			status = capture_raw(PT_REGS_PARM1(regs), PT_REGS_PARM2(regs),
					     PT_REGS_PARM4(regs), PT_REGS_PARM5(regs));
		answer_probe(slot, status);
		return 0;
	}
	reference = bpf_map_lookup_elem(&references, &slot);
	scratch = bpf_map_lookup_elem(&scratches, &slot);
	if (!reference || !scratch)
		return 0;
	if (__sync_val_compare_and_swap(&reference->busy, 0, tid)) {
		answer_probe(slot, MT_PROBE_BUSY);
		return 0;
	}
	if (claims) {
		status = claim_slot(slot);
		if (status == MT_PROBE_REGISTERED)
			status = claim_reference(slot);
	} else {
		scratch->touched[0] = PT_REGS_PARM3(regs);
		scratch->touched[1] = PROBE_HIGH_MASK(regs);
		status = capture_window(PT_REGS_PARM1(regs), PT_REGS_PARM2(regs),
					PT_REGS_PARM4(regs), PT_REGS_PARM5(regs));
	}
	answer_probe(slot, status);
	/* A compare-and-swap, for its barrier. */
	__sync_val_compare_and_swap(&reference->busy, tid, 0);
	return 0;
}
