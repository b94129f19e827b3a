/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_decode.c - the decoder on records that are wrong, and on kinds the encoder does not make
 *
 * Round trips are in test_stack_delta.c.  Here each record lies right before an unreadable
 * page, and errors are checked for what they leave behind.
 */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xxhash.h>

#include "base/cleanup.h"
#include "collector/decode.h"
#include "tests/inline_slot.h"
#include "tests/stack_player.h"
#include "wire/ring.h"

#define BUDGET 4096
#define TAIL_BYTES MT_RECORD_MAX_BYTES

static struct stack_player player;
static struct inline_slot slot;
static struct mt_decoder *decoder;
static char *tail; /* its last byte is before an unreadable page */

static void set_up(void)
{
	tail = mmap(NULL, TAIL_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	ck_assert(tail != MAP_FAILED);
	ck_assert_int_eq(mprotect(tail + TAIL_BYTES, 4096, PROT_NONE), 0);
	ck_assert_int_eq(mt_decoder_new(BUDGET, &decoder), 0);
	player_init(&player, BUDGET, 4);
	slot_init(&slot, BUDGET);
	player.start = player.bound - 3000;
	player.end = player.bound;
}

static void tear_down(void)
{
	mt_decoder_free(decoder);
	slot_done(&slot);
	player_done(&player);
	munmap(tail, TAIL_BYTES + 4096);
}

/* Encodes the window into a record of the caller; commits. */
static size_t make(char *record)
{
	__u64 mask[2];
	uint32_t len;

	slot_digest(&slot, &player, mask);
	len = slot_encode(&slot, &player, slot.reference->seq, mask);
	memcpy(record, &slot.scratch->record, len);
	slot_commit(&slot);
	return len;
}

/* A key frame, decoded, then a delta of a few words, which is returned. */
static size_t make_delta(char *record)
{
	char key[2 * BUDGET];
	struct mt_window window;
	size_t len = make(key);

	ck_assert_int_eq(mt_decode_record(decoder, key, len, &window), 0);
	for (uint64_t at = player.start; at < player.end; at += 8 * 50)
		++*player_word(&player, at);
	return make(record);
}

static int decode(const void *record, size_t len, struct mt_window *window)
{
	memcpy(tail + TAIL_BYTES - len, record, len);
	return mt_decode_record(decoder, tail + TAIL_BYTES - len, len, window);
}

static int verdict(const void *record, size_t len)
{
	struct mt_window window;

	return decode(record, len, &window);
}

/* The next record is accepted and its window is right: by delta, or only as a key frame. */
static void check_goes_on(int by_delta)
{
	char record[2 * BUDGET];
	struct mt_window window;
	size_t len;

	++*player_word(&player, player.start + 800);
	len = make(record);
	if (!by_delta) {
		ck_assert_int_eq(verdict(record, len), -ESTALE);
		slot.reference->resync_asked++;
		len = make(record);
	}
	ck_assert_int_eq(decode(record, len, &window), 0);
	player_check_window(&player, window.start, window.end, window.words, window.mask);
}

START_TEST(budgets_are_checked)
{
	struct mt_decoder *none = NULL;

	ck_assert_int_eq(mt_decoder_new(0, &none), -EINVAL);
	ck_assert_int_eq(mt_decoder_new(2048, &none), -EINVAL);
	ck_assert_int_eq(mt_decoder_new(12288, &none), -EINVAL);
	ck_assert_int_eq(mt_decoder_new(131072, &none), -EINVAL);
	ck_assert_ptr_null(none);
	mt_decoder_free(none);
}
END_TEST

START_TEST(delta_needs_its_reference)
{
	char record[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	size_t len = make_delta(record);

	head->ref_digest++;
	ck_assert_int_eq(verdict(record, len), -ESTALE);
	head->ref_digest--;
	head->generation++;
	ck_assert_int_eq(verdict(record, len), -ESTALE);
	head->generation--;
	ck_assert_int_eq(verdict(record, len), 0);
	ck_assert_int_eq(verdict(record, len), -ESTALE);
	check_goes_on(1);
}
END_TEST

START_TEST(heads_are_checked)
{
	static const struct {
		const char *what;
		size_t offset, bytes;
		uint64_t value;
	} wrong[] = {
#define FIELD(field) \
	offsetof(struct mt_stack_record, field), sizeof(((struct mt_stack_record *)0)->field)
		{ "length 0", FIELD(len), 0 },
		{ "a longer length", FIELD(len), 4096 },
		{ "kind 0", FIELD(kind), 0 },
		{ "an unknown kind", FIELD(kind), 5 },
		{ "start not a word's", FIELD(start), 0x7f0000000004 },
		{ "start behind end", FIELD(start), 0x00ffffffffffff00 },
		{ "more than the budget", FIELD(start), 0x7f0000000000 },
		{ "end not a user's", FIELD(end), 0xffffffffffffff00 },
		{ "no digest", FIELD(digest), 0 },
		{ "a delta of nothing", FIELD(ref_digest), 0 },
		{ "groups that are not there", FIELD(mask[1]), 1 },
		{ "groups that are not there", FIELD(mask[0]), 0x100 },
	};
	char record[2 * BUDGET], copy[2 * BUDGET];
	size_t len = make_delta(record);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		memcpy(copy, record, len);
		memcpy(copy + wrong[i].offset, &wrong[i].value, wrong[i].bytes);
		ck_assert_msg(verdict(copy, len) == -EBADMSG, "%s", wrong[i].what);
	}
	/* None of them moved the reference. */
	ck_assert_int_eq(verdict(record, len), 0);
}
END_TEST

START_TEST(truncation_is_seen)
{
	char record[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	size_t len = make_delta(record);

	for (size_t cut = 0; cut < len; cut++)
		ck_assert_int_eq(verdict(record, cut), -EBADMSG);
	ck_assert_int_eq(verdict(record, len), 0);
	len = make(record);
	/* A head that was cut to fit. */
	slot.reference->resync_asked++;
	len = make(record);
	for (size_t cut = sizeof(*head); cut < len; cut += 8) {
		head->len = cut;
		ck_assert_int_eq(verdict(record, cut), -EBADMSG);
	}
	head->len = len;
	ck_assert_int_eq(verdict(record, len), 0);
	check_goes_on(1);
}
END_TEST

START_TEST(bodies_are_checked)
{
	char record[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	uint64_t *body = (uint64_t *)(head + 1);
	size_t len;

	/* A bit outside the range of the window's first group. */
	slot.reference->resync_asked++;
	len = make(record);
	for (unsigned r = 0, at = 0; r < BUDGET / MT_GROUP_BYTES; r++) {
		uint32_t range = mt_group_range(head->start, head->end, r, BUDGET / MT_GROUP_BYTES);

		if (range && MT_RANGE_LO(range)) {
			body[at] |= 1;
			ck_assert_int_eq(verdict(record, len), -EBADMSG);
			body[at] &= ~1ULL;
		}
		if (head->mask[0] >> r & 1)
			at += 1 + __builtin_popcountll(body[at]);
	}
	/* Words that no bitmap names. */
	head->len = len + 8;
	ck_assert_int_eq(verdict(record, len + 8), -EBADMSG);
	head->len = len;
	/* A group in the mask that the window does not have: bits without a range. */
	ck_assert_uint_ne(head->mask[0], 0xff);
	head->mask[0] = 0xff;
	ck_assert_int_eq(verdict(record, len), -EBADMSG);
	check_goes_on(0);
}
END_TEST

START_TEST(mismatch_voids)
{
	char record[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	size_t len = make_delta(record);

	((uint64_t *)(head + 1))[1] ^= 0x10;
	ck_assert_int_eq(verdict(record, len), -EILSEQ);
	((uint64_t *)(head + 1))[1] ^= 0x10;
	/* Also to the record as it should have been. */
	ck_assert_int_eq(verdict(record, len), -ESTALE);
	check_goes_on(0);
}
END_TEST

/* Whatever byte is changed: an error, or the window as it was. */
START_TEST(any_byte_may_change)
{
	char record[2 * BUDGET], copy[2 * BUDGET];
	struct mt_window window;
	size_t len;

	for (int kind = 0; kind < 2; kind++) {
		slot.reference->resync_asked += kind;
		len = kind ? make(record) : make_delta(record);
		for (size_t at = 0; at < len; at++) {
			memcpy(copy, record, len);
			copy[at] ^= 1 << at % 8;
			if (decode(copy, len, &window) == 0)
				player_check_window(&player, window.start, window.end, window.words,
						    window.mask);
		}
	}
	check_goes_on(0);
}
END_TEST

/* A key frame made into the detached record of the same window. */
static size_t detach(char *record, size_t len)
{
	struct mt_stack_record *head = (struct mt_stack_record *)record;

	memcpy(record + len, &head->digest, 8);
	head->digest = 0;
	head->kind = MT_STACK_KIND_DETACHED;
	head->len = len + 8;
	return len + 8;
}

START_TEST(detached_leaves_the_reference)
{
	char record[2 * BUDGET], aside[2 * BUDGET];
	struct mt_window window;
	struct inline_slot other;
	size_t len = make_delta(record);
	__u64 mask[2];

	slot_init(&other, BUDGET);
	slot_digest(&other, &player, mask);
	slot_encode(&other, &player, 0, mask);
	memcpy(aside, &other.scratch->record, other.scratch->record.len);
	for (int i = 0; i < 2; i++) {
		size_t n = detach(aside, other.scratch->record.len);

		ck_assert_int_eq(decode(aside, n, &window), 0);
		player_check_window(&player, window.start, window.end, window.words, window.mask);
		aside[n - 1] ^= 1;
		ck_assert_int_eq(verdict(aside, n), -EILSEQ);
		memset(aside + n - 8, 0, 8);
		ck_assert_int_eq(verdict(aside, n), -EBADMSG);
		memcpy(aside, &other.scratch->record, other.scratch->record.len);
	}
	ck_assert_int_eq(verdict(record, len), 0);
	check_goes_on(1);
	slot_done(&other);
}
END_TEST

START_TEST(raw_is_the_window)
{
	char delta[2 * BUDGET], record[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	size_t len = make_delta(delta), bytes = player.end - player.start;
	struct mt_window window;

	memcpy(head, delta, sizeof(*head));
	memcpy(head + 1, player_word(&player, player.start), bytes);
	head->kind = MT_STACK_RAW;
	head->mask[0] = 0;
	head->len = sizeof(*head) + bytes;
	head->len -= 8;
	ck_assert_int_eq(verdict(record, head->len), -EBADMSG);
	head->len += 8;
	record[head->len - 1] ^= 1;
	ck_assert_int_eq(verdict(record, head->len), -EILSEQ);
	record[head->len - 1] ^= 1;
	ck_assert_int_eq(decode(record, head->len, &window), 0);
	player_check_window(&player, window.start, window.end, window.words, window.mask);
	/* The reference has its name now: the delta that led there has no place any more. */
	ck_assert_int_eq(verdict(delta, len), -ESTALE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("decode");
	TCase *cases = tcase_create("decode");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, cases);
	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_add_test(cases, budgets_are_checked);
	tcase_add_test(cases, delta_needs_its_reference);
	tcase_add_test(cases, heads_are_checked);
	tcase_add_test(cases, truncation_is_seen);
	tcase_add_test(cases, bodies_are_checked);
	tcase_add_test(cases, mismatch_voids);
	tcase_add_test(cases, any_byte_may_change);
	tcase_add_test(cases, detached_leaves_the_reference);
	tcase_add_test(cases, raw_is_the_window);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
