/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_summary.c - what a run's end is told in: a line and a bit for all that is missing
 */
#include "collector/summary.h"

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/channel.h"

#define TEXT_BYTES sizeof(((struct mt_message *)0)->text)

static int pair[2];
static struct mt_pipeline_counts counts;
static struct mt_control control;
static struct mt_summary summary;

/* What the C library would say. */
static struct rusage used;

int getrusage(__rusage_who_t who, struct rusage *ret)
{
	*ret = used;
	return 0;
}

static void setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	summary = (struct mt_summary){
		.channel = pair[0],
		.counts = &counts,
		.control = &control,
		.why_inline = "",
	};
}

static void teardown(void)
{
	close(pair[0]);
	close(pair[1]);
}

/* How many messages of that kind are on the channel; ret: the last text that has the word. */
static int read_all(enum mt_message_kind kind, const char *word, char *ret)
{
	struct mt_message message;
	int n = 0;

	ret[0] = '\0';
	while (mt_channel_receive(pair[1], MSG_DONTWAIT, &message) == 1) {
		if (message.kind != (uint32_t)kind)
			continue;
		n++;
		if (strstr(message.text, word))
			memcpy(ret, message.text, TEXT_BYTES);
	}
	return n;
}

START_TEST(nothing_missing)
{
	char text[TEXT_BYTES];

	counts.events = 1000;
	counts.not_tracked = MT_PIPELINE_NOTES;
	ck_assert_uint_eq(mt_summary_tell(&summary), 0);
	ck_assert_int_eq(read_all(MT_MESSAGE_NOTE, "", text), 0);
}
END_TEST

static const struct {
	size_t offset; /* of the count */
	bool is_control;
} losses[] = {
	{ offsetof(struct mt_pipeline_counts, lost_events), false },
	{ offsetof(struct mt_pipeline_counts, stacks.lost), false },
	{ offsetof(struct mt_pipeline_counts, damaged_rings), false },
	{ offsetof(struct mt_pipeline_counts, stray_cells), false },
	{ offsetof(struct mt_control, unserved_threads), true },
	{ offsetof(struct mt_control, lost_lives), true },
	{ offsetof(struct mt_control, lost_members), true },
};

START_TEST(losses_are_told)
{
	char *base = losses[_i].is_control ? (char *)&control : (char *)&counts;
	char text[TEXT_BYTES];

	*(uint64_t *)(base + losses[_i].offset) = 7;
	ck_assert_uint_eq(mt_summary_tell(&summary), MT_DONE_LOST);
	ck_assert_int_eq(read_all(MT_MESSAGE_NOTE, "7 ", text), 1);
	ck_assert_str_ne(text, "");
}
END_TEST

/* These are among those that the collector counts as lost, but the shim knows why. */
START_TEST(never_captured)
{
	char text[TEXT_BYTES];

	counts.stacks.lost = 9;
	control.lost_stacks = 7;
	ck_assert_uint_eq(mt_summary_tell(&summary), MT_DONE_LOST);
	read_all(MT_MESSAGE_SUMMARY, "never captured", text);
	ck_assert_ptr_nonnull(strstr(text, "; lost 9, of them never captured 7"));
}
END_TEST

START_TEST(errors_are_told)
{
	char text[TEXT_BYTES];

	summary.error = -ENOSPC;
	summary.error_verb = "write the artifact";
	ck_assert_uint_eq(mt_summary_tell(&summary), MT_DONE_FAILED);
	ck_assert_int_eq(read_all(MT_MESSAGE_NOTE, "", text), 1);
	ck_assert_str_eq(text, "cannot write the artifact: No space left on device; the artifact "
			       "ends before that");

	/* The artifact is what it should be. */
	summary.error = 0;
	summary.stats_error = -EIO;
	ck_assert_uint_eq(mt_summary_tell(&summary), 0);
	ck_assert_int_eq(read_all(MT_MESSAGE_NOTE, "statistics", text), 1);
	ck_assert_str_ne(text, "");
}
END_TEST

static const struct {
	struct timeval user, system;
	const char *text;
} times[] = {
	{ { 0, 0 }, { 0, 0 }, " 0.000 s of CPU" },
	{ { 1, 2000 }, { 3, 40000 }, " 4.042 s of CPU" },
	{ { 0, 600000 }, { 0, 600000 }, " 1.200 s of CPU" },
	{ { 9, 999999 }, { 0, 1 }, " 10.000 s of CPU" },
};

START_TEST(cpu_time)
{
	char text[TEXT_BYTES];

	used.ru_utime = times[_i].user;
	used.ru_stime = times[_i].system;
	mt_summary_tell(&summary);
	read_all(MT_MESSAGE_SUMMARY, " of CPU", text);
	ck_assert_ptr_nonnull(strstr(text, times[_i].text));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("summary");
	TCase *tcase = tcase_create("summary");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, nothing_missing);
	tcase_add_loop_test(tcase, losses_are_told, 0, sizeof(losses) / sizeof(losses[0]));
	tcase_add_test(tcase, never_captured);
	tcase_add_test(tcase, errors_are_told);
	tcase_add_loop_test(tcase, cpu_time, 0, sizeof(times) / sizeof(times[0]));
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
