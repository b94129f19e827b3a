/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * call_forms.h - instructions as the assembler makes them, for test_call_site.c
 *
 * None is executed.  Of each there is where it ends, from call_forms on.
 */
#include <stdint.h>

extern const uint8_t call_forms[];
/* Of indirect calls, of each form that there is. */
extern const uint64_t call_ends[], call_ends_end[];
/* Of others. */
extern const uint64_t other_ends[], other_ends_end[];
