/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * segments.h - the run's shared memories, as the collector has them
 *
 * Contract
 *   Input:     the control page and the BPF references are the caller's (collector/probes.h)
 *              in an eBPF run, and made here in an inline run.
 *   Ownership: mt_segments_open() gives an object for mt_segments_close(), which takes NULL;
 *              descriptors in it are its own and close-on-exec.  By the thread that opened
 *              them: for the targets, that thread's life is the collector's.
 *   Errors:    negative errno of memfd_create(2), ftruncate(2), mmap(2); -EINVAL for a
 *              budget or ring size that is no power of two or out of range.  A chunk that
 *              is not to be had: -ENOSPC.  No room to teach in is no error.
 *   Threads:   one.
 *   Bounds:    the memfds are sparse: memory is what targets touch.  Slots never handed
 *              out are never looked at.  Where RLIMIT_AS or RLIMIT_FSIZE leave room for less
 *              than MT_CHUNKS, there are fewer chunks, and nothing is taught.
 *
 * What lies in the memories is written by the tracked processes; a caller copies a word
 * once, then checks it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"
#include "wire/learned.h"
#include "wire/reference.h"
#include "wire/ring.h"
#include "wire/session.h"

/* Of a ring: so full that an episode of pressure is latched. */
#define MT_WATERMARK_PERCENT 75

struct mt_segments_config {
	uint32_t budget_bytes;
	uint32_t ring_bytes;
	uint32_t flags;		    /* MT_RUN_* */
	bool learned;		    /* threads are taught chains; not without references */
	uint32_t pause;		    /* MT_PAUSE_* */
	uint32_t watermark_percent; /* fill of a thread's ring that latches pressure; 0: 75 */
	uint64_t cookie;
	/* eBPF: the map's descriptors and mappings; borrowed.  Inline: -1 and NULL. */
	int control_fd;
	int bpf_references_fd;
	struct mt_control *control;
	void *bpf_references;
};

struct mt_chunk {
	bool given;	   /* handed out, its slots are drained */
	uint64_t given_ns; /* when, for the last time */
};

struct mt_segments {
	uint32_t capture;
	uint32_t budget_bytes;
	uint32_t ring_bytes;
	uint32_t pause; /* MT_PAUSE_*; as the cookie, not what the control page says by now */
	uint64_t cookie;
	struct mt_control *control;
	struct mt_gate *gate;
	char *rings;
	char *bpf_references;
	char *references;
	char *learned; /* NULL: nothing is taught */
	size_t bpf_stride, stride, scratch_offset;
	size_t rings_size, references_size, learned_size;
	int control_fd, bpf_references_fd, references_fd, rings_fd, learned_fd;
	bool own_control;
	bool living;	      /* the gate's life is locked */
	uint32_t n_chunks;    /* MT_CHUNKS, or less where memory is limited */
	uint32_t chunks_used; /* chunks from here on were never given */
	struct mt_chunk chunks[MT_CHUNKS];
};

int mt_segments_open(const struct mt_segments_config *config, struct mt_segments **ret);
void mt_segments_close(struct mt_segments *segments);

struct mt_thread *mt_segments_thread(const struct mt_segments *segments, uint32_t slot);

/* The slot's cells, ring_bytes of them. */
const struct mt_cell *mt_segments_cells(const struct mt_segments *segments, uint32_t slot);

/* NULL where stacks are not compressed. */
struct mt_reference *mt_segments_reference(const struct mt_segments *segments, uint32_t slot);

/* What the slot's chunk has of wire/learned.h, which no target can write; NULL where nothing is
 * taught. */
struct mt_learned *mt_segments_learned(const struct mt_segments *segments, uint32_t slot);

/* Whether a living thread holds the slot. */
bool mt_segments_slot_held(const struct mt_segments *segments, uint32_t slot);

/*
 * Hands out a chunk and fills in the welcome's places of it.  A chunk whose slots are all
 * without an owner and drained is given again, to whoever asks: it may still be mapped by
 * a process that had it, which does no harm, since a slot is claimed by locking it.
 * inline_only: not one whose references lie in BPF memory.
 */
int mt_segments_give_chunk(struct mt_segments *segments, bool inline_only, uint64_t now_ns,
			   struct mt_welcome *welcome);

/* The descriptor to send for MT_FD_REFERENCES of a chunk that was given with capture; -1:
 * none. */
int mt_segments_references_fd(const struct mt_segments *segments, uint32_t capture);

/* Moves the gate's futex word and wakes all threads that wait for room. */
void mt_segments_wake(struct mt_segments *segments);

/* The same, and before that the latch cleared, if it is set; after the new tails were
 * published: in another order a thread could sleep through its release. */
void mt_segments_release(struct mt_segments *segments);

static inline void mt_segments_closep(struct mt_segments **segments)
{
	mt_segments_close(*segments);
}
