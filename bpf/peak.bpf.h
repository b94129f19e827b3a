/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once
/*
 * peak.bpf.h - the high-water mark of a BPF ring, as whoever has just put something on it sees
 *              it
 *
 * The fill is asked for after the output: before it, what another CPU puts on the ring in
 * between would be missing from both.  Only in a run with statistics; otherwise the verifier
 * drops the code.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/maps.bpf.h"
#include "wire/stack_delta.h"

/* A try fails where another CPU has raised the mark in between, or the collector has taken it;
 * so many others in a row would have to do that at one record each. */
#define MT_PEAK_TRIES 16

/* peak: a word of struct mt_control.  The collector takes it and leaves 0: so it is raised by
 * compare-and-swap, never stored over what it has become. */
static __always_inline void note_peak(void *ring, __u64 *peak)
{
	__u64 fill, seen;
	int i;

	if (!measured)
		return;
	fill = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	MT_NO_UNROLL
	for (i = 0; i < MT_PEAK_TRIES; i++) {
		seen = *(volatile __u64 *)peak;
		if (fill <= seen || __sync_val_compare_and_swap(peak, seen, fill) == seen)
			return;
	}
}
