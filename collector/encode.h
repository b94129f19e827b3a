/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * encode.h - the encoder's thread and the bounded queue of batches before it
 *
 * Contract
 *   Ownership: mt_encode_start() borrows writer and stats until mt_encode_stop(), which
 *              frees the object; NULL is taken.
 *   Errors:    negative errno.  An error of the writer is kept and returned by
 *              mt_encode_stop() and mt_encode_error(); batches that come after it are
 *              taken and dropped, so that the tracked program runs on.
 *   Threads:   one puts and pushes; the encoder's own thread writes.
 *   Bounds:    MT_ENCODE_BATCHES batches, made as they are needed.  With none free,
 *              mt_encode_put() waits: the back-pressure reaches the rings, and by them the
 *              program.
 */
#include "artifact/writer.h"
#include "collector/batch.h"
#include "collector/stats.h"

#define MT_ENCODE_BATCHES 16
/* At least every so often, what has come is written as a frame. */
#define MT_ENCODE_FLUSH_NS (200 * 1000 * 1000ULL)

struct mt_encode;

/* stats: what is told of each frame that the writer writes meanwhile; or NULL. */
int mt_encode_start(struct mt_writer *writer, struct mt_stats *stats, struct mt_encode **ret);

/* Puts a record behind those that were put before; record as for mt_batch_add(). */
int mt_encode_put(struct mt_encode *encode, enum mt_batch_kind kind, const void *record);

/* The same for an event, a node: where it is to be put down, before anything else is put. */
struct mt_batch_event *mt_encode_event(struct mt_encode *encode);
struct mt_batch_node *mt_encode_node(struct mt_encode *encode);

/* Hands what was put to the encoder, without waiting for a batch to be full. */
void mt_encode_push(struct mt_encode *encode);

/* Events put so far. */
uint64_t mt_encode_events(const struct mt_encode *encode);

/* How long mt_encode_put() has waited for a free batch, in all. */
uint64_t mt_encode_waited_ns(const struct mt_encode *encode);

/* The writer's first error, or 0. */
int mt_encode_error(struct mt_encode *encode);

/* Nothing more will be put: lets the encoder write the rest, and does not wait for it. */
void mt_encode_end(struct mt_encode *encode);

/* The same, and waits until it is written; returns the writer's first error, or 0. */
int mt_encode_stop(struct mt_encode *encode);
