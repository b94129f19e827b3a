/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replay_stacks.c - recorded windows, encoded as the shim does it, decoded, verified, counted
 *
 *   replay_stacks BUDGET FILE...
 *
 * FILEs are those of record_windows.c; windows are cut to BUDGET bytes.  Each thread has a
 * slot of its own.  A window that the slot's dictionary has costs no bytes.  Each record is
 * decoded at once, and every word compared with the recorded one; any difference ends the
 * program.  Times are those of single operations, without that of reading the clock.
 *
 * Prints lines of "name value".
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/decode.h"
#include "preload/compare.h"
#include "tests/bench/window_record.h"
#include "wire/stack_encode.h"

#define THREADS_MAX 256
#define CLOCK_TRIALS 1001

/* A recorded thread, and its slot in a run that is replayed. */
struct thread {
	uint32_t tid;
	uint64_t image[WINDOW_WORDS];
	struct mt_reference *reference;
	__u64 *dictionary;
	__u64 *words;
	struct mt_scratch *scratch;
	struct mt_decoder *decoder;
};

/* Times of operations, ns. */
struct times {
	uint32_t *ns;
	size_t count, room;
};

struct replay {
	uint64_t budget_bytes;
	struct thread threads[THREADS_MAX];
	size_t n_threads;
	uint64_t *live; /* a copy of the window, as far from a page's start as on the stack */
	uint64_t captures, records, raw_bytes, record_bytes, key_frames;
	struct times encodes, knowns, decodes;
	uint64_t clock_ns;
};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("replay_stacks: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(EXIT_FAILURE);
}

static void *take(size_t bytes)
{
	void *block = calloc(1, bytes);

	if (!block)
		die("out of memory");
	return block;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void add_time(struct times *times, uint64_t ns)
{
	if (times->count == times->room) {
		times->room = times->room ? times->room * 2 : 65536;
		times->ns = realloc(times->ns, times->room * sizeof(times->ns[0]));
		if (!times->ns)
			die("out of memory");
	}
	times->ns[times->count++] = (uint32_t)ns;
}

static int compare_times(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static uint64_t median(struct times *times)
{
	if (!times->count)
		return 0;
	qsort(times->ns, times->count, sizeof(times->ns[0]), compare_times);
	return times->ns[times->count / 2];
}

/* What two readings of the clock cost by themselves. */
static uint64_t clock_cost(void)
{
	struct times times = { 0 };
	uint64_t cost;

	for (size_t i = 0; i < CLOCK_TRIALS; i++) {
		uint64_t begin = now_ns();

		add_time(&times, now_ns() - begin);
	}
	cost = median(&times);
	free(times.ns);
	return cost;
}

static void add_span(struct replay *replay, struct times *times, uint64_t begin, uint64_t end)
{
	uint64_t ns = end - begin;

	add_time(times, ns > replay->clock_ns ? ns - replay->clock_ns : 0);
}

static void open_slot(const struct replay *replay, struct thread *thread)
{
	char *memory = take(MT_WORDS_OFFSET + replay->budget_bytes);

	thread->reference = (struct mt_reference *)memory;
	thread->dictionary = (__u64 *)(memory + MT_DICTIONARY_OFFSET);
	thread->words = (__u64 *)(memory + MT_WORDS_OFFSET);
	thread->scratch = take(mt_scratch_inline_bytes(replay->budget_bytes));
	mt_claim_reference(thread->reference, thread->dictionary);
	if (mt_decoder_new((uint32_t)replay->budget_bytes, &thread->decoder) < 0)
		die("cannot make a decoder");
}

static void close_slots(struct replay *replay)
{
	for (size_t i = 0; i < replay->n_threads; i++) {
		free(replay->threads[i].reference);
		free(replay->threads[i].scratch);
		mt_decoder_free(replay->threads[i].decoder);
	}
	replay->n_threads = 0;
}

/* The record's thread; a new one where an image of that number begins anew. */
static struct thread *find_thread(struct replay *replay, const struct window_record *record)
{
	struct thread *thread;

	for (size_t i = replay->n_threads; i-- && !(record->flags & WINDOW_FRESH);)
		if (replay->threads[i].tid == record->tid)
			return &replay->threads[i];
	if (!(record->flags & WINDOW_FRESH) || replay->n_threads == THREADS_MAX)
		die("a thread without a beginning, or too many threads");
	thread = &replay->threads[replay->n_threads++];
	memset(thread, 0, sizeof(*thread));
	thread->tid = record->tid;
	open_slot(replay, thread);
	return thread;
}

/* What was decoded is what was recorded. */
static void check_window(const struct mt_window *window, uint64_t start, uint64_t end,
			 const uint64_t *live)
{
	if (window->start != start || window->end != end)
		die("a decoded window has other bounds");
	for (uint64_t at = start; at < end; at += 8)
		if (window->words[at / 8 & window->mask] != live[(at - start) / 8])
			die("a decoded window has other words");
}

/* One capture of [start, end), whose words are at live. */
static void capture(struct replay *replay, struct thread *thread, uint64_t start, uint64_t end,
		    const uint64_t *live)
{
	const struct mt_compare *compare = mt_compare_for(live[MT_SAVED_RIP]);
	struct mt_reference *reference = thread->reference;
	uint64_t budget_bytes = replay->budget_bytes, shift = (uint64_t)live - start;
	uint64_t begin = now_ns(), seq = reference->seq, middle, digest;
	struct mt_window window;
	__u64 mask[2];
	uint32_t bytes;
	int r;

	mt_compare_window(reference, thread->words, start, end, shift, budget_bytes, compare, mask);
	digest = mt_read_window(reference, thread->scratch, 0, seq, start, end, shift, 1, mask,
				budget_bytes, compare, 0);
	replay->captures++;
	replay->raw_bytes += end - start;
	if (thread->scratch->keep && mt_dictionary_find(thread->dictionary, digest) >= 0) {
		add_span(replay, &replay->knowns, begin, now_ns());
		return;
	}
	bytes = mt_encode_window(reference, thread->dictionary, thread->words, thread->scratch,
				 budget_bytes, compare);
	mt_commit_window(reference, thread->dictionary, thread->words, thread->scratch,
			 budget_bytes, compare);
	middle = now_ns();
	r = mt_decode_record(thread->decoder, &thread->scratch->record, bytes, &window);
	add_span(replay, &replay->decodes, middle, now_ns());
	add_span(replay, &replay->encodes, begin, middle);
	if (r < 0)
		die("a record is not decoded: %s", strerror(-r));
	check_window(&window, start, end, live);
	replay->records++;
	replay->record_bytes += bytes;
	replay->key_frames += thread->scratch->record.kind == MT_STACK_KEY;
}

static void replay_record(struct replay *replay, const struct window_record *record,
			  const uint64_t *runs)
{
	uint64_t first = record->start / 8, words = (record->end - record->start) / 8;
	const uint64_t *end = runs + record->run_words;
	struct thread *thread = find_thread(replay, record);
	uint64_t most = (record->start & ~(uint64_t)(MT_GROUP_BYTES - 1)) + replay->budget_bytes;
	uint64_t *live = replay->live + record->start % MT_PAGE_BYTES / 8;

	if (record->start % 8 || record->end <= record->start || words > WINDOW_WORDS)
		die("a record that is none");
	while (runs < end) {
		uint64_t at = (uint32_t)*runs, n = *runs >> 32;

		runs++;
		if (n > (uint64_t)(end - runs) || at + n > words)
			die("a run that is none");
		for (; n; n--, at++)
			thread->image[(first + at) % WINDOW_WORDS] = *runs++;
	}
	most = most < record->end ? most : record->end;
	for (uint64_t i = 0; i < (most - record->start) / 8; i++)
		live[i] = thread->image[(first + i) % WINDOW_WORDS];
	capture(replay, thread, record->start, most, live);
}

static void replay_file(struct replay *replay, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *at, *end;
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) < 0)
		die("cannot open %s", path);
	if (!stat.st_size) {
		close(fd);
		return;
	}
	at = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		die("cannot map %s", path);
	close(fd);
	end = at + stat.st_size;
	while (at < end) {
		const struct window_record *record = (const struct window_record *)at;
		size_t left = (size_t)(end - at);

		if (left < sizeof(*record) || (left - sizeof(*record)) / 8 < record->run_words)
			die("%s ends within a record", path);
		replay_record(replay, record, (const uint64_t *)(record + 1));
		at += sizeof(*record) + record->run_words * 8;
	}
	munmap((void *)(uintptr_t)(end - stat.st_size), (size_t)stat.st_size);
	close_slots(replay);
}

static void print_figures(struct replay *replay)
{
	printf("captures %ju\n", (uintmax_t)replay->captures);
	printf("records %ju\n", (uintmax_t)replay->records);
	printf("key_frames %ju\n", (uintmax_t)replay->key_frames);
	printf("raw_bytes %ju\n", (uintmax_t)replay->raw_bytes);
	printf("record_bytes %ju\n", (uintmax_t)replay->record_bytes);
	printf("encode_ns %ju\n", (uintmax_t)median(&replay->encodes));
	printf("known_ns %ju\n", (uintmax_t)median(&replay->knowns));
	printf("decode_ns %ju\n", (uintmax_t)median(&replay->decodes));
}

int main(int argc, char **argv)
{
	static struct replay replay;
	char *rest;

	if (argc < 3)
		die("usage: replay_stacks BUDGET FILE...");
	replay.budget_bytes = strtoull(argv[1], &rest, 10);
	if (*rest || replay.budget_bytes < MT_BUDGET_MIN_BYTES ||
	    replay.budget_bytes > WINDOW_BUDGET_BYTES ||
	    replay.budget_bytes & (replay.budget_bytes - 1))
		die("not a budget: %s", argv[1]);
	if (posix_memalign((void **)&replay.live, MT_PAGE_BYTES,
			   WINDOW_BUDGET_BYTES + MT_PAGE_BYTES))
		die("out of memory");
	mt_compare_choose();
	replay.clock_ns = clock_cost();
	for (int i = 2; i < argc; i++)
		replay_file(&replay, argv[i]);
	print_figures(&replay);
	return 0;
}
