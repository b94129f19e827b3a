/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * control.h - the words of a run that the target, BPF and the collector share
 *
 * A page (struct mt_control) for each run, and two of what BPF answers each slot's probes:
 * in eBPF capture the value of the mmapable BPF array "control", in inline capture a memfd.
 * The target maps it read-write, so nothing in it is believed: the collector copies a word
 * once, then checks it.
 *
 * A run's threads are numbered by slot.  Slots come in chunks of MT_CHUNK_SLOTS; the
 * collector hands chunks to processes (wire/session.h), a process's threads claim slots
 * in the chunks that it has mapped (wire/ring.h).  The first slots have their reference
 * in BPF memory, the others in a memfd and capture inline.
 *
 * The version moves when an old shim could misread a new collector or the reverse; shim
 * and collector of one build always meet, because the run preloads its own shim.
 */
#include <linux/types.h>

#define MT_WIRE_VERSION 5
#define MT_CONTROL_MAGIC 0x6b636172746d656dULL /* "memtrack" */

#define MT_PAGE_BYTES 4096

#define MT_CHUNK_SLOTS 8
#define MT_CHUNKS 4096
#define MT_SLOTS (MT_CHUNKS * MT_CHUNK_SLOTS)
/* Slots whose reference lies in BPF memory, in eBPF capture. */
#define MT_BPF_SLOTS 512

#define MT_BUDGET_MIN_BYTES (4 * 1024)
#define MT_BUDGET_MAX_BYTES (64 * 1024)
#define MT_BUDGET_DEFAULT_BYTES (8 * 1024)

/* How a slot's stacks are captured: mt_control.capture, mt_welcome.capture. */
#define MT_CAPTURE_EBPF 1
#define MT_CAPTURE_INLINE 2

/* What a run does not do: mt_control.flags. */
#define MT_RUN_RAW 1	   /* stacks are not compressed: no references, no dictionaries */
#define MT_RUN_NO_STACKS 2 /* no stack is captured */

/* What a full ring means for the threads of the run: mt_control.pause. */
#define MT_PAUSE_FUTEX 0  /* while the latch is set they park, each by itself */
#define MT_PAUSE_SIGNAL 1 /* the collector stops their processes, and continues them */
#define MT_PAUSE_NEVER 2  /* nobody waits: what finds no room is lost, and counted */

/*
 * An episode of pressure, as mt_control.latch has it: all of it in one word, so that nobody
 * ever sees, or leaves behind, a part of another's.  Never 0.
 *
 *   bits 0 to 1    which ring: MT_LATCH_*
 *   bits 2 to 16   the slot of the thread that latched; 0 of MT_LATCH_LIFE
 *   bits 17 to 63  when: CLOCK_MONOTONIC ns, the lower 47 bits, which is 39 hours
 */
#define MT_LATCH_THREAD 1 /* the ring of the slot, wire/ring.h */
#define MT_LATCH_STACKS 2 /* the BPF ring "stacks" */
#define MT_LATCH_LIFE 3	  /* the BPF ring "life" */
#define MT_LATCH_TIME_SHIFT 17
#define MT_LATCH(ring, slot, ns) \
	((__u64)(ring) | (__u64)(slot) << 2 | (__u64)(ns) << MT_LATCH_TIME_SHIFT)
#define MT_LATCH_RING(latch) ((__u32)((latch) % 4))
#define MT_LATCH_SLOT(latch) ((__u32)((latch) >> 2) & (MT_SLOTS - 1))

/* When it was latched, by the clock that says now_ns; within 19 hours of that. */
static inline __u64 mt_latch_ns(__u64 latch, __u64 now_ns)
{
	__s64 ago = (__s64)((now_ns - (latch >> MT_LATCH_TIME_SHIFT)) << MT_LATCH_TIME_SHIFT);

	return now_ns - (__u64)(ago >> MT_LATCH_TIME_SHIFT);
}

/* What became of the probes of a slot.  Written by BPF, for the shim. */
struct mt_answer {
	__u32 status;	 /* of the last, MT_PROBE_* of wire/reference.h */
	__u32 probes;	 /* counts them, whatever became of them */
	__u32 owner_tid; /* who registered, as the root PID namespace counts */
	__u32 owner_tgid;
};

struct mt_control {
	/* Set by the collector before the first hand-shake, constant after that. */
	__u64 magic;
	__u32 version;
	__u32 capture; /* MT_CAPTURE_*, of the run */
	__u64 cookie;  /* of the run; the last argument of every probe */
	__u32 budget_bytes;
	__u32 flags; /* MT_RUN_* */

	/* 1 while the run records.  Set and cleared by the collector only; a shim that
	 * reads 0 does nothing. */
	__u32 enabled;
	__u32 pause; /* MT_PAUSE_*; as the words before enabled */

	/* The number of the next process: taken by fetch-and-add, by the collector for a
	 * process that shakes hands, by the shim for a fork's child. */
	__u64 next_process;

	/* Pressure latch: 0, or the episode, MT_LATCH().  Whoever finds a ring at its watermark
	 * or above moves it from 0 by compare-and-swap, each time that it puts something there;
	 * only the collector moves it back, then moves mt_gate.futex.  In the cache line of
	 * enabled, which each event reads anyway. */
	__u64 latch;
	__u32 ring_watermark_bytes; /* fill of a thread's ring; as the words before enabled */
	__u32 sandboxed; /* set by the shim: some process may make no system call to wake others */

	/* How many epochs were taken, by fetch-and-add, by the shim: mt_reference.epoch. */
	__u64 epochs;

	/* Counters of loss and trouble; fetch-and-add by whoever it happens to.  The
	 * collector reads them at the end of the run: loss is said and is in the artifact,
	 * what became of probes, which are made again, is in memtrack-run's summary. */
	__u64 lost_events;	/* appends given up: the collector was gone, or MT_PAUSE_NEVER */
	__u64 lost_stacks;	/* events that were sent without their stack; they say so too */
	__u64 refused_probes;	/* BPF: wrong owner, cookie or window */
	__u64 busy_probes;	/* BPF: two threads met in one slot */
	__u64 full_probes;	/* BPF: the stack ring had no room; the shim probes again */
	__u64 faulted_probes;	/* BPF: a stack page could not be read */
	__u64 unserved_threads; /* threads that found no slot */
	__u64 lost_lives;	/* BPF: records of wire/life.h that found their ring full */
	__u64 lost_members;	/* BPF: processes of the tree that the kernel did not note */

	/* High-water marks of the BPF rings in bytes, in a run with statistics: raised by BPF
	 * after each output, taken by the collector, which leaves 0. */
	__u64 stacks_peak_bytes;
	__u64 life_peak_bytes;

	__u8 spare2[MT_PAGE_BYTES - 20 * 8];

	struct mt_answer answers[MT_BPF_SLOTS];
};

_Static_assert(sizeof(struct mt_control) == 3 * MT_PAGE_BYTES, "struct mt_control changed size");
