/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * sample_artifact.h - artifacts in memory: one with every kind of record, and any bytes
 *
 * Contract
 *   Ownership: bytes are the caller's, to free(3).
 *   Errors:    each aborts on an error that only the machine can make (memory, memfd).
 */
#include <stddef.h>
#include <stdint.h>

#include "artifact/reader.h"

struct artifact_bytes {
	uint8_t *bytes;
	size_t len;
};

/*
 * Records of each kind with the least and greatest values they can have, in several frames.
 * ret_text: what artifact_text.h makes of them, from the records that were written (not
 * from reading them again).
 */
struct artifact_bytes sample_artifact(char **ret_text);

/* The msgpack objects of a good artifact's frames, as one piece. */
struct artifact_bytes artifact_content(struct artifact_bytes artifact);

/* Makes a zstd frame of content, and appends it. */
void artifact_append_frame(struct artifact_bytes *artifact, const void *content, size_t len);
void artifact_append(struct artifact_bytes *artifact, const void *bytes, size_t len);

/* mt_reader_read() from memory.  ret_text, unless NULL: what was delivered. */
int artifact_read(const void *bytes, size_t len, struct mt_reader_result *ret, char **ret_text);

/* A memfd with bytes, at its start. */
int artifact_fd(const void *bytes, size_t len);
struct artifact_bytes artifact_of_fd(int fd);
