/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * probe.h - the call of the probe, probe.S
 *
 * Contract
 *   Input:   as wire/reference.h says, in its order of registers
 *   Errors:  none here: what became of it is in the slot's answer, wire/control.h
 *   Threads: the slot's
 */
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The probe's first instruction: a nop, unless the kernel has set the probe. */
extern const unsigned char mt_probe_site[] __attribute__((visibility("hidden")));

/* Does this process run under valgrind, where the kernel's probe must not be met? */
bool mt_probe_is_instrumented(void);

/* In a fork's child, before its first probe: makes the probe its own. */
void mt_probe_renew(void);

void mt_probe_send(uint64_t slot_epoch, uint64_t seq, uint64_t mask_low, uint64_t start,
		   uint64_t end, uint64_t cookie, uint64_t mask_high);

#pragma GCC visibility pop
