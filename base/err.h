/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * err.h - the error convention: 0 or more is success, a negative errno is failure
 */
#include <errno.h>

/*
 * What to return after a libc call failed.  A bare -errno could be 0 or more for all that
 * the compiler knows, and it warns at every caller that uses a result written on success.
 */
static inline int mt_neg_errno(void)
{
	int err = errno;

	return err > 0 ? -err : -EIO;
}
