/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * kernel.h - the kernel's part of a run, for a target that says itself what it writes
 *
 * Contract
 *   Input:     mt_probes_drain(), mt_probes_stacks_produced() and _consumed() of
 *              collector/probes.h are kernel.c's where it is linked.
 *   Ownership: kernel_open() gives an object for kernel_close().
 *   Threads:   one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/probes.h"

/* References for the slots, unless raw. */
struct mt_probes *kernel_open(uint32_t slots, uint32_t budget_bytes, bool raw);
void kernel_close(struct mt_probes *probes);

struct mt_control *kernel_control(struct mt_probes *probes);
void *kernel_references(struct mt_probes *probes);

/* A copy of the record goes on a ring, which has room for all. */
void kernel_put_stack(struct mt_probes *probes, const void *record, size_t len);
void kernel_put_life(struct mt_probes *probes, const void *record, size_t len);
