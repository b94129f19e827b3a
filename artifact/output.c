/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output.c - see output.h for the contract
 *
 * Invariants
 *   - What is in the file are whole writes, but for a failure in a file that can not be
 *     truncated.
 */
#include "artifact/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/layout.h"
#include "base/cleanup.h"
#include "base/err.h"

#define SKIPPABLE_HEAD_BYTES 8

/* Where the artifact starts, if the file can be cut. */
static off_t start_of(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return flags & O_APPEND ? st.st_size : lseek(fd, 0, SEEK_CUR);
}

void mt_output_init(struct mt_output *output, int fd)
{
	*output = (struct mt_output){ .fd = fd, .start = start_of(fd) };
}

void mt_output_done(struct mt_output *output)
{
	mt_closep(&output->fd);
	free(output->bytes);
	*output = (struct mt_output){ .fd = -1 };
}

int mt_output_reserve(struct mt_output *output, size_t len)
{
	uint8_t *bytes;

	if (len <= output->cap - output->len)
		return 0;
	bytes = realloc(output->bytes, output->len + len);
	if (!bytes)
		return -ENOMEM;
	output->bytes = bytes;
	output->cap = output->len + len;
	return 0;
}

static void put_head(uint8_t *at, uint32_t magic, size_t len)
{
	mt_put_little_endian(at, magic, 4);
	mt_put_little_endian(at + 4, len, 4);
}

int mt_output_skippable(struct mt_output *output, const void *content, uint32_t len)
{
	int r = mt_output_reserve(output, SKIPPABLE_HEAD_BYTES + (size_t)len);
	uint8_t *at = output->bytes + output->len;

	if (r < 0)
		return r;
	put_head(at, MT_FRAME_MAGIC, len);
	memcpy(at + SKIPPABLE_HEAD_BYTES, content, len);
	output->len += SKIPPABLE_HEAD_BYTES + (size_t)len;
	return 0;
}

int mt_output_fill(struct mt_output *output, size_t at, size_t len)
{
	uint8_t *filling;
	int r;

	if (len < SKIPPABLE_HEAD_BYTES)
		len = SKIPPABLE_HEAD_BYTES;
	r = mt_output_reserve(output, len);
	if (r < 0)
		return r;
	filling = output->bytes + at;
	memmove(filling + len, filling, output->len - at);
	memset(filling, 0, len);
	put_head(filling, MT_FILLING_MAGIC, len - SKIPPABLE_HEAD_BYTES);
	output->len += len;
	return 0;
}

/* Takes back what a write left of a frame that did not go whole. */
static void cut_off(struct mt_output *output)
{
	off_t end = output->start + (off_t)output->written;

	if (output->start >= 0 && ftruncate(output->fd, end) == 0)
		lseek(output->fd, end, SEEK_SET);
}

/* Whether somebody else has made the file shorter: what follows would be behind a hole. */
static bool was_cut(const struct mt_output *output)
{
	struct stat st;

	return output->start >= 0 && fstat(output->fd, &st) == 0 &&
	       st.st_size < output->start + (off_t)output->written;
}

int mt_output_write(struct mt_output *output)
{
	size_t done = 0;

	if (was_cut(output))
		return -ESTALE;
	while (done < output->len) {
		ssize_t n = write(output->fd, output->bytes + done, output->len - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			struct pollfd pollfd = { .fd = output->fd, .events = POLLOUT };

			poll(&pollfd, 1, -1);
		} else if (n == 0 || errno != EINTR) {
			int r = n ? mt_neg_errno() : -EIO;

			cut_off(output);
			return r;
		}
	}
	output->written += output->len;
	output->len = 0;
	return 0;
}

int mt_output_close(struct mt_output *output)
{
	return close(mt_take_fd(&output->fd)) < 0 ? mt_neg_errno() : 0;
}
