/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * batch.h - records on their way from the merge to the writer, in order
 *
 * A batch is a block of bytes that holds the writer's records (artifact/format.h) one
 * behind the other, strings and arrays included; mt_batch_write() hands them to a writer.
 *
 * Contract
 *   Ownership: what is added is copied.  mt_batch_new() gives a batch for mt_batch_free(),
 *              which takes NULL.
 *   Errors:    -ENOSPC: it does not fit, the batch is as before; a record that would not
 *              fit in an empty batch: -EMSGSIZE.
 *   Threads:   one at a time.
 *   Bounds:    MT_BATCH_BYTES.
 */
#include <stdbool.h>

#include "artifact/format.h"
#include "artifact/writer.h"

#define MT_BATCH_BYTES (192 * 1024)

enum mt_batch_kind {
	MT_BATCH_EVENT,	      /* struct mt_event */
	MT_BATCH_MODULE,      /* struct mt_module */
	MT_BATCH_SYMBOLS,     /* struct mt_module_symbols */
	MT_BATCH_PROCESS,     /* struct mt_process */
	MT_BATCH_PROCESS_END, /* struct mt_process_end */
	MT_BATCH_THREAD,      /* struct mt_thread_info */
	MT_BATCH_NOT_TRACKED, /* struct mt_not_tracked */
	MT_BATCH_MAPPINGS,    /* struct mt_mappings */
	MT_BATCH_KEPT_STACK,  /* struct mt_kept_stack */
};

/*
 * Events and nodes are nearly all of a batch.  They are put down in it as they are made, short:
 * a copy is what costs most of them, as is what goes from one core to another.
 */
struct mt_batch_event {
	uint8_t tag; /* the batch's */
	uint8_t type, function;
	uint8_t spare;
	uint32_t thread;
	uint64_t time_ns;
	uint64_t address;
	uint32_t size; /* one that has more bits comes by mt_batch_add() */
	uint32_t node;
};

struct mt_batch_node {
	uint8_t tag; /* the batch's */
	uint8_t exact;
	uint8_t spare[2];
	uint32_t id;
	uint32_t parent;
	uint32_t module;
	uint64_t offset;
};

struct mt_batch;

int mt_batch_new(struct mt_batch **ret);
void mt_batch_free(struct mt_batch *batch);
void mt_batch_clear(struct mt_batch *batch);
bool mt_batch_empty(const struct mt_batch *batch);

/* record: the struct of artifact/format.h that the kind says. */
int mt_batch_add(struct mt_batch *batch, enum mt_batch_kind kind, const void *record);

/* An event, a node, whose other members are for the caller to fill in, before anything else is
 * done with the batch; NULL: it does not fit. */
struct mt_batch_event *mt_batch_event(struct mt_batch *batch);
struct mt_batch_node *mt_batch_node(struct mt_batch *batch);

/* Hands all records to the writer, in order; stops at its first error and returns it. */
int mt_batch_write(const struct mt_batch *batch, struct mt_writer *writer);
