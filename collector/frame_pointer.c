/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frame_pointer.c - see frame_pointer.h for the contract
 *
 * Invariants
 *   - The caller's stack pointer is above the frame's: rbp >= rsp.
 */
#include "collector/frame_pointer.h"

/* What the entry code of a program leaves on the stack, at most. */
#define ENTRY_BYTES 16

/* Whether the stack has no room for a caller. */
static bool is_outermost(const struct mt_window *window, uint64_t rsp)
{
	return window->bottom && rsp <= window->end && window->end - rsp <= ENTRY_BYTES;
}

enum mt_stop mt_frame_pointer_follow(const struct mt_space *space, const struct mt_window *window,
				     uint64_t rsp, uint64_t rbp, bool linked,
				     enum mt_stop otherwise, struct mt_frame_pointer_caller *ret)
{
	uint64_t pc;

	if (!rbp && (linked || is_outermost(window, rsp)))
		return MT_STOP_END;
	if (rbp < rsp || (rbp & 7) || rbp - rsp > MT_FRAME_POINTER_BYTES)
		return otherwise;
	if (!mt_window_read(window, rbp + 8, &pc))
		return window->bottom ? otherwise : mt_window_missing(window, rbp + 8);
	if (!pc && linked)
		return MT_STOP_END;
	if (!mt_space_is_code(space, pc - 1))
		return otherwise;
	*ret = (struct mt_frame_pointer_caller){ .pc = pc, .sp = rbp + 16, .rbp_at = rbp };
	return MT_STOP_NONE;
}
