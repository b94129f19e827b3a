/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * reader.h - an artifact in, records out by callback
 *
 * Contract
 *   Input:     any bytes: the file is hostile.  Every length, id and type is checked
 *              before it is used; memory does not depend on a declared length.
 *   Ownership: fd stays the caller's.  Strings and arrays that a callback is given are
 *              the reader's, until the callback returns.
 *   Errors:    -EBADMSG: not an artifact (no header); -EPROTONOSUPPORT: of a newer
 *              version, result->version says which; -ENOMEM; -EIO and the like from
 *              read(2); a negative value from a callback, which ends the reading.
 *              A file that is cut or damaged after the header is not an error: what
 *              was whole before that is delivered, and the result says what is wrong.
 *              *ret is written in any case.
 *   Threads:   none of its own.
 *   Bounds:    memory: a frame compressed, decompressed and its window, each limited
 *              (MT_READER_FRAME_BYTES), and about 10 MiB, a kept stack's words among them.
 *              2 bytes for each node besides.  What a user can be made to keep:
 *              MT_READER_DEFINED_BYTES, and of all records together so much for each byte
 *              of the file (artifact/weight.h).  Time: the bytes of the frames and the rows
 *              of blocks, which are limited by the bytes of the file.  No chain is longer
 *              than MT_READER_CHAIN_FRAMES.  Nothing is read after the first thing that is
 *              wrong; an fd that never ends and never is wrong is the caller's to refuse.
 */
#include "artifact/format.h"

#define MT_READER_FRAME_BYTES (64u * 1024 * 1024)
/* All records but header, infos, events and kept stacks, as the structs of format.h with their
 * strings. */
#define MT_READER_DEFINED_BYTES (512u * 1024 * 1024)
/* Of a chain.  A stack of 64 KiB has half as many words, and a frame one at least. */
#define MT_READER_CHAIN_FRAMES 16384

/* Each may be NULL.  Order: the file's. */
struct mt_reader_callbacks {
	int (*header)(void *ctx, const struct mt_header *header);
	int (*module)(void *ctx, const struct mt_module *module);
	int (*symbols)(void *ctx, const struct mt_module_symbols *symbols);
	int (*node)(void *ctx, const struct mt_node *node);
	int (*process)(void *ctx, const struct mt_process *process);
	int (*process_end)(void *ctx, const struct mt_process_end *end);
	int (*thread)(void *ctx, const struct mt_thread_info *thread);
	int (*not_tracked)(void *ctx, const struct mt_not_tracked *what);
	int (*mappings)(void *ctx, const struct mt_mappings *mappings);
	int (*kept_stack)(void *ctx, const struct mt_kept_stack *stack);
	int (*event)(void *ctx, const struct mt_event *event);
	int (*footer)(void *ctx, const struct mt_footer *footer);
};

struct mt_reader_result {
	uint32_t version;    /* of the file's header */
	int complete;	     /* the footer was there, and what came before it is whole */
	uint64_t good_bytes; /* up to here, the end of a frame, the file is whole */
	uint64_t file_bytes; /* of a regular file; of another the bytes that were read */
	uint64_t skipped;    /* records of unknown type, skipped */
	char problem[160];   /* what is wrong after that, in words; "" if nothing */
};

int mt_reader_read(int fd, const struct mt_reader_callbacks *callbacks, void *ctx,
		   struct mt_reader_result *ret);
