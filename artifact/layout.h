/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * layout.h - the names and limits of doc/FORMAT.md that writer and reader share
 *
 * A record is an array whose first element is its kind.  What is a table (nodes, infos,
 * events) comes in blocks: [kind, number of the first row, rows, columns].
 */
#define MT_SIGNATURE "memtrack artifact"

/* Skippable frames around the others: the head, for who looks at the file, and the seal.
 * A seal is MT_SEAL and the XXH64 of all zstd frames before it, little-endian. */
#define MT_FRAME_MAGIC 0x184d2a5d
#define MT_HEAD MT_SIGNATURE "\n"
#define MT_HEAD_BYTES (sizeof(MT_HEAD) - 1)
#define MT_SEAL "memtrack"
#define MT_SEAL_BYTES (sizeof(MT_SEAL) - 1 + 8)
/* And a skippable frame of zeros, where a file is shorter than artifact/weight.h has it. */
#define MT_FILLING_MAGIC 0x184d2a5e

#define MT_KIND_HEADER "header"
#define MT_KIND_MODULE "module"
#define MT_KIND_SYMBOLS "symbols"
#define MT_KIND_PROCESS "process"
#define MT_KIND_PROCESS_END "process-end"
#define MT_KIND_THREAD "thread"
#define MT_KIND_NOT_TRACKED "not-tracked"
#define MT_KIND_NODES "nodes"
#define MT_KIND_INFOS "infos"
#define MT_KIND_EVENTS "events"
#define MT_KIND_MAPPINGS "mappings"
#define MT_KIND_KEPT_STACK "kept-stack"
#define MT_KIND_FOOTER "footer"

/* Rows in a block at most. */
#define MT_BLOCK_ROWS 65536
/* Rows of the table of infos at most; it starts over with a block whose first row is 0. */
#define MT_INFOS_MAX (1u << 18)
