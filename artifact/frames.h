/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * frames.h - a file's zstd frames, one after the other, whole or not at all
 *
 * Contract
 *   Input:     any bytes, from any descriptor that can be read.  What a frame declares
 *              about its size is not believed.
 *   Ownership: the descriptor stays the caller's; bytes is this module's, writable, and
 *              good until the next call.
 *   Errors:    -ENOMEM, or of read(2); -EBADMSG: no whole frame follows, problem says why
 *              and stays what it is.  bytes is then not a frame's.
 *   Threads:   one at a time.
 *   Bounds:    max_bytes for a frame compressed, decompressed, and for its window.  A call
 *              returns at the latest when that many bytes have been read.
 */
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>
#include <zstd.h>

/* What a frame is; the content of a skippable one is bytes too, if it is short. */
#define MT_FRAME_DATA 1
#define MT_FRAME_SKIPPABLE 2
#define MT_FRAME_SHORT_BYTES 64

struct mt_frames {
	int fd;
	size_t max_bytes;
	ZSTD_DCtx *decoder;
	XXH64_state_t *digest; /* of the data frames so far, as they are in the file */
	uint8_t *in;
	size_t in_pos, in_len;
	uint64_t read_bytes;
	uint8_t *bytes;
	size_t len, cap;
	uint32_t magic; /* of the frame */
	uint64_t end;	/* of the frame, in the file */
	const char *problem;
};

int mt_frames_init(struct mt_frames *frames, int fd, size_t max_bytes);
void mt_frames_done(struct mt_frames *frames);

/* Returns MT_FRAME_* with the frame's content in bytes, 0 at the end of the file. */
int mt_frames_next(struct mt_frames *frames);
