/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bpf_ring.c - see bpf_ring.h for the contract
 *
 * A BPF ring buffer is mapped in three parts (Linux 457f44363a88 ("bpf: Implement BPF ring
 * buffer and verifier support for it") (v5.8)): the consumer's position, which alone may be
 * written from here; the producers' position; the data, mapped twice in a row so that a
 * record that wraps lies in one piece.  Before each record are 8 bytes: its length, with two
 * bits at the top, and the kernel's own.
 *
 * Invariants
 *   - Positions count bytes and never wrap; both are multiples of 8.
 *   - A record's length is read with acquire, after the producers' position: a length
 *     without the busy bit is that of a record whose bytes are all there.
 *   - The consumer's position is stored with release after the record was used, because a
 *     producer may write over it from then on.
 */
#include "collector/bpf_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "base/err.h"

int mt_bpf_ring_open(struct mt_bpf_ring *ring, int fd, size_t ring_bytes)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct mt_bpf_ring made = { .ring_bytes = ring_bytes, .page_bytes = page_bytes };
	void *at;
	int err;

	at = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return mt_neg_errno();
	made.consumer = at;

	at = mmap(NULL, page_bytes + 2 * ring_bytes, PROT_READ, MAP_SHARED, fd, (off_t)page_bytes);
	if (at == MAP_FAILED) {
		err = mt_neg_errno();
		munmap((void *)made.consumer, page_bytes);
		return err;
	}
	made.producer = at;
	made.data = (const char *)at + page_bytes;
	*ring = made;
	return 0;
}

void mt_bpf_ring_close(struct mt_bpf_ring *ring)
{
	if (!ring->consumer)
		return;
	munmap((void *)ring->consumer, ring->page_bytes);
	munmap((void *)ring->producer, ring->page_bytes + 2 * ring->ring_bytes);
	memset(ring, 0, sizeof(*ring));
}

uint64_t mt_bpf_ring_produced(const struct mt_bpf_ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

uint64_t mt_bpf_ring_consumed(const struct mt_bpf_ring *ring)
{
	return __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
}

int64_t mt_bpf_ring_drain(struct mt_bpf_ring *ring, size_t max_bytes, mt_bpf_record_fn fn,
			  void *ctx)
{
	uint64_t begin = mt_bpf_ring_consumed(ring), at = begin;
	uint64_t end = mt_bpf_ring_produced(ring);
	int err = 0;

	while (at < end && at - begin < max_bytes) {
		const char *head = ring->data + (at & (ring->ring_bytes - 1));
		uint32_t word = __atomic_load_n((const uint32_t *)head, __ATOMIC_ACQUIRE);
		uint32_t len = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (word & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(word & BPF_RINGBUF_DISCARD_BIT)) {
			err = fn(ctx, head + BPF_RINGBUF_HDR_SZ, len);
			if (err < 0)
				break;
		}
		at += (BPF_RINGBUF_HDR_SZ + (uint64_t)len + 7) & ~7ULL;
		__atomic_store_n(ring->consumer, at, __ATOMIC_RELEASE);
	}
	return err < 0 ? err : (int64_t)(at - begin);
}
