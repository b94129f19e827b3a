/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_pipeline.c - no tracked process makes the collector crash, or its artifact unreadable
 *
 * An input is what targets do to their shared memory, one operation behind the other, in an
 * inline run whose artifact is a memfd: cells that are what they should be but for their
 * numbers, cells of any bytes, records in pieces, heads that jump.  In between the collector
 * has its passes.  Input that ends early reads as zeros.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "artifact/reader.h"
#include "artifact/writer.h"
#include "collector/encode.h"
#include "collector/pipeline.h"
#include "collector/segments.h"
#include "tests/fuzz/fuzz.h"
#include "wire/stack_record.h"

#define RING_BYTES 4096
#define SLOTS 16u
#define OPERATIONS_MAX 2000
/* Above the numbers that processes can have. */
#define TGIDS (1u << 23)

enum operation {
	ANY_CELL,
	THREAD,
	PROCESS,
	ALLOC,
	FREE,
	REALLOC_BEGIN,
	REALLOC_END,
	LOSS,
	ANY_RECORD,
	MODULE,
	STACK,
	ARRIVE,
	HEAD,
	PASS,
	SKIP,
	COUNTERS,
};

struct input {
	const uint8_t *bytes;
	size_t len;
};

struct run {
	struct mt_segments *segments;
	struct mt_encode *encode;
	struct mt_pipeline *pipeline;
	uint64_t time_ns;
	uint64_t notes;
	uint16_t id; /* of the next record */
};

static void must(int good)
{
	if (!good)
		abort();
}

static void take(struct input *in, void *ret, size_t len)
{
	size_t n = len < in->len ? len : in->len;

	memset(ret, 0, len);
	if (!n)
		return;
	memcpy(ret, in->bytes, n);
	in->bytes += n;
	in->len -= n;
}

static uint8_t take_byte(struct input *in)
{
	uint8_t byte;

	take(in, &byte, 1);
	return byte;
}

/* Mostly a small number, now and then any. */
static uint64_t take_number(struct input *in)
{
	uint64_t number = take_byte(in);

	if (number == 0xff)
		take(in, &number, sizeof(number));
	return number;
}

static void put(struct run *run, uint32_t slot, const struct mt_cell *cell)
{
	struct mt_thread *thread = mt_segments_thread(run->segments, slot);
	char *cells = (char *)mt_segments_cells(run->segments, slot);
	uint64_t at = thread->head % RING_BYTES;

	/* What waits for room in a target has the collector move on here. */
	if (thread->head - thread->tail >= RING_BYTES)
		must(mt_pipeline_pass(run->pipeline) >= 0);
	memcpy(cells + (at < RING_BYTES - sizeof(*cell) ? at : RING_BYTES - sizeof(*cell)), cell,
	       sizeof(*cell));
	thread->head += sizeof(*cell);
}

static void put_cell(struct run *run, uint32_t slot, uint64_t head, uint64_t w1, uint64_t w2)
{
	struct mt_cell cell = { head, { ++run->time_ns, w1, w2 } };

	put(run, slot, &cell);
}

static void put_event(struct run *run, struct input *in, uint32_t slot, uint8_t type)
{
	uint8_t kind = take_byte(in);
	uint16_t name = (uint16_t)take_number(in);
	uint32_t seq = (uint32_t)take_number(in);
	uint64_t address = take_number(in);

	put_cell(run, slot, MT_CELL_HEAD(type, kind, name, seq), address, take_number(in));
}

static void put_record(struct run *run, uint32_t slot, uint8_t kind, const void *record, size_t len)
{
	uint32_t pieces = (uint32_t)((len + MT_PIECE_BYTES - 1) / MT_PIECE_BYTES);

	run->id++;
	for (uint32_t i = 0; i < pieces; i++) {
		size_t at = (size_t)i * MT_PIECE_BYTES;
		struct mt_cell cell = { MT_CELL_HEAD(MT_CELL_PIECE, kind, i,
						     (uint32_t)run->id << 16 | pieces),
					{ 0 } };

		memcpy(cell.w, (const char *)record + at,
		       len - at < MT_PIECE_BYTES ? len - at : MT_PIECE_BYTES);
		put(run, slot, &cell);
	}
}

static void put_any_record(struct run *run, struct input *in, uint32_t slot)
{
	uint8_t kind = take_byte(in), record[8 * 256];
	size_t len = 8 * (size_t)take_byte(in);

	take(in, record, len);
	put_record(run, slot, kind, record, len);
}

static void put_module(struct run *run, struct input *in, uint32_t slot)
{
	static const char *const paths[] = { "/bin/true", "/nowhere", "/dev/null", "/", "" };
	struct {
		struct mt_module_record head;
		char path[16];
	} record = { 0 };

	record.head.len = sizeof(record);
	record.head.flags = (uint32_t)take_number(in);
	record.head.time_ns = ++run->time_ns;
	record.head.bias = take_number(in);
	record.head.start = take_number(in) << 12;
	record.head.end = record.head.start + (take_number(in) << 12);
	record.head.build_id_bytes = (uint32_t)take_number(in);
	strcpy(record.path, paths[take_byte(in) % (sizeof(paths) / sizeof(paths[0]))]);
	put_record(run, slot, MT_RECORD_MODULE, &record, sizeof(record));
}

static void put_stack(struct run *run, struct input *in, uint32_t slot)
{
	struct {
		struct mt_stack_record head;
		uint64_t words[64];
	} record = { 0 };
	size_t n = take_byte(in) % 64;

	record.head.len = (uint32_t)(sizeof(record.head) + 8 * n);
	record.head.kind = take_byte(in);
	record.head.seq = (uint32_t)take_number(in);
	record.head.start = 0x7ffe0000 + 8 * take_number(in);
	record.head.end = record.head.start + 8 * n;
	record.head.digest = take_number(in);
	record.head.ref_digest = take_number(in);
	record.head.mask[0] = take_number(in);
	take(in, record.words, 8 * n);
	put_record(run, slot, MT_RECORD_STACK, &record, record.head.len);
}

static void arrive(struct run *run, struct input *in)
{
	struct mt_arrival arrival = {
		.process_id = take_number(in),
		.tgid = TGIDS + take_byte(in) % 8,
		.inner_tgid = TGIDS + take_byte(in) % 8,
		.clock_offset_ns = (int64_t)take_number(in),
		.time_ns = ++run->time_ns,
	};

	take(in, arrival.exe, take_byte(in) % (sizeof(arrival.exe) - 1));
	(void)mt_pipeline_arrive(run->pipeline, &arrival);
}

static void operate(struct run *run, struct input *in)
{
	uint8_t byte = take_byte(in);
	uint32_t slot = byte % SLOTS;
	struct mt_cell cell;
	uint64_t number;

	switch ((enum operation)(byte / SLOTS)) {
	case ANY_CELL:
		take(in, &cell, sizeof(cell));
		put(run, slot, &cell);
		break;
	case THREAD:
		number = take_number(in);
		put_cell(run, slot, MT_CELL_HEAD(MT_CELL_THREAD, take_byte(in) % 3, 0, 0), number,
			 (uint64_t)take_byte(in) << 32 | (TGIDS + take_byte(in) % 8));
		break;
	case PROCESS:
		number = take_number(in);
		put_cell(run, slot, MT_CELL_HEAD(MT_CELL_PROCESS, take_byte(in) % 3, 0, 0), number,
			 take_number(in));
		break;
	case ALLOC:
	case FREE:
	case REALLOC_BEGIN:
	case REALLOC_END:
		put_event(run, in, slot, (uint8_t)(MT_CELL_ALLOC + byte / SLOTS - ALLOC));
		break;
	case LOSS:
		put_cell(run, slot, MT_CELL_HEAD(MT_CELL_LOSS, 0, 0, 0), take_number(in), 0);
		break;
	case ANY_RECORD:
		put_any_record(run, in, slot);
		break;
	case MODULE:
		put_module(run, in, slot);
		break;
	case STACK:
		put_stack(run, in, slot);
		break;
	case ARRIVE:
		arrive(run, in);
		break;
	case HEAD:
		take(in, &mt_segments_thread(run->segments, slot)->head, 8);
		break;
	case PASS:
		must(mt_pipeline_pass(run->pipeline) >= 0);
		break;
	case SKIP:
		mt_pipeline_skip(run->pipeline);
		break;
	case COUNTERS:
		take(in, &run->segments->control->next_process, 8);
		take(in, &run->segments->control->lost_events, 8);
		break;
	}
}

static void note(void *ctx, const char *text)
{
	struct run *run = ctx;

	run->notes += strlen(text);
}

static void open_run(struct run *run, struct mt_writer *writer, bool keep_stacks)
{
	struct mt_segments_config segments = { .budget_bytes = 4096,
					       .ring_bytes = RING_BYTES,
					       .control_fd = -1,
					       .bpf_references_fd = -1 };
	struct mt_pipeline_config pipeline = {
		.shim_name = "shim", .note = note, .ctx = run, .keep_stacks = keep_stacks
	};
	struct mt_welcome welcome;

	must(mt_segments_open(&segments, &run->segments) == 0);
	for (uint32_t i = 0; i < SLOTS; i += MT_CHUNK_SLOTS)
		must(mt_segments_give_chunk(run->segments, false, 1, &welcome) == 0);
	must(mt_encode_start(writer, &run->encode) == 0);
	pipeline.segments = run->segments;
	pipeline.encode = run->encode;
	must(mt_pipeline_new(&pipeline, &run->pipeline) == 0);
}

/* What was written can be read, to its end, and has as many events as the collector says. */
static void close_run(struct run *run, struct mt_writer *writer, int fd)
{
	static const struct mt_reader_callbacks callbacks = { 0 };
	struct mt_pipeline_counts counts;
	struct mt_reader_result result;
	struct mt_footer footer = { 0 };

	must(mt_pipeline_finish(run->pipeline) == 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		must(mt_segments_thread(run->segments, i)->head ==
		     mt_segments_thread(run->segments, i)->tail);
	mt_pipeline_counts(run->pipeline, &counts);
	footer.events = counts.events;
	must(mt_encode_stop(run->encode) == 0);
	must(mt_writer_finish(writer, &footer) == 0);
	mt_writer_free(writer);
	mt_pipeline_free(run->pipeline);
	mt_segments_close(run->segments);
	must(lseek(fd, 0, SEEK_SET) == 0);
	must(mt_reader_read(fd, &callbacks, NULL, &result) == 0 && result.complete);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct mt_header header = { .machine = "x86_64", .program = "fuzz" };
	struct input in = { bytes, len };
	struct mt_writer *writer;
	struct run run = { 0 };
	int fd = memfd_create("artifact", MFD_CLOEXEC);

	must(fd >= 0 && mt_writer_new(dup(fd), &header, &writer) == 0);
	open_run(&run, writer, len % 2);
	for (int i = 0; in.len && i < OPERATIONS_MAX; i++)
		operate(&run, &in);
	close_run(&run, writer, fd);
	return 0;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

/* Operations of all kinds, or of a few, with small numbers, or not. */
static void run_random(uint64_t seed)
{
	uint8_t bytes[4096], kinds[4];
	uint64_t state = seed;
	size_t len = next_random(&state) % sizeof(bytes);

	for (size_t i = 0; i < sizeof(kinds); i++)
		kinds[i] = (uint8_t)(next_random(&state) % 16 * 16);
	for (size_t i = 0; i < len; i++) {
		bytes[i] = (uint8_t)next_random(&state);
		if (seed % 3 == 1 && i % 8 != 0)
			bytes[i] %= 32;
		if (seed % 3 == 2 && next_random(&state) % 4 == 0)
			bytes[i] = (uint8_t)(kinds[bytes[i] % 4] | (bytes[i] >> 6));
	}
	LLVMFuzzerTestOneInput(bytes, len);
}

/* A process that does all it should; with an operation left out, repeated or changed. */
static void run_story(size_t leave_out, size_t repeat, int change)
{
	static const uint8_t story[][12] = {
		{ ARRIVE * SLOTS, 1, 1, 1, 0, 3, '/', 'a', 'b' },
		{ THREAD * SLOTS, 1, 2, 1, 1 },
		{ PROCESS * SLOTS, 1, MT_PROCESS_START, 0 },
		{ MODULE * SLOTS, 1, 0, 16, 16, 0, 0 },
		{ STACK * SLOTS, 8, MT_STACK_RAW, 1, 0, 5, 0, 0 },
		{ ALLOC * SLOTS, 1, 5, 1, 100, 8 },
		{ PASS * SLOTS },
		{ REALLOC_BEGIN * SLOTS, 3, 0, 0, 100, 0 },
		{ REALLOC_END * SLOTS, 3, 5, 1, 101, 9 },
		{ THREAD * SLOTS + 1, 2, 2, 2, 2 },
		{ PROCESS * SLOTS + 1, 2, MT_PROCESS_FORK, 1 },
		{ FREE * SLOTS + 1, 10, 0, 0, 101, 0 },
		{ PASS * SLOTS },
		{ THREAD * SLOTS, 1, 2, 3, 1 },
		{ FREE * SLOTS, 10, 0, 0, 101, 0 },
		{ LOSS * SLOTS, 3 },
		{ HEAD * SLOTS + 2, 1, 2, 3, 4, 5, 6, 7, 8 },
		{ SKIP * SLOTS },
		{ COUNTERS * SLOTS, 1 },
		{ PASS * SLOTS },
	};
	static const size_t lens[] = {
		9, 5, 4, 7, 8, 6, 1, 6, 6, 5, 4, 6, 1, 5, 6, 2, 9, 1, 11, 1
	};
	uint8_t bytes[512];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (int n = i == leave_out ? 0 : i == repeat ? 3 : 1; n > 0; n--) {
			memcpy(bytes + len, story[i], lens[i]);
			if (n == 2 && change && lens[i] > 1)
				bytes[len + 1 + (size_t)change % (lens[i] - 1)] ^=
					(uint8_t)(1 << change % 8);
			len += lens[i];
		}
	}
	LLVMFuzzerTestOneInput(bytes, len);
}

void fuzz_corpus(void)
{
	for (size_t i = 0; i <= 20; i++) {
		run_story(i, 20, 0);
		for (int change = 0; change < 12; change++)
			run_story(20, i, change);
	}
	for (uint64_t seed = 0; seed < 1000; seed++)
		run_random(seed);
}
