/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * empty_library.h - a shared object for 32-bit programs, with nothing in it
 *
 * What LD_PRELOAD names must be there for each program of a tree, or the loader says on the
 * program's stderr that it is not.  To those that the shim is not for, it is this.
 *
 * Contract
 *   Errors:    negative errno, as write(2) has it.
 *   Threads:   any.
 *   Bounds:    less than a page.
 */

/* Writes the file's content. */
int mt_empty_library_write(int fd);
