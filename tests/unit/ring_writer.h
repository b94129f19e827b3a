/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * ring_writer.h - the shim's end of a ring, for tests of the collector's
 *
 * Apart from the test, because a process has one of shim and collector only, and their names
 * show that.
 */
#include <stdbool.h>
#include <stdint.h>

#include "wire/ring.h"

/* The ring that ring_writer_append() appends to from here on; rseq: by a restartable sequence,
 * where there are some. */
void ring_writer_take(struct mt_thread *head, void *cells, uint32_t bytes, uint32_t slot,
		      struct mt_control *control, struct mt_gate *gate, bool rseq);

/* One cell; false: the ring is full. */
bool ring_writer_append(void);
/* The same, and waits for room. */
void ring_writer_wait_and_append(void);

/* Parks while an episode is latched. */
void ring_writer_heed(void);
/* Whether system calls may end the process: then whoever waits makes none. */
void ring_writer_sandbox(bool sandbox);
