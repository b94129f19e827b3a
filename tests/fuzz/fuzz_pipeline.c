/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_pipeline.c - no tracked process makes the collector crash, or its artifact unreadable
 *
 * An input is a byte that says how the run is, and what targets do to their shared memory,
 * and the kernel to its rings, one operation behind the other: cells that are what they
 * should be but for their numbers, cells of any bytes, records in pieces, heads that jump.
 * In between the collector has its passes.  The artifact is a memfd.  Input that ends early
 * reads as zeros.
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
#include "tests/fuzz/kernel.h"
#include "wire/life.h"
#include "wire/stack_encode.h"

#define RING_BYTES 4096
#define BUDGET 4096
#define STACK_WORDS 128
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
	LIFE,
	LEARNED,
	OPERATIONS,
};

/* How the run is: bits of the first byte. */
#define KEEPS_STACKS 1
#define HAS_KERNEL 2
#define NO_COMPRESSION 4
#define HAS_FAULTS 8
#define TEACHES 16
#define HOWS 32

struct input {
	const uint8_t *bytes;
	size_t len;
};

struct run {
	struct mt_segments *segments;
	struct mt_encode *encode;
	struct mt_pipeline *pipeline;
	struct mt_probes *kernel; /* NULL: inline capture */
	struct mt_faults *faults; /* or NULL */
	uint64_t time_ns;
	uint64_t notes;
	uint16_t id;	/* of the next record in pieces */
	uint32_t alone; /* number of the next raw window */
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

/* As one blob; what is in it may say something else than its length. */
static void put_blob(struct run *run, uint32_t slot, uint8_t kind, const void *record, size_t len)
{
	struct mt_thread *thread = mt_segments_thread(run->segments, slot);
	char *cells = (char *)mt_segments_cells(run->segments, slot);
	uint64_t head = MT_CELL_HEAD(MT_CELL_BLOB, kind, 0, len);
	uint64_t bytes = mt_blob_cells((uint32_t)len) * sizeof(struct mt_cell);

	if (thread->head - thread->tail > RING_BYTES - bytes)
		must(mt_pipeline_pass(run->pipeline) >= 0);
	for (size_t i = 0; i < sizeof(head); i++)
		cells[(thread->head + i) % RING_BYTES] = ((const char *)&head)[i];
	for (size_t i = 0; i < len; i++)
		cells[(thread->head + sizeof(head) + i) % RING_BYTES] = ((const char *)record)[i];
	thread->head += bytes;
}

/* How a stack record comes: the bits of a byte of input. */
#define BY_BLOB 1    /* not in pieces, nor from the kernel */
#define TWICE 2	     /* again */
#define SPOILT 4     /* with a byte of it changed */
#define WITH_EVENT 8 /* its event behind it */
#define RAW 16	     /* the window as it is */
#define NEW_OWNER 32 /* the slot is claimed before */
#define CAPTURED 64  /* a capture's, not made up */
#define SEALED 128   /* made up, with a check that fits */

static void spoil(struct input *in, char *record, size_t len)
{
	size_t at = take_number(in) % len;

	record[at] ^= (char)take_byte(in);
}

static void send_stack(struct run *run, struct input *in, uint32_t slot, uint8_t how, char *record,
		       size_t len)
{
	if (how & SPOILT)
		spoil(in, record, len);
	for (int i = 0; i < (how & TWICE ? 2 : 1); i++) {
		if (how & BY_BLOB)
			put_blob(run, slot, MT_RECORD_STACK, record, len);
		else if (run->kernel)
			kernel_put_stack(run->kernel, record, len);
		else
			put_record(run, slot, MT_RECORD_STACK, record, len);
	}
}

/* The raw record of a window, with the head of its other one; returns its length. */
static size_t make_raw(const struct mt_stack_record *other, uint32_t number, uint64_t start,
		       uint64_t end, char *record)
{
	size_t head_bytes = mt_stack_head_bytes(BUDGET), bytes = end - start;
	struct mt_stack_record head = *other;
	uint64_t sum = 0, digest;

	head.kind = MT_STACK_RAW;
	head.len_words = (__u16)((head_bytes + bytes) / 8 + 1);
	head.seq = number;
	head.mask[0] = head.digest = head.ref_digest = 0;
	head.check = mt_stack_check(&head, 0);
	for (size_t at = 0; at < bytes; at += MT_GROUP_BYTES) {
		__u64 block[MT_GROUP_WORDS] = { 0 };
		size_t left = bytes - at < MT_GROUP_BYTES ? bytes - at : MT_GROUP_BYTES;

		memcpy(block, (char *)start + at, left);
		sum += mt_digest_part(mt_group_hash(block), at / MT_GROUP_BYTES);
	}
	digest = mt_digest_finish(start, end, 0, sum);
	memcpy(record, &head, head_bytes);
	memcpy(record + head_bytes, (char *)start, bytes);
	memcpy(record + head_bytes + bytes, &digest, sizeof(digest));
	return head_bytes + bytes + sizeof(digest);
}

/* A record as it comes, of a small window that has some words of the input. */
static void put_capture(struct run *run, struct input *in, uint32_t slot, uint8_t how)
{
	static const struct mt_compare compare = { mt_groups_differ, mt_words_of_group_differ,
						   mt_copy_words };
	static __u64 stack[STACK_WORDS] __attribute__((aligned(MT_GROUP_BYTES)));
	static char record[8 * STACK_WORDS + 256], scratch[16384] __attribute__((aligned(8)));
	static char no_reference[MT_WORDS_OFFSET + BUDGET] __attribute__((aligned(8)));
	struct mt_reference *reference = mt_segments_reference(run->segments, slot);
	__u64 *dictionary, *words;
	struct mt_scratch *s = (struct mt_scratch *)scratch;
	uint64_t start, end = (uint64_t)(stack + STACK_WORDS);
	const __u64 all[2] = { ~0ULL, ~0ULL };
	__u64 *word;
	uint16_t name;
	uint32_t seq;
	size_t len;

	must(mt_scratch_inline_bytes(BUDGET) <= sizeof(scratch));
	if (!reference) {
		reference = memset(no_reference, 0, sizeof(no_reference));
		how |= RAW;
	}
	dictionary = (__u64 *)((char *)reference + MT_DICTIONARY_OFFSET);
	words = (__u64 *)((char *)reference + MT_WORDS_OFFSET);
	start = (uint64_t)(stack + take_byte(in) % (STACK_WORDS - 1));
	word = stack + take_byte(in) % STACK_WORDS;
	*word = take_number(in);
	if (how & NEW_OWNER)
		mt_claim_reference(reference, dictionary);
	mt_read_window(reference, s, slot, reference->seq, start, end, 0, 0, all, BUDGET, &compare,
		       run->time_ns);
	len = mt_encode_window(reference, dictionary, words, s, BUDGET, &compare);
	memcpy(record, &s->record, len);
	if (how & RAW) {
		uint32_t number = run->alone++;

		len = make_raw(&s->record, number, start, end, record);
		name = MT_STACK_ALONE | (number & (MT_STACK_ALONE - 1));
		seq = 0;
	} else {
		mt_commit_window(reference, dictionary, words, s, BUDGET, &compare);
		name = (uint16_t)reference->entry;
		seq = (uint32_t)(reference->seq / 2);
	}
	send_stack(run, in, slot, how, record, len);
	if (how & WITH_EVENT)
		put_cell(run, slot, MT_CELL_HEAD(MT_CELL_ALLOC, 1, name, seq), 64, 8);
}

static void put_stack(struct run *run, struct input *in, uint32_t slot)
{
	struct {
		struct mt_stack_record head;
		uint64_t words[64];
	} record = { 0 };
	uint8_t how = take_byte(in);
	size_t n;

	if (how & CAPTURED) {
		put_capture(run, in, slot, how);
		return;
	}
	n = take_byte(in) % 64;
	record.head.len_words = (__u16)(sizeof(record.head) / 8 + n);
	record.head.slot = (__u16)slot;
	record.head.kind = take_byte(in);
	record.head.entry = (__u16)take_number(in);
	record.head.seq = (uint32_t)take_number(in);
	record.head.generation = (__u16)take_number(in);
	record.head.start = 0x7ffe0000 + 8 * take_number(in);
	record.head.window_words = (__u16)take_number(in);
	record.head.digest = take_number(in);
	record.head.ref_digest = (uint32_t)take_number(in);
	record.head.mask[0] = take_number(in);
	take(in, record.words, 8 * n);
	if (how & SEALED)
		record.head.check = mt_stack_check(&record.head, 0);
	send_stack(run, in, slot, how, (char *)&record, sizeof(record.head) + 8 * n);
}

/* As the kernel tells of it; or anything. */
static void put_life(struct run *run, struct input *in)
{
	union {
		struct mt_life_head head;
		struct mt_life_exec exec;
		struct mt_life_exit exit;
	} life = { 0 };
	size_t len = sizeof(life.exec);

	life.head.type = take_byte(in) % 5;
	life.head.time_ns = ++run->time_ns;
	life.head.tgid = TGIDS + take_byte(in) % 8;
	life.head.tid = TGIDS + take_byte(in) % 8;
	switch (life.head.type) {
	case MT_LIFE_EXEC:
		take(in, life.exec.comm, take_byte(in) % (sizeof(life.exec.comm) + 1));
		take(in, life.exec.filename, take_number(in) % (sizeof(life.exec.filename) + 1));
		break;
	case MT_LIFE_EXIT:
		len = sizeof(life.exit);
		life.exit.exit_code = (uint32_t)take_number(in);
		life.exit.group_dead = take_byte(in) % 2;
		take(in, life.exit.comm, take_byte(in) % (sizeof(life.exit.comm) + 1));
		break;
	default:
		len = take_byte(in) % (sizeof(life) + 1);
		take(in, &life, len);
	}
	life.head.len = (uint32_t)len;
	if (run->kernel)
		kernel_put_life(run->kernel, &life, len);
}

static void arrive(struct run *run, struct input *in)
{
	struct mt_arrival arrival = {
		.process_id = take_number(in),
		.tgid = TGIDS + take_byte(in) % 8,
		.inner_tgid = TGIDS + take_byte(in) % 8,
		.other_clock = take_number(in) & 1,
		.time_ns = ++run->time_ns,
	};

	take(in, arrival.exe, take_byte(in) % (sizeof(arrival.exe) - 1));
	(void)mt_pipeline_arrive(run->pipeline, &arrival);
}

static void operate(struct run *run, struct input *in)
{
	enum operation operation = take_byte(in) % OPERATIONS;
	uint32_t slot = take_byte(in) % SLOTS;
	struct mt_cell cell;
	uint64_t number;

	switch (operation) {
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
		put_event(run, in, slot, (uint8_t)(MT_CELL_ALLOC + operation - ALLOC));
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
		run->segments->control->next_process = take_number(in);
		run->segments->control->lost_events = take_number(in);
		break;
	case LIFE:
		put_life(run, in);
		break;
	case LEARNED:
		number = take_number(in);
		put_cell(run, slot,
			 MT_CELL_HEAD(MT_CELL_ALLOC, 1, MT_STACK_LEARNED, (uint32_t)number), 72, 8);
		break;
	case OPERATIONS:
		break;
	}
}

static void note(void *ctx, const char *text)
{
	struct run *run = ctx;

	run->notes += strlen(text);
}

static void open_run(struct run *run, struct mt_writer *writer, uint8_t how)
{
	static const char faults[] =
		"drop/5,duplicate/4,swap/3,corrupt/7,corrupt-head/11,swap:1,drop:2";
	struct mt_segments_config segments = { .budget_bytes = BUDGET,
					       .ring_bytes = RING_BYTES,
					       .learned = how & TEACHES,
					       .flags = how & NO_COMPRESSION ? MT_RUN_RAW : 0,
					       .control_fd = -1,
					       .bpf_references_fd = -1 };
	struct mt_pipeline_config pipeline = {
		.shim_name = "shim", .note = note, .ctx = run, .keep_stacks = how & KEEPS_STACKS
	};
	char problem[MT_FAULTS_PROBLEM];
	struct mt_welcome welcome;

	if (how & HAS_KERNEL) {
		run->kernel = kernel_open(SLOTS, BUDGET, how & NO_COMPRESSION);
		segments.control = kernel_control(run->kernel);
		segments.bpf_references = kernel_references(run->kernel);
	}
	if (how & HAS_FAULTS)
		must(mt_faults_new(faults, problem, &run->faults) == 0);
	pipeline.probes = run->kernel;
	pipeline.faults = run->faults;
	must(mt_segments_open(&segments, &run->segments) == 0);
	for (uint32_t i = 0; i < SLOTS; i += MT_CHUNK_SLOTS)
		must(mt_segments_give_chunk(run->segments, false, 1, &welcome) == 0);
	must(mt_encode_start(writer, NULL, &run->encode) == 0);
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
	mt_faults_free(run->faults);
	mt_segments_close(run->segments);
	if (run->kernel)
		kernel_close(run->kernel);
	must(lseek(fd, 0, SEEK_SET) == 0);
	must(mt_reader_read(fd, &callbacks, NULL, &result) == 0 && result.complete);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct mt_header header = { .machine = "x86_64", .program = "fuzz" };
	struct input in = { bytes, len };
	struct mt_writer *writer = NULL;
	struct run run = { 0 };
	int fd = memfd_create("artifact", MFD_CLOEXEC);

	must(fd >= 0 && mt_writer_new(dup(fd), &header, &writer) == 0);
	open_run(&run, writer, take_byte(&in));
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
		kinds[i] = (uint8_t)(next_random(&state) % OPERATIONS);
	for (size_t i = 0; i < len; i++) {
		bytes[i] = (uint8_t)next_random(&state);
		if (seed % 3 == 1 && i % 8 != 0)
			bytes[i] %= 32;
		if (seed % 3 == 2 && next_random(&state) % 4 == 0)
			bytes[i] = kinds[bytes[i] % 4];
	}
	fuzz_try(bytes, len);
}

#define STORY_LINES 28

/* A process that does all it should; with an operation left out, repeated or changed. */
static void run_story(uint8_t how, size_t leave_out, size_t repeat, int change)
{
	static const uint8_t story[][16] = {
		{ ARRIVE, 0, 1, 1, 1, 0, 3, '/', 'a', 'b' },
		{ THREAD, 0, 1, 2, 1, 1 },
		{ PROCESS, 0, 1, MT_PROCESS_START, 0 },
		{ MODULE, 0, 1, 0, 16, 16, 0, 0 },
		{ STACK, 0, CAPTURED | WITH_EVENT | BY_BLOB, 9, 99, 1 },
		{ STACK, 0, CAPTURED | WITH_EVENT, 8, 70, 2 },
		{ STACK, 0, CAPTURED | WITH_EVENT | RAW | BY_BLOB, 7, 3, 4 },
		{ STACK, 0, SEALED, 0, MT_STACK_KEY, 64, 9, 1, 0, 5, 8, 0, 0 },
		{ ALLOC, 0, 1, 5, 1, 100, 8 },
		{ LEARNED, 0, MT_NODE_FIRST },
		{ PASS, 0 },
		{ REALLOC_BEGIN, 0, 3, 0, 0, 100, 0 },
		{ REALLOC_END, 0, 3, 5, 1, 101, 9 },
		{ THREAD, 1, 2, 2, 2, 2 },
		{ PROCESS, 1, 2, MT_PROCESS_FORK, 1 },
		{ FREE, 1, 10, 0, 0, 101, 0 },
		{ PASS, 0 },
		{ THREAD, 0, 1, 2, 3, 1 },
		{ FREE, 0, 10, 0, 0, 101, 0 },
		{ LOSS, 0, 3 },
		{ HEAD, 2, 1, 2, 3, 4, 5, 6, 7, 8 },
		{ SKIP, 0 },
		{ COUNTERS, 0, 1, 0 },
		{ LIFE, 0, MT_LIFE_EXIT + 1, 1, 1, 0 },
		{ LIFE, 0, MT_LIFE_EXEC, 1, 1, 1, 'a', 3, '/', 'a', 'b' },
		{ LIFE, 0, MT_LIFE_EXIT, 1, 2, 0, 0, 1, 't' },
		{ LIFE, 0, MT_LIFE_EXIT, 1, 1, 9, 1, 2, 'a', 'b' },
		{ PASS, 0 },
	};
	static const size_t lens[] = { 10, 6, 5, 8, 6, 6, 6,  13, 7, 3, 2,  7, 7,  6,
				       5,  7, 2, 6, 7, 3, 10, 2,  4, 6, 11, 9, 10, 2 };
	uint8_t bytes[512];
	size_t len = 1;

	bytes[0] = how;
	_Static_assert(sizeof(lens) / sizeof(lens[0]) == STORY_LINES, "a line without a length");
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (int n = i == leave_out ? 0 : i == repeat ? 3 : 1; n > 0; n--) {
			memcpy(bytes + len, story[i], lens[i]);
			if (n == 2 && change && lens[i] > 1)
				bytes[len + 1 + (size_t)change % (lens[i] - 1)] ^=
					(uint8_t)(1 << change % 8);
			len += lens[i];
		}
	}
	fuzz_try(bytes, len);
}

void fuzz_corpus(void)
{
	for (size_t i = 0; i <= STORY_LINES; i++) {
		for (uint8_t how = 0; how < HOWS; how++)
			run_story(how, i, STORY_LINES, 0);
		for (int change = 0; change < HOWS; change++)
			run_story((uint8_t)(change % HOWS), STORY_LINES, i, change);
	}
	for (uint64_t seed = 0; seed < 1000; seed++)
		run_random(seed);
}
