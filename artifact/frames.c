/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frames.c - see frames.h for the contract
 *
 * Frames are those of RFC 8878.  Their first bytes are looked at here: libzstd would also
 * take the formats from before that, which have no bounds worth the name.
 *
 * Invariants
 *   - bytes grows by doubling, and stays for the next frame: many small frames cost what
 *     they hold.
 *   - end moves only past whole frames.
 */
#include "artifact/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd_errors.h>

#include "base/err.h"

#define IN_BYTES (128 * 1024)
#define FIRST_CAP (512 * 1024)
#define SKIPPABLE_HEAD_BYTES 8
/* As many as are looked at; no frame is shorter. */
#define FIRST_BYTES SKIPPABLE_HEAD_BYTES

int mt_frames_init(struct mt_frames *frames, int fd, size_t max_bytes)
{
	unsigned int window_log = 0;

	while (window_log < 31 && (size_t)2 << window_log <= max_bytes)
		window_log++;
	*frames = (struct mt_frames){ .fd = fd, .max_bytes = max_bytes };
	frames->in = malloc(IN_BYTES);
	frames->decoder = ZSTD_createDCtx();
	frames->digest = XXH64_createState();
	if (!frames->in || !frames->decoder || !frames->digest ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(frames->decoder, ZSTD_d_windowLogMax,
						(int)window_log))) {
		mt_frames_done(frames);
		return -ENOMEM;
	}
	XXH64_reset(frames->digest, 0);
	return 0;
}

void mt_frames_done(struct mt_frames *frames)
{
	ZSTD_freeDCtx(frames->decoder);
	XXH64_freeState(frames->digest);
	free(frames->in);
	free(frames->bytes);
	*frames = (struct mt_frames){ .fd = -1 };
}

static int bad(struct mt_frames *frames, const char *problem)
{
	frames->problem = problem;
	return -EBADMSG;
}

/* Reads once; 0 at the end of the file. */
static int fill(struct mt_frames *frames)
{
	ssize_t n;

	if (frames->in_pos) {
		memmove(frames->in, frames->in + frames->in_pos, frames->in_len - frames->in_pos);
		frames->in_len -= frames->in_pos;
		frames->in_pos = 0;
	}
	do {
		n = read(frames->fd, frames->in + frames->in_len, IN_BYTES - frames->in_len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return mt_neg_errno();
	frames->in_len += (size_t)n;
	frames->read_bytes += (uint64_t)n;
	return n > 0;
}

/* Room for more output; the byte past max_bytes tells that there was too much. */
static int make_room(struct mt_frames *frames)
{
	size_t cap = frames->cap ? 2 * frames->cap : FIRST_CAP;
	uint8_t *bytes;

	if (frames->cap > frames->max_bytes)
		return bad(frames, "a frame holds more than an artifact's may");
	if (cap > frames->max_bytes)
		cap = frames->max_bytes + 1;
	bytes = realloc(frames->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	frames->bytes = bytes;
	frames->cap = cap;
	return 0;
}

static uint32_t little_endian(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Which kind of frame follows?  0 at the end of the file. */
static int begin(struct mt_frames *frames)
{
	while (frames->in_len - frames->in_pos < FIRST_BYTES) {
		int r = fill(frames);

		if (r < 0)
			return r;
		if (r == 0)
			break;
	}
	if (frames->in_len == frames->in_pos)
		return 0;
	if (frames->in_len - frames->in_pos < FIRST_BYTES)
		return bad(frames, "the file ends inside a frame");
	frames->magic = little_endian(frames->in + frames->in_pos);
	if ((frames->magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START)
		return MT_FRAME_SKIPPABLE;
	if (frames->magic != ZSTD_MAGICNUMBER)
		return bad(frames, "bytes that are no frame");
	return MT_FRAME_DATA;
}

/* Passes over a skippable frame; keeps its content if that is short. */
static int skip(struct mt_frames *frames)
{
	size_t len = little_endian(frames->in + frames->in_pos + 4), left = len;

	if (len > frames->max_bytes)
		return bad(frames, "a frame is larger than an artifact's may be");
	frames->in_pos += SKIPPABLE_HEAD_BYTES;
	while (left) {
		size_t n = frames->in_len - frames->in_pos;

		if (!n) {
			int r = fill(frames);

			if (r < 0)
				return r;
			if (r == 0)
				return bad(frames, "the file ends inside a frame");
			continue;
		}
		if (n > left)
			n = left;
		if (len <= MT_FRAME_SHORT_BYTES) {
			memcpy(frames->bytes + frames->len, frames->in + frames->in_pos, n);
			frames->len += n;
		}
		frames->in_pos += n;
		left -= n;
	}
	frames->end += SKIPPABLE_HEAD_BYTES + len;
	return MT_FRAME_SKIPPABLE;
}

static int decoder_problem(struct mt_frames *frames, size_t zstd_error)
{
	switch (ZSTD_getErrorCode(zstd_error)) {
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	case ZSTD_error_frameParameter_windowTooLarge:
		return bad(frames, "a frame needs more memory than an artifact's may");
	case ZSTD_error_checksum_wrong:
		return bad(frames, "a damaged frame: wrong checksum");
	case ZSTD_error_dictionary_wrong:
		return bad(frames, "a frame that needs a dictionary");
	default:
		return bad(frames, "a damaged frame");
	}
}

/* Decompresses to the frame's end. */
static int decompress(struct mt_frames *frames)
{
	uint64_t in_bytes = 0;
	size_t more;

	do {
		ZSTD_inBuffer in = { frames->in, frames->in_len, frames->in_pos };
		ZSTD_outBuffer out = { frames->bytes, frames->cap, frames->len };
		int r;

		more = ZSTD_decompressStream(frames->decoder, &out, &in);
		XXH64_update(frames->digest, frames->in + frames->in_pos, in.pos - frames->in_pos);
		in_bytes += in.pos - frames->in_pos;
		frames->in_pos = in.pos;
		frames->len = out.pos;
		if (ZSTD_isError(more))
			return decoder_problem(frames, more);
		if (in_bytes > frames->max_bytes || frames->len > frames->max_bytes)
			return bad(frames, "a frame is larger than an artifact's may be");
		if (!more)
			break;

		/* What the decoder lacks: room, if it left none, or else bytes. */
		if (out.pos == out.size) {
			r = make_room(frames);
			if (r < 0)
				return r;
		} else if (in.pos == in.size) {
			r = fill(frames);
			if (r < 0)
				return r;
			if (r == 0)
				return bad(frames, "the file ends inside a frame");
		}
	} while (more);
	frames->end += in_bytes;
	return MT_FRAME_DATA;
}

int mt_frames_next(struct mt_frames *frames)
{
	int r;

	if (frames->problem)
		return -EBADMSG;
	frames->len = 0;
	if (!frames->cap) {
		r = make_room(frames);
		if (r < 0)
			return r;
	}
	r = begin(frames);
	if (r == MT_FRAME_SKIPPABLE)
		return skip(frames);
	if (r <= 0)
		return r;
	ZSTD_DCtx_reset(frames->decoder, ZSTD_reset_session_only);
	return decompress(frames);
}
