/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frame_pointer.c - see frame_pointer.h for the contract
 *
 * Invariants
 *   - The caller's stack pointer is above the frame's: rbp >= rsp.
 */
#include "collector/frame_pointer.h"

#include <elf.h>

#include "collector/call_site.h"

/* What the entry code of a program leaves on the stack, at most. */
#define ENTRY_BYTES 16

/* Whether the stack has no room for a caller. */
static bool is_outermost(const struct mt_window *window, uint64_t rsp)
{
	return window->bottom && rsp <= window->end && window->end - rsp <= ENTRY_BYTES;
}

enum mt_stop mt_frame_pointer_follow(const struct mt_window *window, uint64_t rsp, uint64_t rbp,
				     bool linked, enum mt_stop otherwise,
				     struct mt_frame_pointer_caller *ret)
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
	*ret = (struct mt_frame_pointer_caller){ .pc = pc, .sp = rbp + 16, .rbp_at = rbp };
	return MT_STOP_NONE;
}

static bool follows_call(const struct mt_image *image, uint64_t vaddr, const uint8_t *bytes,
			 size_t len)
{
	int32_t offset;

	/* A direct call stays in its file; it may be of a stub there. */
	if (mt_call_site_direct(bytes, len, &offset) &&
	    mt_image_is_code(image, vaddr + (uint64_t)(int64_t)offset))
		return true;
	return mt_call_site_indirect(bytes, len);
}

static bool returns_from_handler(const struct mt_image *image, uint64_t vaddr)
{
	struct mt_cfi_row row;

	return mt_cfi_find(&image->cfi, vaddr - 1, &row) == 0 && row.signal;
}

bool mt_frame_pointer_is_return(const struct mt_space *space, uint64_t pc)
{
	const struct mt_space_range *range = mt_space_find(space, pc - 1);
	uint8_t bytes[MT_CALL_SITE_BYTES];
	uint64_t vaddr;
	ssize_t len;

	if (!range || !range->image)
		return range != NULL;
	vaddr = pc - range->bias;
	if (!mt_image_is_code(range->image, vaddr - 1))
		return false;
	if (range->image->machine != EM_X86_64)
		return true;
	len = mt_image_read_before(range->image, vaddr, bytes, sizeof(bytes));
	return len < 0 || follows_call(range->image, vaddr, bytes, (size_t)len) ||
	       returns_from_handler(range->image, vaddr);
}
