/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * image.h - an ELF file with code: its unwind information, its build-id, its code
 *
 * Contract
 *   Input:     a regular file or bytes, of any content: the file belongs to whoever runs
 *              the target.  Only 64-bit little-endian files are images; unwind information
 *              is read for x86-64.
 *   Ownership: the descriptor or the bytes are the caller's and not needed once the call
 *              returns.  An image is counted: mt_image_new_*() gives one reference,
 *              mt_image_unref() takes NULL.
 *   Errors:    -EINVAL: not a regular file; -EBADMSG: not an ELF image, or cut before its
 *              segments are told; -ENOMEM; those of pread(2).  Sections that are cut,
 *              missing or malformed are as if the file had fewer.
 *   Threads:   an image does not change once it is made; references are counted atomically.
 *   Bounds:    memory is that of the unwind sections, each MT_IMAGE_SECTION_BYTES at most,
 *              also after decompression; of an image that was made of bytes, those too; and
 *              of symbols, as collector/symbol_table.h has it.  A symbol table and its strings,
 *              of so many bytes each, are in memory while it is read.
 *
 * What is needed is read into memory when the image is made, not mapped: somebody may
 * replace or truncate the file at any time, and a mapping would raise SIGBUS then.  But for
 * code, of which there is much and little is asked for: that is read from the file, if it is
 * at its path and as it was.  It is not held open in between, which would keep its file
 * system from being unmounted.  Nor are symbols read: who reads the recording finds them in
 * the file, if that is likely to stay.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/cfi.h"
#include "collector/file_id.h"
#include "collector/symbol_table.h"

#define MT_IMAGE_SECTION_BYTES (256u * 1024 * 1024)
#define MT_BUILD_ID_BYTES 64

struct mt_image_segment {
	uint64_t start, end; /* ELF virtual addresses */
	uint64_t offset;     /* of start in the file */
	uint64_t file_bytes; /* from there on; the rest is zero */
};

struct mt_image {
	atomic_uint refs;
	uint16_t machine; /* EM_* */
	uint8_t build_id[MT_BUILD_ID_BYTES];
	uint32_t build_id_bytes;       /* 0: has none, or one that is longer */
	struct mt_image_segment *code; /* executable segments */
	size_t code_len;
	uint8_t *eh_frame_hdr, *eh_frame, *debug_frame; /* what cfi borrows */
	struct mt_cfi cfi;
	/* Of a file that has been found where it is not likely to stay; else there are none. */
	struct mt_symbol_table symbols;
	/* Where code is read from. */
	char *path; /* of the file when it was read; NULL: not told */
	struct mt_file_id file;
	uint8_t *copy; /* of the bytes that the image was made of; NULL: of a file */
	size_t copy_len;
	size_t bytes; /* of memory, about */
};

int mt_image_new_fd(int fd, struct mt_image **ret);
int mt_image_new_memory(const void *bytes, size_t len, struct mt_image **ret);

struct mt_image *mt_image_ref(struct mt_image *image);
void mt_image_unref(struct mt_image *image);

/* Whether an executable segment has the address. */
bool mt_image_is_code(const struct mt_image *image, uint64_t vaddr);

/*
 * The bytes before vaddr, len of them or as many as its executable segment has, at the
 * front of ret; how many, or a negative errno: they can not be read (any more).
 */
ssize_t mt_image_read_before(const struct mt_image *image, uint64_t vaddr, uint8_t *ret,
			     size_t len);

/* The functions in the image's file, read from it again: none if it is not at its path as it
 * was. */
int mt_image_read_symbols(const struct mt_image *image, struct mt_symbol_table *ret);

static inline void mt_image_unrefp(struct mt_image **image)
{
	mt_image_unref(*image);
}
