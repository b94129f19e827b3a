/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make_bomb.c - an artifact on stdout that says gigabytes in some ten KB
 *
 *   make_bomb blocks      of blocks that live
 *             nodes       of nodes, and a chain of each
 *             threads     of threads, and a begun realloc of each
 *             depth       of frames in one chain
 *
 * Not by the writer, which fills up what is short for its content (artifact/weight.h).
 */
#include <msgpack.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "artifact/columns.h"
#include "artifact/format.h"
#include "artifact/layout.h"
#include "tests/sample_artifact.h"

/* Blocks of the most rows that a frame has room for, 3 bytes a row. */
#define BLOCKS 320
#define THREADS 1000000
#define ZSTD_LEVEL 15

static msgpack_sbuffer buffer;
static msgpack_packer packer;
static struct artifact_bytes bomb;
static uint64_t events, nodes;

static void must(int good)
{
	if (!good)
		abort();
}

static void put_kind(const char *kind, size_t elements)
{
	msgpack_pack_array(&packer, elements);
	msgpack_pack_str_with_body(&packer, kind, strlen(kind));
}

static void put_number(uint64_t value)
{
	msgpack_pack_uint64(&packer, value);
}

static void put_string(const char *text)
{
	msgpack_pack_bin_with_body(&packer, text, strlen(text));
}

static void end_frame(void)
{
	size_t bound = ZSTD_compressBound(buffer.size), len;
	uint8_t *frame = malloc(bound);

	must(frame != NULL);
	len = ZSTD_compress(frame, bound, buffer.data, buffer.size, ZSTD_LEVEL);
	must(!ZSTD_isError(len));
	artifact_append(&bomb, frame, len);
	free(frame);
	msgpack_sbuffer_clear(&buffer);
}

/* rows values from first on, each so much more than the one before. */
static void put_column(const char *name, uint32_t rows, uint64_t first, uint64_t step)
{
	struct mt_column column;

	must(mt_column_init(&column, name, step ? "delta" : "runs") == 0);
	for (uint64_t i = 0; i < rows; i++)
		(step ? mt_column_delta : mt_column_runs)(&column, first + i * step);
	mt_column_end(&column);
	msgpack_pack_array(&packer, 3);
	msgpack_pack_str_with_body(&packer, column.name, strlen(column.name));
	msgpack_pack_str_with_body(&packer, column.encoding, strlen(column.encoding));
	msgpack_pack_bin_with_body(&packer, column.bytes, column.len);
	mt_column_done(&column);
}

static void put_block(const char *kind, uint64_t first, uint32_t rows)
{
	put_kind(kind, 4);
	put_number(first);
	put_number(rows);
	msgpack_pack_array(&packer, 4);
}

static void put_infos(uint32_t rows, uint64_t node, uint64_t step, uint64_t type)
{
	put_block(MT_KIND_INFOS, 0, rows);
	put_column("node", rows, node, step);
	put_column("size", rows, 24, 0);
	put_column("type", rows, type, 0);
	put_column("function", rows, 1, 0);
}

/* Event i of the block is of the info i * step and the thread thread + i * thread_step. */
static void put_events(uint32_t rows, uint64_t step, uint64_t thread, uint64_t thread_step)
{
	put_block(MT_KIND_EVENTS, events, rows);
	put_column("info", rows, 0, step);
	put_column("thread", rows, thread, thread_step);
	put_column("time", rows, events, 0);
	put_column("address", rows, 4096 + 16 * events, 16);
	events += rows;
}

static void put_nodes(uint32_t rows, uint64_t parent, uint64_t step)
{
	put_block(MT_KIND_NODES, MT_NODE_FIRST + nodes, rows);
	put_column("parent", rows, parent, step);
	put_column("module", rows, UINT32_MAX, 0);
	put_column("offset", rows, 1, 0);
	put_column("exact", rows, 0, 0);
	nodes += rows;
}

static void put_process(void)
{
	put_kind(MT_KIND_PROCESS, 8);
	put_number(1);
	put_number(0);
	for (uint64_t i = 1; i <= 3; i++)
		put_number(i);
	put_string("");
	put_string("");
}

static void put_thread(uint64_t id)
{
	put_kind(MT_KIND_THREAD, 6);
	put_number(id);
	put_number(1);
	put_number(1);
	put_number(1);
	put_string("");
}

static void put_start(void)
{
	msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
	put_kind(MT_SIGNATURE, 2);
	put_number(MT_FORMAT_VERSION);
	put_kind(MT_KIND_HEADER, 8);
	for (uint64_t i = 1; i <= 4; i++)
		put_number(i);
	put_string("x86_64");
	put_string("make_bomb");
	msgpack_pack_array(&packer, 0);
	put_process();
	put_thread(1);
	put_infos(1, 1, 0, MT_EVENT_ALLOC);
	end_frame();
}

static void put_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++)
		put_events(MT_BLOCK_ROWS, 0, 1, 0);
}

static void put_chains(void)
{
	for (int i = 0; i < BLOCKS / 3; i++) {
		put_nodes(MT_BLOCK_ROWS, 1, 0);
		put_infos(MT_BLOCK_ROWS, MT_NODE_FIRST + nodes - MT_BLOCK_ROWS, 1, MT_EVENT_ALLOC);
		put_events(MT_BLOCK_ROWS, 1, 1, 0);
	}
}

static void put_threads(void)
{
	put_infos(1, 0, 0, MT_EVENT_REALLOC_BEGIN);
	for (uint64_t id = 2; id < THREADS; id++) {
		put_thread(id);
		if (id % MT_BLOCK_ROWS == 0)
			put_events(MT_BLOCK_ROWS, 0, id - MT_BLOCK_ROWS + 1, 1);
	}
}

static void put_depth(void)
{
	put_nodes(1, 1, 0);
	put_nodes(MT_BLOCK_ROWS, MT_NODE_FIRST, 1);
	put_infos(1, MT_NODE_FIRST + MT_BLOCK_ROWS, 0, MT_EVENT_ALLOC);
	put_events(1, 0, 1, 0);
}

/* clang-format off */
static const struct {
	const char *kind;
	void (*put)(void);
} bombs[] = {
	{ "blocks", put_blocks },
	{ "nodes", put_chains },
	{ "threads", put_threads },
	{ "depth", put_depth },
};
/* clang-format on */

int main(int argc, char **argv)
{
	size_t i = 0, n = sizeof(bombs) / sizeof(bombs[0]);

	while (i < n && (argc != 2 || strcmp(argv[1], bombs[i].kind) != 0))
		i++;
	if (i == n) {
		fprintf(stderr, "make_bomb: what of?\n");
		return 1;
	}
	put_start();
	bombs[i].put();
	end_frame();
	must(fwrite(bomb.bytes, 1, bomb.len, stdout) == bomb.len && fflush(stdout) == 0);
	free(bomb.bytes);
	msgpack_sbuffer_destroy(&buffer);
	return 0;
}
