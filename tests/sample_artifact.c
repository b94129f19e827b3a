/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sample_artifact.c - see sample_artifact.h for the contract
 */
#include "tests/sample_artifact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "artifact/writer.h"
#include "tests/artifact_text.h"
#include "wire/control.h"
#include "wire/ring.h"

static void must(int good)
{
	if (!good)
		abort();
}

int artifact_fd(const void *bytes, size_t len)
{
	int fd = memfd_create("artifact", MFD_CLOEXEC);

	must(fd >= 0);
	must(write(fd, bytes, len) == (ssize_t)len);
	must(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

struct artifact_bytes artifact_of_fd(int fd)
{
	struct artifact_bytes ret;
	struct stat st;

	must(fstat(fd, &st) == 0);
	ret.len = (size_t)st.st_size;
	ret.bytes = malloc(ret.len + 1);
	must(ret.bytes && pread(fd, ret.bytes, ret.len, 0) == st.st_size);
	return ret;
}

int artifact_read(const void *bytes, size_t len, struct mt_reader_result *ret, char **ret_text)
{
	static const struct mt_reader_callbacks none;
	size_t text_len;
	FILE *text = ret_text ? open_memstream(ret_text, &text_len) : NULL;
	int fd = artifact_fd(bytes, len);
	int r = mt_reader_read(fd, text ? &mt_artifact_text : &none, text, ret);

	close(fd);
	if (text)
		must(fclose(text) == 0);
	return r;
}

void artifact_append(struct artifact_bytes *artifact, const void *bytes, size_t len)
{
	artifact->bytes = realloc(artifact->bytes, artifact->len + len + 1);
	must(artifact->bytes != NULL);
	memcpy(artifact->bytes + artifact->len, bytes, len);
	artifact->len += len;
}

void artifact_append_frame(struct artifact_bytes *artifact, const void *content, size_t len)
{
	size_t bound = ZSTD_compressBound(len);
	uint8_t *frame = malloc(bound);

	must(frame != NULL);
	len = ZSTD_compress(frame, bound, content, len, 1);
	must(!ZSTD_isError(len));
	artifact_append(artifact, frame, len);
	free(frame);
}

struct artifact_bytes artifact_content(struct artifact_bytes artifact)
{
	struct artifact_bytes ret = { NULL, 0 };
	size_t at = 0;

	while (at < artifact.len) {
		size_t frame = ZSTD_findFrameCompressedSize(artifact.bytes + at, artifact.len - at);
		unsigned long long len;
		uint8_t *content;

		must(!ZSTD_isError(frame));
		/* 0 for a skippable frame */
		len = ZSTD_getFrameContentSize(artifact.bytes + at, frame);
		must(len < (1 << 28));
		content = malloc(len + 1);
		must(content && ZSTD_decompress(content, len, artifact.bytes + at, frame) == len);
		artifact_append(&ret, content, len);
		free(content);
		at += frame;
	}
	return ret;
}

/* A writer and the text of what it is given. */
struct sample {
	struct mt_writer *writer;
	FILE *text;
};

/* Writes a record, and its text: they must agree on what there is. */
#define PUT(sample, kind, ...)                                                    \
	do {                                                                      \
		must(mt_writer_##kind((sample)->writer, &(__VA_ARGS__)) == 0);    \
		must(mt_artifact_text.kind((sample)->text, &(__VA_ARGS__)) == 0); \
	} while (0)

static const uint64_t edges[] = {
	0,	   1,	       127,	   128,	       255,	  256,	      65535,
	65536,	   UINT32_MAX, 1ULL << 32, 1ULL << 62, INT64_MAX, 1ULL << 63, UINT64_MAX - 1,
	UINT64_MAX
};

#define N_EDGES (sizeof(edges) / sizeof(edges[0]))

static char *every_byte(void)
{
	static char text[256];

	for (int i = 0; i < 255; i++)
		text[i] = (char)(i + 1);
	return text;
}

static void put_symbols(struct sample *sample)
{
	const struct mt_symbol symbols[] = {
		{ 0, 0, "", 0, 0 },
		{ UINT64_MAX, UINT64_MAX, every_byte(), UINT32_MAX, 0 },
		{ 0x1000, 0x20, "_ZN1a1bEv", 18, 0 },
	};

	PUT(sample, symbols, (struct mt_module_symbols){ 1, 3, 0, symbols });
	PUT(sample, symbols, (struct mt_module_symbols){ 0, 0, UINT64_MAX, NULL });
	PUT(sample, symbols, (struct mt_module_symbols){ 1, 1, 7, symbols + 2 });
}

static void put_tables(struct sample *sample)
{
	static const uint8_t build_id[20] = { 0, 1, 0xff, 0x80 };

	PUT(sample, module, (struct mt_module){ .path = "", .flags = 0 });
	PUT(sample, module, (struct mt_module){ 1, UINT32_MAX, every_byte(), build_id, 20 });
	put_symbols(sample);
	PUT(sample, process,
	    (struct mt_process){ 1, 0, 1, MT_PROCESS_START, 0, "/bin/a b", "a\xff\n" });
	PUT(sample, process,
	    (struct mt_process){ 2, 1, UINT32_MAX, MT_PROCESS_FORK, UINT64_MAX, "", every_byte() });
	PUT(sample, thread, (struct mt_thread_info){ 1, 1, 1, 0, "main" });
	PUT(sample, thread, (struct mt_thread_info){ 2, 2, UINT32_MAX, UINT64_MAX, every_byte() });
	PUT(sample, thread, (struct mt_thread_info){ 1, 1, 1, 0, "" });
	PUT(sample, not_tracked, (struct mt_not_tracked){ 0, "", every_byte() });
	PUT(sample, not_tracked, (struct mt_not_tracked){ UINT32_MAX, "/bin/musl", "musl" });
}

static void put_nodes(struct sample *sample, uint32_t first)
{
	for (uint32_t i = 0; i < N_EDGES; i++) {
		struct mt_node node = { .id = first + i,
					.parent = i % 3 ? first + i - 1 : i % _MT_STOP_MAX,
					.module = i % 4 == 3 ? UINT32_MAX : i % 2,
					.offset = edges[i],
					.exact = i % 5 == 0 };

		PUT(sample, node, node);
	}
}

static void put_events(struct sample *sample, uint32_t nodes)
{
	for (uint32_t i = 0; i < N_EDGES * N_EDGES; i++) {
		struct mt_event event = { .time_ns = edges[i / N_EDGES],
					  .address = edges[i % N_EDGES],
					  .size = edges[(i * 7 + 3) % N_EDGES],
					  .thread = i / 5 % 2 + 1,
					  .node = i % nodes,
					  .type = (uint8_t)(i % (_MT_EVENT_MAX - 1) + 1),
					  .function = (uint8_t)(i * 11) };

		PUT(sample, event, event);
	}
}

/* Windows of one word and of several, in one group and in two. */
static void put_kept(struct sample *sample, uint32_t id, uint32_t nodes)
{
	static const struct mt_mapping below[] = { { 0, 1, UINT64_MAX, 0, 0 },
						   { 1, 0x1000, 1ULL << 63, 1, UINT32_MAX } };
	static const struct mt_mapping above[] = {
		{ 0x1000, UINT64_MAX, 0, 1, MT_MAPPING_FOUND },
	};
	uint64_t words[20];
	struct mt_kept_stack one = {
		.thread = 1, .node = MT_STOP_BAD, .mappings = id, .end = 8, .words = edges + 12
	};
	struct mt_kept_stack more = {
		.thread = 2,
		.node = nodes - 1,
		.mappings = id,
		.flags = UINT32_MAX,
		.start = (1ULL << 56) - 512 - 16 * 8,
		.end = (1ULL << 56) - 512 + 4 * 8,
		.digest = UINT64_MAX,
		.epoch = UINT32_MAX,
		.words = words,
	};

	for (size_t i = 0; i < 20; i++)
		words[i] = edges[i % N_EDGES];
	PUT(sample, mappings, (struct mt_mappings){ id, 2, below });
	PUT(sample, mappings, (struct mt_mappings){ id, 1, above });
	PUT(sample, kept_stack, one);
	PUT(sample, mappings, (struct mt_mappings){ id + 1, 0, NULL });
	more.mappings = id + 1;
	PUT(sample, kept_stack, more);
}

static void put_end(struct sample *sample)
{
	struct mt_footer footer = { UINT64_MAX, -1, 2 * N_EDGES * N_EDGES, UINT64_MAX, 1ULL << 63 };

	PUT(sample, process_end, (struct mt_process_end){ 2, UINT64_MAX, -1 });
	PUT(sample, process_end, (struct mt_process_end){ 1, 0, INT32_MAX });
	must(mt_artifact_text.footer(sample->text, &footer) == 0);
	must(mt_writer_finish(sample->writer, &footer) == 0);
}

struct artifact_bytes sample_artifact(char **ret_text)
{
	const char *argv[] = { "", "a b", every_byte(), NULL };
	struct mt_header header = {
		.start_ns = UINT64_MAX,
		.wall_ns = 1ULL << 63,
		.capture = MT_CAPTURE_INLINE,
		.budget_bytes = UINT32_MAX,
		.machine = "x86_64",
		.program = "memtrack 0.1.0",
		.argv = argv,
	};
	int fd = artifact_fd("", 0);
	struct artifact_bytes ret;
	struct sample sample;
	size_t text_len;

	sample.text = open_memstream(ret_text, &text_len);
	must(sample.text && mt_artifact_text.header(sample.text, &header) == 0);
	must(mt_writer_new(dup(fd), &header, &sample.writer) == 0);
	put_tables(&sample);
	put_nodes(&sample, MT_NODE_FIRST);
	put_events(&sample, MT_NODE_FIRST + N_EDGES);
	put_kept(&sample, 0, MT_NODE_FIRST + N_EDGES);
	must(mt_writer_flush(sample.writer) == 0);
	must(mt_writer_flush(sample.writer) == 0);
	put_nodes(&sample, MT_NODE_FIRST + N_EDGES);
	put_events(&sample, MT_NODE_FIRST + 2 * N_EDGES);
	put_kept(&sample, 2, MT_NODE_FIRST + 2 * N_EDGES);
	must(mt_writer_flush(sample.writer) == 0);
	put_end(&sample);
	must(mt_writer_bytes(sample.writer) > 0);
	mt_writer_free(sample.writer);
	must(fclose(sample.text) == 0);
	ret = artifact_of_fd(fd);
	close(fd);
	return ret;
}
