/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_progress.c - answers on how far a run is: when, how many, and what they look like
 */
#include "collector/progress.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
	struct mt_progress progress;
	uint64_t bytes;
	const char *text;
} lines[] = {
	{ { 0, 0, false }, 0, "memtrack: 0 events, 0 chains, 0.0 KiB" },
	{ { 999, 12, false }, 1023, "memtrack: 999 events, 12 chains, 1.0 KiB" },
	{ { 1000, 1000, true }, 1 << 20, "memtrack: 1,000 events, 1,000 chains, 1.0 MiB, paused" },
	{ { 1234567, 23456, false },
	  (1 << 20) - 1,
	  "memtrack: 1,234,567 events, 23,456 chains, 1.0 MiB" },
	{ { UINT64_MAX, UINT64_MAX, true },
	  UINT64_MAX,
	  "memtrack: 18,446,744,073,709,551,615 events, 18,446,744,073,709,551,615 chains, "
	  "16.0 EiB, paused" },
};

START_TEST(looks_like)
{
	char text[MT_PROGRESS_ROOM];

	mt_progress_format(&lines[_i].progress, lines[_i].bytes, text, sizeof(text));
	ck_assert_str_eq(text, lines[_i].text);
}
END_TEST

static const struct {
	enum mt_message_kind kind;
	const char *text;
	int r;
} messages[] = {
	{ MT_MESSAGE_PROGRESS, "12 5", 0 },	   { MT_MESSAGE_NOTE, "12 5", -EBADMSG },
	{ MT_MESSAGE_PROGRESS, "", -EBADMSG },	   { MT_MESSAGE_PROGRESS, "12", -EBADMSG },
	{ MT_MESSAGE_PROGRESS, "12 x", -EBADMSG }, { MT_MESSAGE_PROGRESS, "12 5 7", -EBADMSG },
};

START_TEST(is_checked)
{
	struct mt_progress progress = { .events = 77 };
	struct mt_message message = { .kind = messages[_i].kind, .number = 1 };

	strcpy(message.text, messages[_i].text);
	ck_assert_int_eq(mt_progress_parse(&message, &progress), messages[_i].r);
	ck_assert_uint_eq(progress.events, messages[_i].r ? 77 : 12);
	ck_assert_uint_eq(progress.chains, messages[_i].r ? 0 : 5);
	ck_assert_int_eq(progress.paused, !messages[_i].r);
}
END_TEST

/* One answer for each time that it is asked, and not before its time. */
START_TEST(is_paced)
{
	struct mt_progress_pace pace = { .paused = true };
	struct mt_progress progress;
	struct mt_message message;
	uint64_t now_ns = 1000;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert(!mt_progress_due(&pace, now_ns));
	pace.asked = true;
	ck_assert(mt_progress_due(&pace, now_ns));
	mt_progress_tell(&pace, pair[0], now_ns, 3, 2);
	ck_assert_int_eq(mt_channel_receive(pair[1], MSG_DONTWAIT, &message), 1);
	ck_assert_int_eq(mt_progress_parse(&message, &progress), 0);
	ck_assert_uint_eq(progress.events, 3);
	ck_assert_uint_eq(progress.chains, 2);
	ck_assert(progress.paused);

	ck_assert(!mt_progress_due(&pace, now_ns + MT_PROGRESS_NS));
	pace.asked = true;
	ck_assert(!mt_progress_due(&pace, now_ns + MT_PROGRESS_NS - 1));
	ck_assert(mt_progress_due(&pace, now_ns + MT_PROGRESS_NS));
	mt_progress_tell(&pace, pair[0], now_ns + MT_PROGRESS_NS, 4, 2);
	ck_assert_int_eq(mt_channel_receive(pair[1], MSG_DONTWAIT, &message), 1);
	ck_assert_int_eq(mt_progress_parse(&message, &progress), 0);
	ck_assert(!progress.paused);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

/* Nobody reads: the answer is dropped, and what it would have told is not forgotten. */
START_TEST(does_not_wait)
{
	struct mt_progress_pace pace = { .asked = true, .paused = true };
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	while (mt_channel_offer(pair[0], MT_MESSAGE_NOTE, 0, "fill") == 0)
		;
	mt_progress_tell(&pace, pair[0], 5, 3, 2);
	ck_assert(pace.asked && pace.paused);
	ck_assert(!mt_progress_due(&pace, 5));
	ck_assert(mt_progress_due(&pace, 5 + MT_PROGRESS_NS));
	close(pair[0]);
	close(pair[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("progress");
	TCase *tcase = tcase_create("progress");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, looks_like, 0, sizeof(lines) / sizeof(lines[0]));
	tcase_add_loop_test(tcase, is_checked, 0, sizeof(messages) / sizeof(messages[0]));
	tcase_add_test(tcase, is_paced);
	tcase_add_test(tcase, does_not_wait);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
