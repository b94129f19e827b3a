/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once
/*
 * maps.bpf.h - everything that the programs share with each other and with the collector:
 *              maps and knobs.  Defined in maps.bpf.c.
 *
 * For each: who writes, who reads, and what bounds it.  Names have at most 15 characters;
 * the kernel cuts them there.  Counters are words of struct mt_control.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "wire/control.h"
#include "wire/reference.h"

/* Knobs: written by collector/probes.c between open and load, constant after that, so that
 * the verifier knows their values where they bound an access. */
extern const volatile __u32 budget_bytes;	  /* a power of two, 4 to 64 KiB */
extern const volatile __u64 cookie;		  /* of the run: what a probe has to know */
extern const volatile __u32 raw;		  /* MT_RUN_RAW: windows as they are */
extern const volatile __u32 measured;		  /* a run with statistics */
extern const volatile __u64 watermark_bytes;	  /* fill of "stacks" that latches an episode */
extern const volatile __u64 life_watermark_bytes; /* the same of "life" */
extern const volatile __u64 wakeup_bytes;	  /* fill of "stacks" that wakes a poller */

/* wire/control.h.  Written by all, mapped by all. */
struct control_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mt_control);
};
extern struct control_map control SEC(".maps");

/* NULL: never, an array always has its entries. */
static __always_inline struct mt_control *control_page(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

/* wire/reference.h: head, dictionary, words.  Written by capture.bpf.c (the collector writes
 * resync_asked and clears dictionary entries), read by the target.  One entry, not used,
 * where windows are raw. */
struct references_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MT_BPF_SLOTS);
	__uint(key_size, 4);
	__uint(value_size, MT_WORDS_OFFSET + MT_BUDGET_DEFAULT_BYTES); /* a placeholder */
};
extern struct references_map references SEC(".maps");

/* wire/scratch.h.  capture.bpf.c's alone, for each slot under mt_reference.busy.  Not per
 * CPU: a uprobe program is preempted by others that would then write in it.  One entry, not
 * used, where windows are raw. */
struct scratches_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MT_BPF_SLOTS);
	__uint(key_size, 4);
	__uint(value_size, MT_PAGE_BYTES + 2 * MT_BUDGET_DEFAULT_BYTES); /* a placeholder */
};
extern struct scratches_map scratches SEC(".maps");

/* Who registered in a slot.  capture.bpf.c's alone: the target can map no part of it. */
struct slot_owner {
	__u64 start_time_ns; /* of the thread: tids are used again */
	__u32 tid;
	__u32 tgid;
};

struct owners_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MT_BPF_SLOTS);
	__type(key, __u32);
	__type(value, struct slot_owner);
};
extern struct owners_map owners SEC(".maps");

/* wire/stack_record.h.  Written by capture.bpf.c, read by the collector. */
struct stacks_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024); /* a placeholder */
};
extern struct stacks_map stacks SEC(".maps");

/* wire/life.h.  Written by life.bpf.c, read by the collector. */
struct life_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024); /* a placeholder */
};
extern struct life_map life SEC(".maps");

/* The processes of the run: tgid to 1.  The collector enters the first, life.bpf.c the
 * forks of members; life.bpf.c removes.  Bounded by the processes that live at one time. */
struct members_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
};
extern struct members_map members SEC(".maps");
