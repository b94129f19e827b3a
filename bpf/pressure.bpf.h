/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once
/*
 * pressure.bpf.h - the latch, for programs that put records on a ring
 *
 * BPF only latches, wire/control.h: it can neither wait nor stop anybody.  Where there is no
 * control page, which is never, nothing is latched, and who finds the ring full says so.
 */
#include "bpf/maps.bpf.h"

/* Latches an episode of pressure, unless one is latched; of the ring at its watermark. */
static __always_inline void latch_ring(__u32 ring, __u32 slot)
{
	struct mt_control *shared = control_page();

	if (shared && !*(volatile __u64 *)&shared->latch)
		__sync_val_compare_and_swap(&shared->latch, 0,
					    MT_LATCH(ring, slot, bpf_ktime_get_ns()));
}
