/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * bpf_ring.h - the reader's end of a BPF ring buffer, with a bound to each pass
 *
 * libbpf's own reader goes on until it has caught up with the producers, and does not say
 * how full the ring was meanwhile.
 *
 * Contract
 *   Input:     a descriptor of a BPF_MAP_TYPE_RINGBUF and its size.  The kernel writes what
 *              is read; what programs put into the records is the callback's to judge.
 *   Ownership: mt_bpf_ring_open() makes mappings for mt_bpf_ring_close(); the descriptor
 *              stays the caller's and may be closed.  A record's bytes are valid during
 *              the callback only, and can not be written.
 *   Errors:    negative errno of mmap(2).  What the callback returns below 0 ends the pass
 *              and is returned; that record stays on the ring.
 *   Threads:   one reader.
 *   Bounds:    max_bytes a pass, of records with their heads; a record more at most.
 */
#include <stddef.h>
#include <stdint.h>

struct mt_bpf_ring {
	volatile unsigned long *consumer; /* a page of its own */
	volatile unsigned long *producer; /* a page, then the data, twice */
	const char *data;
	size_t ring_bytes;
	size_t page_bytes;
};

typedef int (*mt_bpf_record_fn)(void *ctx, const void *bytes, size_t len);

int mt_bpf_ring_open(struct mt_bpf_ring *ring, int fd, size_t ring_bytes);
/* Closes what was opened, or is all zero. */
void mt_bpf_ring_close(struct mt_bpf_ring *ring);

/* Bytes that producers have put on the ring, and that were read, ever. */
uint64_t mt_bpf_ring_produced(const struct mt_bpf_ring *ring);
uint64_t mt_bpf_ring_consumed(const struct mt_bpf_ring *ring);

/*
 * Hands the records that are there when it begins to fn, in order.  A record that is being
 * written ends the pass.  Returns the number of bytes that it moved past.
 */
int64_t mt_bpf_ring_drain(struct mt_bpf_ring *ring, size_t max_bytes, mt_bpf_record_fn fn,
			  void *ctx);
