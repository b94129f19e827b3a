/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_session.c - the hand-shake: who is let in, what they get, and who is hung up on
 */
#include "collector/session.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/behind_wall.h"
#include "collector/clock.h"

#define COOKIE 0x0123456789abcdefULL
#define NAME ((uint64_t)0xfedcba98 << 32 | (uint32_t)getpid())

static char directory[] = "/tmp/memtrack-test-XXXXXX";
static char path[64];
static struct mt_segments *segments;
static struct mt_session *session;
static struct mt_arrival arrived;
static int n_arrived, answer;
static int wake[2];

static int on_arrival(void *ctx, const struct mt_arrival *arrival)
{
	arrived = *arrival;
	n_arrived++;
	return answer;
}

static void setup(void)
{
	struct mt_segments_config config = { .budget_bytes = 8192,
					     .ring_bytes = 4096,
					     .cookie = COOKIE ^ (uint64_t)getpid(),
					     .control_fd = -1,
					     .bpf_references_fd = -1 };

	strcpy(directory + sizeof(directory) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_session_open(path, NAME, segments, on_arrival, NULL, &session), 0);
	ck_assert_int_eq(pipe(wake), 0);
	n_arrived = answer = 0;
}

static void teardown(void)
{
	mt_session_close(session);
	mt_segments_close(segments);
	ck_assert_int_lt(access(path, F_OK), 0);
	ck_assert_int_eq(rmdir(directory), 0);
	close(wake[0]);
	close(wake[1]);
}

static int dial(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(name.sun_path, path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static struct mt_hello hello(void)
{
	return (struct mt_hello){ .magic = MT_HELLO_MAGIC,
				  .version = MT_WIRE_VERSION,
				  .what = MT_HELLO_START,
				  .cookie = segments->cookie,
				  .behind_wall_ns = mt_behind_wall_ns(mt_clock_read_ns),
				  .pid = (uint32_t)getpid(),
				  .exe = "/bin/x" };
}

static int serve_for(uint64_t timeout_ns)
{
	struct pollfd other = { .fd = wake[0], .events = POLLIN };

	mt_session_serve(session, timeout_ns, &other, 1);
	return other.revents != 0;
}

static int serve(void)
{
	return serve_for(1000000);
}

/* Nobody who gets a file can change its size under the collector, or keep others out. */
static void close_kept(int fd)
{
	ck_assert_int_lt(ftruncate(fd, 0), 0);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_lt(ftruncate(fd, 1LL << 40), 0);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	close(fd);
}

/* The welcome to a hello; false: hung up on.  The descriptors that came are closed. */
static bool ask(int fd, const void *bytes, size_t len, struct mt_welcome *ret, int *ret_fds)
{
	char control[256];
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	ssize_t n;

	ck_assert_int_eq(send(fd, bytes, len, 0), (ssize_t)len);
	ck_assert_int_eq(serve(), 0);
	n = recvmsg(fd, &msg, MSG_DONTWAIT);
	close(fd);
	*ret_fds = 0;
	if (n <= 0)
		return false;
	ck_assert_int_eq(n, sizeof(*ret));
	cmsg = CMSG_FIRSTHDR(&msg);
	for (size_t i = 0; cmsg && i < (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	     i++, ++*ret_fds)
		close_kept(((int *)CMSG_DATA(cmsg))[i]);
	return true;
}

START_TEST(let_in)
{
	struct mt_hello first = hello(), more = hello();
	struct mt_welcome welcome;
	int n;

	ck_assert(ask(dial(), &first, sizeof(first), &welcome, &n));
	ck_assert_int_eq(welcome.error, 0);
	ck_assert_int_eq(n, mt_welcome_fds(&welcome));
	ck_assert_uint_eq(welcome.process_id, 1);
	ck_assert_uint_eq(welcome.capture, MT_CAPTURE_INLINE);
	ck_assert_int_eq(n_arrived, 1);
	ck_assert_uint_eq(arrived.tgid, (uint32_t)getpid());
	ck_assert(!arrived.other_clock);
	ck_assert_int_eq(welcome.clock_offset_ns, 0);
	ck_assert_str_eq(arrived.exe, "/bin/x");

	more.what = MT_HELLO_CHUNK;
	more.process_id = 1;
	ck_assert(ask(dial(), &more, sizeof(more), &welcome, &n));
	ck_assert_uint_eq(welcome.process_id, 1);
	ck_assert_uint_eq(welcome.first_slot, MT_CHUNK_SLOTS);
	ck_assert_int_eq(n_arrived, 1);
}
END_TEST

/* Somebody sets the wall's clock between the hello and the welcome: ours is the same. */
START_TEST(set_clocks)
{
	static const int64_t steps[] = { 1000000000, -3000000000, 86400000000000 };
	struct mt_welcome welcome;
	int n;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct mt_hello before = hello();

		before.behind_wall_ns += (uint64_t)steps[i];
		ck_assert(ask(dial(), &before, sizeof(before), &welcome, &n));
		ck_assert_int_eq(welcome.clock_offset_ns, 0);
		ck_assert(!arrived.other_clock);
	}
}
END_TEST

START_TEST(not_let_in)
{
	struct mt_hello bad = hello();
	struct mt_welcome welcome;
	int n;

	bad.magic++;
	ck_assert(!ask(dial(), &bad, sizeof(bad), &welcome, &n));
	bad = hello();
	bad.cookie++;
	ck_assert(!ask(dial(), &bad, sizeof(bad), &welcome, &n));
	bad = hello();
	ck_assert(!ask(dial(), &bad, sizeof(bad) - 1, &welcome, &n));
	ck_assert(!ask(dial(), "x", 1, &welcome, &n));
	ck_assert_int_eq(n_arrived, 0);
	ck_assert_uint_eq(segments->chunks_used, 0);
}
END_TEST

START_TEST(errors)
{
	struct mt_hello odd = hello();
	struct mt_welcome welcome;
	int n;

	odd.version++;
	ck_assert(ask(dial(), &odd, sizeof(odd), &welcome, &n));
	ck_assert_int_eq(welcome.error, EPROTONOSUPPORT);
	ck_assert_int_eq(n, 0);
	odd = hello();
	odd.what = 99;
	ck_assert(ask(dial(), &odd, sizeof(odd), &welcome, &n));
	ck_assert_int_eq(welcome.error, EINVAL);
	/* A number that is taken: the counter is the targets' to write. */
	odd = hello();
	answer = -EBADMSG;
	ck_assert(ask(dial(), &odd, sizeof(odd), &welcome, &n));
	ck_assert_int_eq(welcome.error, EBADMSG);
	ck_assert_int_eq(n, 0);
	segments->control->enabled = 0;
	ck_assert(ask(dial(), &odd, sizeof(odd), &welcome, &n));
	ck_assert_int_eq(welcome.error, ESHUTDOWN);
}
END_TEST

/* What a process of the run writes into the page that all share locks nobody out, or in. */
START_TEST(own_cookie)
{
	struct mt_hello first = hello(), other = first;
	struct mt_welcome welcome;
	int n;

	segments->control->cookie = ++other.cookie;
	ck_assert(ask(dial(), &first, sizeof(first), &welcome, &n));
	ck_assert_int_eq(welcome.error, 0);
	ck_assert(!ask(dial(), &other, sizeof(other), &welcome, &n));
}
END_TEST

/* By the abstract name: an errno or 0, of connect(2) or bind(2). */
static int take_name(int fd, int (*take)(int fd, const struct sockaddr *name, socklen_t len))
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int len = sprintf(name.sun_path + 1, MT_ABSTRACT_PREFIX "%016" PRIx64, NAME);

	return take(fd, (struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0
		       ? errno
		       : 0;
}

/* From a process in another root. */
START_TEST(abstract_name)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), n;
	struct mt_hello first = hello();
	struct mt_welcome welcome;

	ck_assert_int_eq(take_name(fd, connect), 0);
	ck_assert(ask(fd, &first, sizeof(first), &welcome, &n));
	ck_assert_int_eq(welcome.error, 0);
}
END_TEST

/* A time-out has seconds, too. */
START_TEST(long_timeout)
{
	ck_assert_int_eq(write(wake[1], "x", 1), 1);
	ck_assert_int_eq(serve_for(3000000001ULL), 1);
}
END_TEST

/* Nobody answers in the place of a run that is over. */
START_TEST(ends)
{
	int early = socket(AF_UNIX, SOCK_SEQPACKET, 0), late = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char byte;
	int name;

	ck_assert_int_eq(take_name(early, connect), 0);
	name = mt_session_end(session);
	session = NULL;
	ck_assert_int_ge(name, 0);
	ck_assert_int_le(recv(early, &byte, 1, 0), 0);
	ck_assert_int_eq(take_name(late, connect), ECONNREFUSED);
	ck_assert_int_eq(take_name(late, bind), EADDRINUSE);
	close(name);
	ck_assert_int_eq(take_name(late, bind), 0);
	close(early);
	close(late);
}
END_TEST

/* Who has given up in the meantime is not a process. */
START_TEST(gone)
{
	struct mt_hello first = hello();
	int fd = dial();

	ck_assert_int_eq(send(fd, &first, sizeof(first), 0), sizeof(first));
	close(fd);
	ck_assert_int_eq(serve(), 0);
	ck_assert_int_eq(n_arrived, 0);
	ck_assert_uint_eq(segments->chunks_used, 0);
}
END_TEST

/* More than there is room for, none of which speaks; then one that does. */
START_TEST(silent_crowd)
{
	struct mt_hello first = hello();
	struct mt_welcome welcome;
	int fds[MT_SESSION_CLIENTS], n;
	uint64_t end_ns;

	for (int i = 0; i < MT_SESSION_CLIENTS; i++) {
		fds[i] = dial();
		if (i % 64 == 63)
			ck_assert_int_eq(serve(), 0);
	}
	end_ns = mt_clock_ns() + 1100 * 1000 * 1000ULL;
	while (mt_clock_ns() < end_ns)
		ck_assert_int_eq(serve_for(100000000), 0);
	ck_assert(ask(dial(), &first, sizeof(first), &welcome, &n));
	for (int i = 0; i < MT_SESSION_CLIENTS; i++) {
		ck_assert_int_eq(recv(fds[i], &n, sizeof(n), MSG_DONTWAIT), 0);
		close(fds[i]);
	}
}
END_TEST

START_TEST(woken)
{
	ck_assert_int_eq(write(wake[1], "x", 1), 1);
	ck_assert_int_eq(serve(), 1);
}
END_TEST

START_TEST(long_path)
{
	char name[200];
	struct mt_session *none;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_int_eq(mt_session_open(name, NAME, segments, on_arrival, NULL, &none),
			 -ENAMETOOLONG);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session");
	TCase *tcase = tcase_create("session");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, let_in);
	tcase_add_test(tcase, set_clocks);
	tcase_add_test(tcase, not_let_in);
	tcase_add_test(tcase, errors);
	tcase_add_test(tcase, own_cookie);
	tcase_add_test(tcase, abstract_name);
	tcase_add_test(tcase, long_timeout);
	tcase_add_test(tcase, ends);
	tcase_add_test(tcase, gone);
	tcase_add_test(tcase, silent_crowd);
	tcase_add_test(tcase, woken);
	tcase_add_test(tcase, long_path);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
