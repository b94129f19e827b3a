/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * writer.h - records in, an artifact's frames out
 *
 * Contract
 *   Input:     records in an order in which each comes before the first that names it;
 *              what is passed is copied before the call returns.
 *   Ownership: mt_writer_new() takes fd, and closes it if it fails; mt_writer_finish()
 *              or else mt_writer_free() closes it.  The latter takes NULL, and writes
 *              nothing: call mt_writer_finish() first.
 *   Errors:    negative errno, of write(2) mostly; -EINVAL for an id out of order or not
 *              there; -ESHUTDOWN after mt_writer_finish().  The first one sticks: each
 *              later call returns it and writes nothing, and what is in the file by then
 *              is whole frames that a reader accepts (a frame that was cut by a full disk
 *              is cut off again where the file can be truncated).
 *              -ESTALE: somebody else has made the file shorter.
 *              SIGPIPE and SIGXFSZ are the caller's to ignore.
 *   Threads:   one at a time.
 *   Bounds:    a frame holds at most MT_WRITER_FRAME_EVENTS events, and is written when
 *              that many are there, when its other records are about a MiB, its mappings
 *              and kept stacks about four, or when mt_writer_flush() is called.  The writer
 *              never holds more than one, and tables of 16 MiB at most.
 *
 * Modules, symbols, nodes and threads are in the file before all events of the same frame,
 * mappings and kept stacks, in their order, behind them; other records and events stay in
 * their order.
 */
#include <stdbool.h>

#include "artifact/format.h"

struct mt_writer;

#define MT_WRITER_FRAME_EVENTS 65536

int mt_writer_new(int fd, const struct mt_header *header, struct mt_writer **ret);
void mt_writer_free(struct mt_writer *writer);

int mt_writer_module(struct mt_writer *writer, const struct mt_module *module);
int mt_writer_symbols(struct mt_writer *writer, const struct mt_module_symbols *symbols);
int mt_writer_node(struct mt_writer *writer, const struct mt_node *node);
int mt_writer_process(struct mt_writer *writer, const struct mt_process *process);
int mt_writer_process_end(struct mt_writer *writer, const struct mt_process_end *end);
int mt_writer_thread(struct mt_writer *writer, const struct mt_thread_info *thread);
int mt_writer_not_tracked(struct mt_writer *writer, const struct mt_not_tracked *what);
int mt_writer_mappings(struct mt_writer *writer, const struct mt_mappings *mappings);
int mt_writer_kept_stack(struct mt_writer *writer, const struct mt_kept_stack *stack);
int mt_writer_event(struct mt_writer *writer, const struct mt_event *event);

/* Writes what has come since the last frame as a frame; nothing if nothing has come. */
int mt_writer_flush(struct mt_writer *writer);

/* Flushes, writes the footer and makes sure of it (fsync is not meant: close errors are). */
int mt_writer_finish(struct mt_writer *writer, const struct mt_footer *footer);

/*
 * From here on observe is told of each frame, right before it is written and, if that went
 * well, right after; NULL: nobody is.
 */
struct mt_writer_frame {
	uint32_t events;
	uint64_t packed_bytes; /* msgpack */
	uint64_t frame_bytes;  /* zstd, and what fills the file up */
	bool written;
};
void mt_writer_observe(struct mt_writer *writer,
		       void (*observe)(void *ctx, const struct mt_writer_frame *frame), void *ctx);

/* Bytes in the file so far. */
uint64_t mt_writer_bytes(const struct mt_writer *writer);
