/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture_probe.c - the BPF programs as the shim and the collector see them
 *
 * Links the collector's probes and decoder and the shim's renewal of the probe, has a probe of
 * its own, plays the shim on stacks that churn, and compares each decoded window with memory,
 * word by word.  Exits with 77 where BPF is not allowed.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/decode.h"
#include "collector/probes.h"
#include "preload/probe.h"
#include "tests/bpf_allowed.h"
#include "tests/stack_player.h"
#include "wire/stack_encode.h"

#define COOKIE 0x1122334455667788ULL
#define SLOT 7
/* What the kernel sets the probe with, unless it has made it a call. */
#define INT3 0xcc

/* Records that decode with every word right, one after the other. */
#define CHURN 8000

static struct mt_probes *probes;
static struct mt_control *control;
static struct mt_reference *reference;
static volatile struct mt_answer *answer;
static struct mt_decoder *decoder;
static struct stack_player player;
static uint64_t budget;
static bool perf_events;

/* What the last drain of "stacks" brought. */
static struct mt_window window;
static uint64_t n_records, record_bytes;
static struct mt_stack_record last;
static int decode_error;

static int on_stack(void *ctx, const void *bytes, size_t len)
{
	size_t head_bytes = mt_stack_head_bytes(budget);

	ck_assert_uint_ge(len, head_bytes);
	last.mask[1] = 0;
	memcpy(&last, bytes, head_bytes);
	n_records++;
	record_bytes += len;
	decode_error = mt_decode_record(decoder, bytes, len, &window);
	return 0;
}

static int on_no_life(void *ctx, const void *bytes, size_t len)
{
	return 0;
}

static void drain(void)
{
	ck_assert_int_eq(mt_probes_drain(probes, on_stack, on_no_life, NULL), 0);
}

static void by_perf_events(void)
{
	perf_events = true;
}

static void open_run(const struct mt_probes_config *wanted)
{
	struct mt_probes_config config = *wanted;

	config.perf_events = perf_events;
	budget = config.budget_bytes;
	ck_assert_int_eq(mt_probes_open(&config, &probes), 0);
	ck_assert_int_eq(mt_probes_attach(probes, "/proc/self/exe"), 0);
	control = mt_probes_control(probes);
	answer = &control->answers[SLOT];
	reference = config.raw ? NULL
			       : (struct mt_reference *)((char *)mt_probes_references(probes) +
							 SLOT * (MT_WORDS_OFFSET + budget));
	ck_assert_int_eq(mt_decoder_new((uint32_t)budget, &decoder), 0);
	player_init(&player, budget, budget);
}

static void open_budget(uint32_t budget_bytes)
{
	const struct mt_probes_config config = { .cookie = COOKIE, .budget_bytes = budget_bytes };

	open_run(&config);
}

static void close_run(void)
{
	mt_probes_close(probes);
	mt_decoder_free(decoder);
	player_done(&player);
}

static __u64 *dictionary(void)
{
	return (__u64 *)((char *)reference + MT_DICTIONARY_OFFSET);
}

static const __u64 *words(void)
{
	return (const __u64 *)((char *)reference + MT_WORDS_OFFSET);
}

static const struct mt_compare plain = { mt_groups_differ, mt_words_of_group_differ,
					 mt_copy_words };

static void claim(void)
{
	mt_probe_send(SLOT, MT_PROBE_REGISTER, 0, 0, 0, COOKIE, 0);
}

static uint64_t compare(__u64 mask[2])
{
	return mt_digest_window(reference, words(), player.start, player.end, 0, player.epoch,
				budget, &plain, mask);
}

/* Probes for the player's window as the shim would; returns what BPF said. */
static uint32_t probe(void)
{
	uint64_t seq = reference->seq;
	__u64 mask[2];

	compare(mask);
	mt_probe_send(SLOT | (uint64_t)player.epoch << 32, seq, mask[0], player.start, player.end,
		      COOKIE, mask[1]);
	return answer->status;
}

/* The record that was sent is on the ring, and is the player's window. */
static void check_sent(void)
{
	uint64_t before = n_records;

	drain();
	ck_assert_uint_eq(n_records, before + 1);
	ck_assert_int_eq(decode_error, 0);
	player_check_window(&player, window.start, window.end, window.words, window.mask);
	ck_assert_uint_eq(last.slot, SLOT);
	ck_assert_uint_eq(last.seq, reference->seq / 2);
	ck_assert_uint_eq(last.digest, reference->digest);
	ck_assert_uint_eq(last.entry, reference->entry);
	ck_assert_uint_eq(last.generation, (uint16_t)reference->generation);
}

static void first_window(uint64_t bytes)
{
	player.start = player.bound - bytes;
	player.end = player_window_end(&player);
}

START_TEST(churn)
{
	static const struct {
		uint32_t budget_bytes, records;
	} runs[] = {
		{ 4096, 1000 }, { 8192, CHURN }, { 16384, 1000 }, { 32768, CHURN }, { 65536, 1000 },
	};
	uint64_t i, known = 0;

	open_budget(runs[_i].budget_bytes);
	claim();
	ck_assert_uint_eq(answer->status, MT_PROBE_REGISTERED);
	for (i = 0; n_records < runs[_i].records; i++) {
		uint64_t seq = reference->seq, digest;
		__u64 mask[2];

		player_step(&player);
		if (i % 500 == 499)
			reference->resync_asked++;
		digest = compare(mask);
		if (mt_dictionary_find(dictionary(), digest) >= 0) {
			known++;
			continue;
		}
		if (i % 300 == 299) {
			/* Something came between: the mask says nothing. */
			seq -= 2;
			mask[0] = mask[1] = 0;
		}
		mt_probe_send(SLOT | (uint64_t)player.epoch << 32, seq, mask[0], player.start,
			      player.end, COOKIE, mask[1]);
		ck_assert_uint_eq(answer->status, MT_PROBE_SENT);
		check_sent();
		ck_assert_uint_eq(last.digest, digest);
		ck_assert_int_eq(mt_dictionary_find(dictionary(), digest), last.entry);
	}
	ck_assert_uint_gt(known, 0);
	printf("# %u KiB: %lu records of %lu bytes on average, no mismatch, %lu KiB in the "
	       "kernel\n",
	       runs[_i].budget_bytes / 1024, n_records, record_bytes / n_records,
	       mt_probes_kernel_bytes(probes) / 1024);
	ck_assert_uint_eq(control->refused_probes, 0);
	ck_assert_uint_eq(control->full_probes, 0);
	ck_assert_uint_eq(control->faulted_probes, 0);
	close_run();
}
END_TEST

START_TEST(claim_forgets)
{
	uint64_t seq;
	uint32_t generation;

	open_budget(8192);
	claim();
	ck_assert_uint_eq(answer->owner_tid, (uint32_t)syscall(SYS_gettid));
	ck_assert_uint_eq(answer->owner_tgid, (uint32_t)getpid());
	first_window(5000);
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();
	ck_assert_uint_eq(last.kind, MT_STACK_KEY);
	*player_word(&player, player.start) ^= 1;
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();
	ck_assert_uint_eq(last.kind, MT_STACK_DELTA);
	/* One half, and which it is. */
	ck_assert_uint_eq(last.len_words * 8, sizeof(last) - 8 + 8);

	seq = reference->seq;
	generation = reference->generation;
	claim();
	ck_assert_uint_eq(reference->seq, seq + 2);
	ck_assert_uint_eq(reference->generation, generation + 1);
	ck_assert_uint_eq(reference->digest, 0);
	for (int i = 0; i < MT_DICTIONARY; i++)
		ck_assert_uint_eq(dictionary()[i], 0);
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();
	ck_assert_uint_eq(last.kind, MT_STACK_KEY);
	ck_assert_uint_eq(answer->probes, 5);
	close_run();
}
END_TEST

/* A ring without room: nothing moves, the latch is set, and all goes on once it is read. */
START_TEST(full_ring)
{
	const struct mt_probes_config config = {
		.cookie = COOKIE,
		.budget_bytes = 8192,
		.stacks_bytes = 65536,
	};
	uint64_t seq = 0, digest = 0, n = 0, before;

	open_run(&config);
	claim();
	do {
		ck_assert_uint_lt(n++, 10000);
		seq = reference->seq;
		digest = reference->digest;
		first_window(8 * (10 + n % 3));
		for (uint64_t at = player.start; at < player.end; at += 8)
			*player_word(&player, at) = player_random(&player);
	} while (probe() == MT_PROBE_SENT);
	ck_assert_uint_eq(answer->status, MT_PROBE_FULL);
	ck_assert_uint_eq(reference->seq, seq);
	ck_assert_uint_eq(reference->digest, digest);
	ck_assert_uint_eq(control->full_probes, 1);
	ck_assert_uint_ne(control->latch, 0);
	ck_assert_uint_eq(MT_LATCH_RING(control->latch), MT_LATCH_STACKS);
	ck_assert_uint_eq(MT_LATCH_SLOT(control->latch), SLOT);

	/* Each of the records is whole: they decode in a row. */
	before = n_records;
	ck_assert_uint_gt(mt_probes_stacks_produced(probes), mt_probes_stacks_consumed(probes));
	drain();
	ck_assert_uint_eq(n_records, before + n - 1);
	ck_assert_int_eq(decode_error, 0);
	ck_assert_uint_eq(mt_probes_stacks_produced(probes), mt_probes_stacks_consumed(probes));

	/* Under the watermark again, nothing latches. */
	control->latch = 0;
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();
	ck_assert_uint_eq(control->latch, 0);
	close_run();
}
END_TEST

/* A callback that can take no more is asked again, and loses nothing. */
static int refuse_third(void *ctx, const void *bytes, size_t len)
{
	int *left = ctx;

	if (!*left)
		return -EAGAIN;
	--*left;
	return on_stack(NULL, bytes, len);
}

START_TEST(drain_is_taken_up_again)
{
	int left = 3;

	open_budget(8192);
	claim();
	for (int i = 0; i < 8; i++) {
		first_window(800);
		++*player_word(&player, player.start);
		ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	}
	ck_assert_int_eq(mt_probes_drain(probes, refuse_third, on_no_life, &left), 0);
	ck_assert_uint_eq(n_records, 3);
	drain();
	ck_assert_uint_eq(n_records, 8);
	ck_assert_int_eq(decode_error, 0);
	close_run();
}
END_TEST

START_TEST(pages_that_are_not_there)
{
	char *page;
	uint64_t seq;

	open_budget(32768);
	claim();
	first_window(20000);
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();

	/* Discarded, as a stack's may be: read as zeros by the shim, then here again. */
	page = (char *)((player.start + 8192) & ~4095ULL);
	ck_assert_int_eq(madvise(page, 4096, MADV_DONTNEED), 0);
	seq = reference->seq;
	mt_probe_send(SLOT, seq, ~0ULL, player.start, player.end, COOKIE, ~0ULL);
	ck_assert_uint_eq(answer->status, MT_PROBE_FAULT);
	ck_assert_uint_eq(reference->seq, seq);
	ck_assert_uint_eq(control->faulted_probes, 1);
	ck_assert_uint_eq(mt_probes_stacks_produced(probes), mt_probes_stacks_consumed(probes));
	*(volatile char *)page = 0;
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();

	/* Only what is in the window is read: it may end where memory does. */
	player.bound = (uint64_t)player.words + PLAYER_BYTES;
	first_window(8);
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();
	mt_probe_send(SLOT, reference->seq, ~0ULL, player.start, player.end + 8, COOKIE, ~0ULL);
	ck_assert_uint_eq(answer->status, MT_PROBE_FAULT);
	close_run();
}
END_TEST

START_TEST(windows_that_are_none)
{
	const uint64_t base = 0x7f0000000000;
	const struct {
		uint64_t start, end;
	} wrong[] = {
		{ base, base },
		{ base + 8, base },
		{ base + 4, base + 16 },
		{ base, base + 12 },
		{ base, base + 8192 + 8 },
		{ base + 504, base + 8192 + 8 },
		{ 0xffffffff81000000, 0xffffffff81000100 },
		{ 0xfffffffffffffff8, 0 },
		{ 0, ~7ULL },
	};
	uint64_t seq;

	open_budget(8192);
	claim();
	seq = reference->seq;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		mt_probe_send(SLOT, seq, ~0ULL, wrong[i].start, wrong[i].end, COOKIE, ~0ULL);
		ck_assert_uint_eq(answer->status, MT_PROBE_REFUSED);
		ck_assert_uint_eq(control->refused_probes, i + 1);
	}
	/* No kernel memory, and nothing else that is not there. */
	mt_probe_send(SLOT, seq, ~0ULL, 0x00ffffffffff0000, 0x00ffffffffff0100, COOKIE, ~0ULL);
	ck_assert_uint_eq(answer->status, MT_PROBE_FAULT);
	ck_assert_uint_eq(reference->seq, seq);
	close_run();
}
END_TEST

static void *probe_once(void *ret)
{
	*(uint32_t *)ret = probe();
	return NULL;
}

START_TEST(who_may_probe)
{
	uint32_t probes_before, status, refused;
	pthread_t thread;
	pid_t child;
	uint64_t seq;
	int wait_status;

	open_budget(8192);
	first_window(4000);
	ck_assert_uint_eq(probe(), MT_PROBE_REFUSED); /* nobody has registered */
	claim();
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();
	seq = reference->seq;

	/* Who does not know the cookie leaves no trace in the slot. */
	probes_before = answer->probes;
	refused = control->refused_probes;
	mt_probe_send(SLOT, MT_PROBE_REGISTER, 0, 0, 0, COOKIE + 1, 0);
	mt_probe_send(SLOT, seq, ~0ULL, player.start, player.end, COOKIE + 1, ~0ULL);
	mt_probe_send(MT_BPF_SLOTS, MT_PROBE_REGISTER, 0, 0, 0, COOKIE, 0);
	ck_assert_uint_eq(answer->probes, probes_before);
	ck_assert_uint_eq(control->refused_probes, refused + 3);

	ck_assert_int_eq(pthread_create(&thread, NULL, probe_once, &status), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(status, MT_PROBE_REFUSED);

	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		mt_probe_renew();
		_exit(probe() == MT_PROBE_REFUSED ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
	ck_assert_int_eq(wait_status, 0);
	ck_assert_uint_eq(control->refused_probes, refused + 5);
	ck_assert_uint_eq(reference->seq, seq);

	/* A vfork child runs as the owner, who waits. */
	child = vfork();
	if (!child) {
		++*player_word(&player, player.start);
		_exit(probe() == MT_PROBE_SENT ? 0 : 1);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
	ck_assert_int_eq(wait_status, 0);
	check_sent();
	ck_assert_uint_eq(control->busy_probes, 0);
	close_run();
}
END_TEST

/*
 * What a fork's child does before it captures; false if a probe of its own is not counted, or
 * sends nothing.
 */
static bool child_probes(void)
{
	uint32_t before = answer->probes;

	mt_probe_renew();
	claim();
	if (answer->status != MT_PROBE_REGISTERED || answer->probes != before + 1)
		return false;
	++*player_word(&player, player.start);
	return probe() == MT_PROBE_SENT && answer->probes == before + 2;
}

/*
 * A fork's child has its parent's text, in which the kernel (6.18) has made the nop of the
 * probe a call; but what is called is not copied.  Renewed, the probe is its own, and that of
 * a child of its own; its parent's is as it was.
 */
START_TEST(fork_child_renews_the_probe)
{
	int status;
	pid_t child;

	open_budget(8192);
	first_window(3000);
	claim();
	for (int i = 0; i < 10; i++) {
		++*player_word(&player, player.start);
		ck_assert_uint_eq(probe(), MT_PROBE_SENT);
		check_sent();
	}
	printf("# the probe is a %s\n",
	       *(const volatile unsigned char *)mt_probe_site == INT3 ? "trap" : "call");
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		if (!child_probes())
			_exit(1);
		child = fork();
		if (!child)
			_exit(child_probes() ? 0 : 2);
		_exit(waitpid(child, &status, 0) == child && !status ? 0 : 3);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	drain();
	ck_assert_uint_eq(n_records, 12);
	ck_assert_int_eq(decode_error, 0);

	claim();
	++*player_word(&player, player.start);
	ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	check_sent();
	close_run();
}
END_TEST

static volatile int hammering;

/* Without a bound of its own: ends when it is told to; counts its probes. */
static void *hammer(void *ret)
{
	for (; hammering; ++*(uint32_t *)ret)
		mt_probe_send(SLOT, 0, ~0ULL, player.bound - 512, player.bound, COOKIE, ~0ULL);
	return NULL;
}

/* Another thread in the slot at the same time spoils no record. */
START_TEST(two_in_one_slot)
{
	uint32_t probes_before, hers = 0, ours = 0;
	uint64_t sent = 0, seq;
	pthread_t thread;

	open_budget(8192);
	claim();
	probes_before = answer->probes;
	hammering = 1;
	ck_assert_int_eq(pthread_create(&thread, NULL, hammer, &hers), 0);
	while (sent < 2000) {
		player_step(&player);
		seq = reference->seq;
		probe();
		ours++;
		/* The status may be the other's; seq moves for the owner only. */
		if (reference->seq == seq)
			continue;
		check_sent();
		sent++;
	}
	hammering = 0;
	pthread_join(thread, NULL);
	ck_assert_uint_eq(reference->busy, 0);
	ck_assert_uint_gt(control->refused_probes, 0);
	/* Each was answered, whatever became of it. */
	ck_assert_uint_eq(answer->probes - probes_before, hers + ours);
	printf("# %u probes of another, %lu met\n", hers, (uint64_t)control->busy_probes);
	close_run();
}
END_TEST

static void open_raw(uint32_t budget_bytes, uint32_t stacks_bytes)
{
	const struct mt_probes_config config = {
		.cookie = COOKIE,
		.budget_bytes = budget_bytes,
		.stacks_bytes = stacks_bytes,
		.raw = true,
	};

	open_run(&config);
	claim();
	ck_assert_uint_eq(answer->status, MT_PROBE_REGISTERED);
	ck_assert_uint_eq(answer->owner_tid, (uint32_t)syscall(SYS_gettid));
	ck_assert_uint_eq(answer->owner_tgid, (uint32_t)getpid());
}

/* The same without a reference: number is what the record is to have. */
static uint32_t probe_raw(uint32_t number)
{
	mt_probe_send(SLOT | (uint64_t)player.epoch << 32, number, ~0ULL, player.start, player.end,
		      COOKIE, ~0ULL);
	return answer->status;
}

static void check_raw(uint32_t number)
{
	uint64_t before = n_records;

	drain();
	ck_assert_uint_eq(n_records, before + 1);
	ck_assert_int_eq(decode_error, 0);
	player_check_window(&player, window.start, window.end, window.words, window.mask);
	ck_assert_uint_eq(last.kind, MT_STACK_RAW);
	ck_assert_uint_eq(last.slot, SLOT);
	ck_assert_uint_eq(last.seq, number);
	ck_assert_uint_eq(last.epoch, player.epoch);
}

/* Windows as they are, at every place in a group, and of churning stacks. */
START_TEST(raw_windows)
{
	static const uint32_t runs[] = { 4096, 8192, 16384, 32768, 65536 };
	uint32_t number = UINT32_MAX - 5;
	uint32_t probes_before;

	open_raw(runs[_i], 0);
	probes_before = answer->probes;
	for (uint64_t at = 0; at < MT_GROUP_WORDS; at++) {
		player.start = player.bound - 2 * budget + at * 8;
		for (uint64_t bytes = 8; bytes <= budget - at * 8; bytes += 8 * (1 + bytes / 24)) {
			player.end = player.start + bytes;
			ck_assert_uint_eq(probe_raw(++number), MT_PROBE_SENT);
			check_raw(number);
		}
	}
	for (int i = 0; i < 1000; i++) {
		player_step(&player);
		ck_assert_uint_eq(probe_raw(++number), MT_PROBE_SENT);
		check_raw(number);
	}
	ck_assert_uint_eq(answer->probes - probes_before, n_records);
	printf("# %lu KiB: %lu raw records, %lu KiB in the kernel\n", budget / 1024, n_records,
	       mt_probes_kernel_bytes(probes) / 1024);
	close_run();
}
END_TEST

START_TEST(raw_refused)
{
	uint32_t number = 0, before;
	char *page;

	open_raw(32768, 0);
	first_window(20000);
	ck_assert_uint_eq(probe_raw(++number), MT_PROBE_SENT);
	check_raw(number);

	/* What could not be read leaves nothing on the ring. */
	page = (char *)((player.start + 8192) & ~4095ULL);
	ck_assert_int_eq(madvise(page, 4096, MADV_DONTNEED), 0);
	before = (uint32_t)n_records;
	ck_assert_uint_eq(probe_raw(number), MT_PROBE_FAULT);
	drain();
	ck_assert_uint_eq(n_records, before);
	ck_assert_uint_eq(mt_probes_stacks_produced(probes), mt_probes_stacks_consumed(probes));
	ck_assert_uint_eq(control->faulted_probes, 1);
	*(volatile char *)page = 0;
	ck_assert_uint_eq(probe_raw(number), MT_PROBE_SENT);
	check_raw(number);

	/* Windows that are none, and who does not own the slot. */
	player.end = player.start + 32768 + 8;
	ck_assert_uint_eq(probe_raw(number), MT_PROBE_REFUSED);
	player.end = player.start + 12;
	ck_assert_uint_eq(probe_raw(number), MT_PROBE_REFUSED);
	player.end = player.start;
	ck_assert_uint_eq(probe_raw(number), MT_PROBE_REFUSED);
	first_window(800);
	mt_probe_send(SLOT + 1, 1, 0, player.start, player.end, COOKIE, 0);
	ck_assert_uint_eq(control->answers[SLOT + 1].status, MT_PROBE_REFUSED);
	ck_assert_uint_eq(control->refused_probes, 4);
	drain();
	ck_assert_uint_eq(n_records, before + 1);
	close_run();
}
END_TEST

/* A ring without room for the largest window says so, and goes on when it is read. */
START_TEST(raw_full_ring)
{
	uint32_t number = 0;
	uint64_t before;

	open_raw(8192, 65536);
	first_window(800);
	do
		ck_assert_uint_lt(number, 1000);
	while (probe_raw(++number) == MT_PROBE_SENT);
	ck_assert_uint_eq(answer->status, MT_PROBE_FULL);
	ck_assert_uint_eq(control->full_probes, 1);
	ck_assert_uint_ne(control->latch, 0);
	ck_assert_uint_eq(MT_LATCH_RING(control->latch), MT_LATCH_STACKS);
	ck_assert_uint_eq(MT_LATCH_SLOT(control->latch), SLOT);
	before = n_records;
	drain();
	ck_assert_uint_eq(n_records, before + number - 1);
	ck_assert_int_eq(decode_error, 0);
	ck_assert_uint_eq(last.seq, number - 1);
	control->latch = 0;
	ck_assert_uint_eq(probe_raw(number), MT_PROBE_SENT);
	check_raw(number);
	ck_assert_uint_eq(control->latch, 0);
	close_run();
}
END_TEST

static void *wait_for_stacks(void *ret)
{
	struct pollfd fd = { .fd = mt_probes_stacks_fd(probes), .events = POLLIN };

	/* At a time-out it would look, too: who is not woken is ended by the test's. */
	*(int *)ret = poll(&fd, 1, -1);
	return NULL;
}

START_TEST(amount_wakes)
{
	const struct mt_probes_config config = {
		.cookie = COOKIE,
		.budget_bytes = 8192,
		.stacks_bytes = 65536,
		.wakeup_bytes = 4096,
	};
	pthread_t thread;
	int woken = 0;

	open_run(&config);
	claim();
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_stacks, &woken), 0);
	while (mt_probes_stacks_produced(probes) < 3 * 4096) {
		first_window(800);
		++*player_word(&player, player.start);
		ck_assert_uint_eq(probe(), MT_PROBE_SENT);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(woken, 1);
	close_run();
}
END_TEST

/* So does a window as it is, and what is left of one that could not be read. */
START_TEST(raw_wakes)
{
	pthread_t thread;

	open_raw(32768, 65536);
	first_window(20000);
	madvise((char *)((player.start + 8192) & ~4095ULL), _i ? 4096 : 0, MADV_DONTNEED);
	pthread_create(&thread, NULL, wait_for_stacks, &(int){ 0 });
	usleep(100000);
	ck_assert_uint_eq(probe_raw(1), _i ? MT_PROBE_FAULT : MT_PROBE_SENT);
	pthread_join(thread, NULL);
	close_run();
}
END_TEST

START_TEST(what_can_not_be_attached)
{
	open_budget(8192);
	ck_assert_int_eq(mt_probes_attach(probes, "/nowhere/at/all"), -ENOENT);
	ck_assert_int_eq(mt_probes_attach(probes, "/bin/true"), -ENOEXEC);
	ck_assert_int_eq(mt_probes_attach(probes, "/etc/passwd"), -ENOEXEC);
	ck_assert_int_eq(mt_probes_attach(probes, "/proc/self/cmdline"), -ENOEXEC);
	close_run();
}
END_TEST

static TCase *add_cases(Suite *suite, const char *name)
{
	TCase *cases = tcase_create(name);

	suite_add_tcase(suite, cases);
	tcase_set_timeout(cases, 120);
	tcase_add_loop_test(cases, churn, 0, 5);
	tcase_add_test(cases, claim_forgets);
	tcase_add_test(cases, full_ring);
	tcase_add_test(cases, drain_is_taken_up_again);
	tcase_add_test(cases, pages_that_are_not_there);
	tcase_add_test(cases, windows_that_are_none);
	tcase_add_test(cases, who_may_probe);
	tcase_add_test(cases, fork_child_renews_the_probe);
	tcase_add_test(cases, two_in_one_slot);
	tcase_add_loop_test(cases, raw_windows, 0, 5);
	tcase_add_test(cases, raw_refused);
	tcase_add_test(cases, raw_full_ring);
	tcase_add_test(cases, amount_wakes);
	tcase_add_loop_test(cases, raw_wakes, 0, 2);
	tcase_add_test(cases, what_can_not_be_attached);
	return cases;
}

int main(void)
{
	Suite *suite = suite_create("capture_probe");
	SRunner *runner;
	int failed, skip = bpf_allowed();

	if (skip)
		return skip;
	runner = srunner_create(suite);
	add_cases(suite, "links");
	tcase_add_checked_fixture(add_cases(suite, "perf_events"), by_perf_events, NULL);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
