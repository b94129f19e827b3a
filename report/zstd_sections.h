/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * zstd_sections.h - ELF files whose sections are compressed with zstd, for a libelf that
 * only knows zlib (before 0.189)
 *
 * Contract
 *   Input:     any regular file.
 *   Ownership: takes fd, also when it fails; what it returns is the caller's: fd itself
 *              where nothing needs to be done, or a copy in memory with those sections
 *              expanded.
 *   Errors:    negative errno.  A section that is damaged stays as it is.
 *   Bounds:    MT_ZSTD_SECTIONS_MAX bytes of memory beyond the file's size.
 */
#include <stdint.h>

#define MT_ZSTD_SECTIONS_MAX (8ULL << 30)

int mt_zstd_sections_expand(int fd);
