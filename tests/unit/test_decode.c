/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_decode.c - the decoder on records that are wrong, and on raw ones
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

#include "base/cleanup.h"
#include "collector/decode.h"
#include "tests/inline_slot.h"
#include "tests/stack_player.h"
#include "wire/ring.h"

#define BUDGET 4096
#define TAIL_BYTES MT_RECORD_MAX_BYTES
#define HEAD_BYTES (sizeof(struct mt_stack_record) - 8)

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
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(record, len), -ESTALE);
	head->ref_digest--;
	head->generation++;
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(record, len), -ESTALE);
	head->generation--;
	record_seal(head, BUDGET);
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
		{ "length 0", FIELD(len_words), 0 },
		{ "a longer length", FIELD(len_words), 512 },
		{ "kind 0", FIELD(kind), 0 },
		{ "an unknown kind", FIELD(kind), 4 },
		{ "an entry that is none", FIELD(entry), MT_DICTIONARY },
		{ "an entry of another set", FIELD(entry), 0xffff },
		{ "start not a word's", FIELD(start), 0x7f0000000004 },
		{ "end not a user's", FIELD(start), 0xffffffffffffff00 },
		{ "an empty window", FIELD(window_words), 0 },
		{ "more than the budget", FIELD(window_words), BUDGET / 8 + 1 },
		{ "no digest", FIELD(digest), 0 },
		{ "groups that are not there", FIELD(mask[0]), 0x100 },
	};
	char record[2 * BUDGET], copy[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)copy, taken;
	size_t len = make_delta(record);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		memcpy(copy, record, len);
		memcpy(copy + wrong[i].offset, &wrong[i].value, wrong[i].bytes);
		record_seal(head, BUDGET);
		ck_assert_msg(verdict(copy, len) == -EBADMSG, "%s", wrong[i].what);
	}
	/* Any entry of the digest's two sets is good. */
	for (unsigned way = 0; way < 2 * MT_DICTIONARY_WAYS; way++) {
		memcpy(copy, record, len);
		head->entry = (__u16)(mt_dictionary_set(head->digest, way / MT_DICTIONARY_WAYS) +
				      way % MT_DICTIONARY_WAYS);
		record_seal(head, BUDGET);
		ck_assert_int_eq(mt_decode_head(BUDGET, copy, len, &taken), 0);
		ck_assert_uint_eq(taken.entry, head->entry);
		ck_assert_uint_eq(taken.mask[1], 0);
	}
	/* None of them moved the reference. */
	ck_assert_int_eq(verdict(record, len), 0);
}
END_TEST

/* Whatever bit of a head is turned: it is never believed, and the reference stays. */
START_TEST(damaged_heads)
{
	char record[2 * BUDGET], copy[2 * BUDGET];
	struct mt_stack_record taken;
	size_t len = make_delta(record);

	for (size_t bit = 0; bit < HEAD_BYTES * 8; bit++) {
		memcpy(copy, record, len);
		copy[bit / 8] ^= 1 << bit % 8;
		ck_assert_int_eq(mt_decode_head(BUDGET, copy, len, &taken), -EBADMSG);
		ck_assert_int_eq(verdict(copy, len), -EBADMSG);
	}
	ck_assert_int_eq(verdict(record, len), 0);
	check_goes_on(1);
}
END_TEST

/* With mask[1], which is there above 32 KiB. */
START_TEST(damaged_long_heads)
{
	mt_cleanup(mt_decoder_freep) struct mt_decoder *large = NULL;
	const uint32_t budget = 65536;
	static char record[2 * 65536];
	struct stack_player other;
	struct inline_slot large_slot;
	struct mt_window window;
	__u64 mask[2];
	size_t len;

	ck_assert_int_eq(mt_decoder_new(budget, &large), 0);
	player_init(&other, budget, 4);
	slot_init(&large_slot, budget);
	other.start = other.bound - 60000;
	other.end = other.bound;
	slot_digest(&large_slot, &other, mask);
	len = slot_encode(&large_slot, &other, 0, mask);
	memcpy(record, &large_slot.scratch->record, len);
	for (size_t bit = 0; bit < 64 * 8; bit++) {
		record[bit / 8] ^= 1 << bit % 8;
		ck_assert_int_eq(mt_decode_record(large, record, len, &window), -EBADMSG);
		record[bit / 8] ^= 1 << bit % 8;
	}
	ck_assert_int_eq(mt_decode_record(large, record, len, &window), 0);
	player_check_window(&other, window.start, window.end, window.words, window.mask);
	slot_done(&large_slot);
	player_done(&other);
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
	/* A head that was cut to fit. */
	slot.reference->resync_asked++;
	len = make(record);
	for (size_t cut = HEAD_BYTES; cut < len; cut += 8) {
		head->len_words = (__u16)(cut / 8);
		record_seal(head, BUDGET);
		ck_assert_int_eq(verdict(record, cut), -EBADMSG);
	}
	head->len_words = (__u16)(len / 8);
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(record, len), 0);
	check_goes_on(1);
}
END_TEST

/* The ring may have more room for a record than that needs. */
START_TEST(what_is_behind_is_ignored)
{
	char record[2 * BUDGET];
	struct mt_window window;
	size_t len = make_delta(record);

	memset(record + len, 0xff, sizeof(record) - len);
	ck_assert_int_eq(decode(record, sizeof(record), &window), 0);
	player_check_window(&player, window.start, window.end, window.words, window.mask);
	check_goes_on(1);
}
END_TEST

START_TEST(bodies_are_checked)
{
	char record[2 * BUDGET] __attribute__((aligned(8)));
	struct mt_stack_record *head = (struct mt_stack_record *)record;
	__u32 *body = (__u32 *)(record + HEAD_BYTES);
	size_t len, end;
	int outside = 0;

	/* A half outside the range of the window's first group: one map or the other has it. */
	slot.reference->resync_asked++;
	len = make(record);
	end = slot.scratch->n_out;
	for (unsigned r = BUDGET / MT_GROUP_BYTES; r-- > 0;) {
		uint32_t range = mt_group_range(head->start, mt_stack_end(head), r,
						BUDGET / MT_GROUP_BYTES);
		__u8 *index = (__u8 *)(body + end) - 2;
		__u64 lows, highs, n, maps;

		if (!(head->mask[0] >> r & 1))
			continue;
		n = record_maps(body + end, &lows, &highs);
		maps = mt_map_halves(index[0], index[1]);
		if (MT_RANGE_LO(range) && lows & 0xff) {
			((__u8 *)(body + end - maps))[0] |= 1;
			ck_assert_int_eq(verdict(record, len), -EBADMSG);
			((__u8 *)(body + end - maps))[0] &= (__u8)~1U;
			outside++;
		}
		end -= n;
	}
	ck_assert_uint_eq(end, 0);
	/* Halves that no map names. */
	for (unsigned more = 1; more < 3; more++) {
		head->len_words = (__u16)(len / 8 + more);
		record_seal(head, BUDGET);
		ck_assert_int_eq(verdict(record, len + 8 * more), -EBADMSG);
	}
	head->len_words = (__u16)(len / 8);
	head->pad_halves ^= 1;
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(record, len), -EBADMSG);
	head->pad_halves = 2;
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(record, len), -EBADMSG);
	head->pad_halves = slot.scratch->n_out & 1;
	head->len_words = (__u16)(len / 8);
	/* A group in the mask that the window does not have: bits without a range. */
	ck_assert_uint_ne(head->mask[0], 0xff);
	head->mask[0] = 0xff;
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(record, len), -EBADMSG);
	check_goes_on(0);
}
END_TEST

/* What fills a record up to a word means nothing. */
START_TEST(filling_means_nothing)
{
	char record[2 * BUDGET];
	struct mt_window window;
	size_t len = make_delta(record);
	int filled = 0;

	for (int i = 0; i < 8; i++) {
		/* One half more each time: each second record has one left over. */
		for (int k = 0; k <= i; k++)
			++*player_word(&player, player.start + 8 * (uint64_t)k);
		ck_assert_int_eq(verdict(record, len), 0);
		len = make(record);
		filled += slot.scratch->n_out % 2;
		if (slot.scratch->n_out % 2)
			memset(record + len - 4, 0xff, 4);
	}
	ck_assert_int_gt(filled, 0);
	ck_assert_int_eq(decode(record, len, &window), 0);
	player_check_window(&player, window.start, window.end, window.words, window.mask);
}
END_TEST

START_TEST(mismatch_voids)
{
	char record[2 * BUDGET] __attribute__((aligned(8)));
	__u32 *body = (__u32 *)(record + HEAD_BYTES);
	size_t len = make_delta(record);

	body[0] ^= 0x10;
	ck_assert_int_eq(verdict(record, len), -EILSEQ);
	body[0] ^= 0x10;
	/* Also to the record as it should have been. */
	ck_assert_int_eq(verdict(record, len), -ESTALE);
	check_goes_on(0);
}
END_TEST

/* Whatever byte is changed, in the head with a check that fits or not: an error, or the window
 * as it was. */
START_TEST(any_byte_may_change)
{
	char record[2 * BUDGET], copy[2 * BUDGET];
	struct mt_window window;
	int good = 0;
	size_t len;

	for (int kind = 0; kind < 2; kind++) {
		slot.reference->resync_asked += kind;
		len = kind ? make(record) : make_delta(record);
		for (size_t at = 0; at < len; at++) {
			memcpy(copy, record, len);
			copy[at] ^= 1 << at % 8;
			if (at % 3 && at < HEAD_BYTES)
				record_seal((struct mt_stack_record *)copy, BUDGET);
			good = decode(copy, len, &window) == 0;
			if (good)
				player_check_window(&player, window.start, window.end, window.words,
						    window.mask);
		}
	}
	check_goes_on(good);
}
END_TEST

/* A raw window at every place in a group, of every length: and the reference does not move. */
START_TEST(raw_leaves_the_reference)
{
	char delta[2 * BUDGET], record[2 * BUDGET];
	size_t len = make_delta(delta);
	uint64_t start = player.start;
	struct mt_window window;

	for (unsigned at = 0; at < MT_GROUP_WORDS; at++) {
		player.start = player.bound - 2 * BUDGET + at * 8;
		for (unsigned n = 1; n <= BUDGET / 8 - at; n = n < 70 ? n + 1 : n + 61) {
			size_t raw_len;

			player.end = player.start + n * 8;
			raw_len = slot_raw(&player, n, record);
			ck_assert_uint_eq(raw_len, HEAD_BYTES + n * 8 + 8);
			ck_assert_int_eq(decode(record, raw_len, &window), 0);
			player_check_window(&player, window.start, window.end, window.words,
					    window.mask);
			ck_assert_int_eq(window.bottom, at + n < BUDGET / 8);
		}
	}
	player.start = start;
	player.end = player.bound;
	ck_assert_int_eq(verdict(delta, len), 0);
	check_goes_on(1);
}
END_TEST

START_TEST(raw_is_checked)
{
	char record[2 * BUDGET], copy[2 * BUDGET], delta[2 * BUDGET];
	struct mt_stack_record *head = (struct mt_stack_record *)copy;
	size_t delta_len = make_delta(delta), len = slot_raw(&player, 5, record);
	size_t bytes = player.end - player.start;

	for (size_t at = HEAD_BYTES; at < len; at++) {
		memcpy(copy, record, len);
		copy[at] ^= 1 << at % 8;
		ck_assert_int_eq(verdict(copy, len), -EILSEQ);
	}
	for (int more = -8; more <= 8; more += 16) {
		memcpy(copy, record, len);
		head->len_words = (__u16)((len + (size_t)more) / 8);
		record_seal(head, BUDGET);
		ck_assert_int_eq(verdict(copy, len + 8), -EBADMSG);
	}
	memcpy(copy, record, len);
	head->digest = 1;
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(copy, len), -EBADMSG);
	memcpy(copy, record, len);
	head->mask[0] = 1;
	record_seal(head, BUDGET);
	ck_assert_int_eq(verdict(copy, len), -EBADMSG);
	ck_assert_uint_eq(len, HEAD_BYTES + bytes + 8);
	ck_assert_int_eq(verdict(record, len), 0);
	ck_assert_int_eq(verdict(delta, delta_len), 0);
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
	tcase_add_test(cases, damaged_heads);
	tcase_add_test(cases, damaged_long_heads);
	tcase_add_test(cases, truncation_is_seen);
	tcase_add_test(cases, what_is_behind_is_ignored);
	tcase_add_test(cases, bodies_are_checked);
	tcase_add_test(cases, filling_means_nothing);
	tcase_add_test(cases, mismatch_voids);
	tcase_add_test(cases, any_byte_may_change);
	tcase_add_test(cases, raw_leaves_the_reference);
	tcase_add_test(cases, raw_is_checked);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
