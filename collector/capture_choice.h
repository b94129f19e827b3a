/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * capture_choice.h - who is to copy the stacks, as people write it
 *
 * Contract
 *   Input:     text of the command line.
 *   Errors:    -EINVAL: none of these.
 */
#include <errno.h>
#include <string.h>

enum mt_capture_choice { MT_CHOICE_AUTO, MT_CHOICE_EBPF, MT_CHOICE_INLINE };

static inline int mt_capture_choose(const char *text, enum mt_capture_choice *ret)
{
	static const char *const names[] = { "auto", "ebpf", "inline" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(text, names[i])) {
			*ret = (enum mt_capture_choice)i;
			return 0;
		}
	}
	return -EINVAL;
}
