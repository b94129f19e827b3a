/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_faults.c - what is said to happen to stack records happens, and is counted
 */
#include "collector/faults.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "wire/stack_record.h"

#define BODY_BYTES 24

struct record {
	struct mt_stack_record head;
	char body[BODY_BYTES];
};

static struct record seen[100];
static uint32_t seen_slot[100];
static unsigned n_seen;
static unsigned refuse_at; /* which one is refused, the first time; 0: none */

static int take(void *ctx, uint32_t slot, const void *record, size_t len)
{
	ck_assert_ptr_eq(ctx, seen);
	ck_assert_uint_le(len, sizeof(seen[0]));
	if (n_seen + 1 == refuse_at) {
		refuse_at = 0;
		return -EAGAIN;
	}
	seen_slot[n_seen] = slot;
	memcpy(&seen[n_seen++], record, len);
	return 0;
}

static struct record make(uint16_t slot, uint32_t seq)
{
	struct record record = {
		.head = { .len_words = sizeof(record) / 8, .slot = slot, .seq = seq }
	};

	memset(record.body, (int)seq, sizeof(record.body));
	return record;
}

static struct mt_faults *faults(const char *text)
{
	char problem[MT_FAULTS_PROBLEM];
	struct mt_faults *f = NULL;

	ck_assert_int_eq(mt_faults_new(text, problem, &f), 0);
	n_seen = 0;
	refuse_at = 0;
	return f;
}

/* Sends n records, with numbers from 1 on, of slots in turn. */
static void send(struct mt_faults *f, unsigned n, unsigned slots)
{
	for (unsigned i = 1; i <= n; i++) {
		struct record record = make((uint16_t)(i % slots), i);
		int r = mt_faults_push(f, i % slots, &record, sizeof(record), take, seen);

		if (r == -EAGAIN)
			r = mt_faults_push(f, i % slots, &record, sizeof(record), take, seen);
		ck_assert_int_eq(r, 0);
	}
}

static void check_seen(const uint32_t *seqs, unsigned n)
{
	ck_assert_uint_eq(n_seen, n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(seen[i].head.seq, seqs[i]);
}

START_TEST(drops_and_repeats)
{
	struct mt_faults *f = faults("drop:2,duplicate:4,drop/5");

	send(f, 11, 1);
	check_seen((const uint32_t[]){ 1, 3, 4, 4, 6, 7, 8, 9, 11 }, 9);
	ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_DROP), 3);
	ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_DUPLICATE), 1);
	ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_SWAP), 0);
	mt_faults_free(f);
}
END_TEST

START_TEST(swaps)
{
	struct mt_faults *f = faults("swap/3");

	send(f, 7, 1);
	check_seen((const uint32_t[]){ 1, 2, 4, 3, 5, 7, 6 }, 7);
	mt_faults_free(f);
	/* With the next of its own slot, and no second one meanwhile. */
	f = faults("swap:1,swap:2");
	send(f, 6, 3);
	check_seen((const uint32_t[]){ 2, 3, 4, 1, 5, 6 }, 6);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_uint_eq(seen_slot[i], seen[i].head.slot);
	ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_SWAP), 1);
	/* One that no other came after is gone with the run. */
	mt_faults_free(f);
	f = faults("swap:2");
	send(f, 2, 1);
	check_seen((const uint32_t[]){ 1 }, 1);
	mt_faults_free(f);
}
END_TEST

static unsigned differing_bits(const void *one, const void *other, size_t len)
{
	unsigned bits = 0;

	for (size_t i = 0; i < len; i++)
		bits += (unsigned)__builtin_popcount(
			(unsigned char)(((const char *)one)[i] ^ ((const char *)other)[i]));
	return bits;
}

START_TEST(corrupts)
{
	struct mt_faults *f = faults("corrupt/2,corrupt-head/3");

	send(f, 30, 1);
	ck_assert_uint_eq(n_seen, 30);
	for (unsigned i = 0; i < 30; i++) {
		struct record record = make(0, i + 1);
		bool body = (i + 1) % 2 == 0, head = !body && (i + 1) % 3 == 0;

		ck_assert_uint_eq(differing_bits(&seen[i].head, &record.head,
						 offsetof(struct mt_stack_record, mask)),
				  head);
		ck_assert_uint_eq(
			differing_bits(&seen[i].head.mask[1], &record.head.mask[1], 8 + BODY_BYTES),
			body);
	}
	ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_CORRUPT), 15);
	ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_CORRUPT_HEAD), 5);
	mt_faults_free(f);
}
END_TEST

/* A record that was refused is the same one when it comes again. */
START_TEST(refused_ones_come_again)
{
	for (unsigned at = 1; at <= 6; at++) {
		struct mt_faults *f = faults("drop:2,duplicate:3,corrupt:5");

		refuse_at = at;
		send(f, 6, 1);
		/* The second of two that is refused is one that never comes. */
		if (at == 3)
			check_seen((const uint32_t[]){ 1, 3, 4, 5, 6 }, 5);
		else
			check_seen((const uint32_t[]){ 1, 3, 3, 4, 5, 6 }, 6);
		ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_DUPLICATE), 1);
		ck_assert_uint_eq(mt_faults_done(f, MT_FAULT_CORRUPT), 1);
		mt_faults_free(f);
	}
}
END_TEST

START_TEST(what_is_no_record)
{
	struct mt_faults *f = faults("corrupt/1,corrupt-head/1");
	struct record record = make(0, 1);

	for (size_t len = 0; len <= sizeof(record); len++)
		ck_assert_int_eq(mt_faults_push(f, 0, &record, len, take, seen), 0);
	ck_assert_uint_eq(n_seen, sizeof(record) + 1);
	mt_faults_free(f);
}
END_TEST

START_TEST(texts_that_are_none)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "neither KIND:N nor KIND/N" },
		{ "drop", "neither KIND:N nor KIND/N" },
		{ "drop:1,", "neither KIND:N nor KIND/N" },
		{ "lose:1", "'lose': no such fault" },
		{ ":1", "'': no such fault" },
		{ "dro:1", "'dro': no such fault" },
		{ "drop:", "N is a number from 1 on" },
		{ "drop:0", "N is a number from 1 on" },
		{ "drop:-1", "N is a number from 1 on" },
		{ "drop:1x,swap:2", "'drop:1x': N is a number from 1 on" },
		{ "drop/1/2", "N is a number from 1 on" },
		{ "drop:99999999999999999999", "N is a number from 1 on" },
		{ "drop:1,drop:1,drop:1,drop:1,drop:1,drop:1,drop:1,drop:1,drop:1,"
		  "drop:1,drop:1,drop:1,drop:1,drop:1,drop:1,drop:1,drop:1",
		  "more than 16 faults" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char problem[MT_FAULTS_PROBLEM] = "";
		struct mt_faults *f = NULL;

		ck_assert_int_eq(mt_faults_new(wrong[i].text, problem, &f), -EINVAL);
		ck_assert_ptr_null(f);
		ck_assert_msg(strstr(problem, wrong[i].says), "%s: %s", wrong[i].text, problem);
	}
	mt_faults_free(NULL);
	for (enum mt_fault i = 0; i < _MT_FAULT_MAX; i++)
		ck_assert_ptr_nonnull(mt_fault_name(i));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("faults");
	TCase *cases = tcase_create("faults");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, cases);
	tcase_add_test(cases, drops_and_repeats);
	tcase_add_test(cases, swaps);
	tcase_add_test(cases, corrupts);
	tcase_add_test(cases, refused_ones_come_again);
	tcase_add_test(cases, what_is_no_record);
	tcase_add_test(cases, texts_that_are_none);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
