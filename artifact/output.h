/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * output.h - a writer's file: bytes are collected, and written at once
 *
 * Contract
 *   Ownership: the descriptor is the output's from mt_output_init() on.
 *   Errors:    -ENOMEM, or of write(2); -ESTALE: somebody else has made the file shorter.
 *              What a write left of the bytes is cut off again where the file can be
 *              truncated.
 *   Threads:   one at a time.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mt_output {
	int fd;
	off_t start;	  /* of the artifact in the file; -1: it can not be truncated */
	uint64_t written; /* since then */
	uint8_t *bytes;	  /* to be written */
	size_t len, cap;
};

void mt_output_init(struct mt_output *output, int fd);
/* Closes it if that was not done yet. */
void mt_output_done(struct mt_output *output);

/* Makes room for so many bytes behind those that are there. */
int mt_output_reserve(struct mt_output *output, size_t len);

/* Appends a skippable frame. */
int mt_output_skippable(struct mt_output *output, const void *content, uint32_t len);

/* Puts len bytes, or a few more, that mean nothing before those from at on. */
int mt_output_fill(struct mt_output *output, size_t at, size_t len);

/* Writes the bytes. */
int mt_output_write(struct mt_output *output);

/* What close(2) says of what was written. */
int mt_output_close(struct mt_output *output);

static inline void mt_put_little_endian(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}
