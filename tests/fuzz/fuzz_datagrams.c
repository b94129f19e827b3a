/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_datagrams.c - whoever connects gets an answer that is right, or none
 *
 * An input is a list of hellos, each a byte of HOW and what the hello is made of; and, as a
 * whole, a message from the collector to memtrack-run.
 */
#include "collector/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/channel.h"
#include "tests/fuzz/fuzz.h"

#define COOKIE 0x0123456789abcdefULL
#define HELLOS_MAX 32

/* What is made right, whatever the input says. */
#define RIGHT_HEAD 1
#define RIGHT_COOKIE 2
#define RIGHT_WHAT 4
/* And what happens to the datagram. */
#define CUT 8
#define TWICE 16
#define HANG_UP 32
#define REFUSED 64 /* by whoever hears of the arrival */

struct input {
	const uint8_t *bytes;
	size_t len;
};

static int how;

static int on_arrival(void *ctx, const struct mt_arrival *arrival)
{
	int *arrivals = ctx;

	fuzz_must(arrival->process_id && arrival->tgid == (uint32_t)getpid());
	fuzz_must(memchr(arrival->exe, 0, sizeof(arrival->exe)) != NULL);
	fuzz_must(how & RIGHT_COOKIE);
	++*arrivals;
	return how & REFUSED ? -EBADMSG : 0;
}

static void take(struct input *in, void *to, size_t len)
{
	size_t n = len < in->len ? len : in->len;

	memset(to, 0, len);
	if (n)
		memcpy(to, in->bytes, n);
	in->bytes += n;
	in->len -= n;
}

static int dial(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	fuzz_must(fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0);
	return fd;
}

/* Returns how many descriptors came with it, which are closed; -1: no answer. */
static int receive(int fd, struct mt_welcome *ret)
{
	char control[256];
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	struct cmsghdr *cmsg;
	int fds[8];
	size_t len;

	if (n <= 0)
		return -1;
	fuzz_must(n == sizeof(*ret) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)));
	cmsg = CMSG_FIRSTHDR(&msg);
	len = cmsg ? cmsg->cmsg_len - CMSG_LEN(0) : 0;
	fuzz_must(len <= sizeof(fds));
	memcpy(fds, cmsg ? CMSG_DATA(cmsg) : (unsigned char *)"", len);
	for (size_t i = 0; i < len / sizeof(int); i++)
		close(fds[i]);
	return (int)(len / sizeof(int));
}

static void check(const struct mt_welcome *welcome, int n_fds)
{
	fuzz_must(welcome->magic == MT_HELLO_MAGIC && welcome->version == MT_WIRE_VERSION);
	fuzz_must(welcome->error >= 0 && how & RIGHT_COOKIE);
	if (welcome->error) {
		fuzz_must(n_fds == 0);
		return;
	}
	fuzz_must(n_fds == mt_welcome_fds(welcome));
	fuzz_must(welcome->first_slot % MT_CHUNK_SLOTS == 0 && welcome->first_slot < MT_SLOTS);
	fuzz_must(welcome->capture == MT_CAPTURE_INLINE);
}

static void say_hello(struct mt_session *session, const char *path, int wake, struct input *in)
{
	struct pollfd other = { .fd = wake, .events = POLLIN };
	struct mt_welcome welcome;
	struct mt_hello hello;
	uint8_t head[2];
	size_t len;
	int fd, n_fds;

	take(in, head, sizeof(head));
	how = head[0];
	len = how & CUT ? 2 * (size_t)head[1] : sizeof(hello);
	take(in, &hello, len < 64 ? len : 64 + (size_t)head[1] % 16);
	if (how & RIGHT_HEAD) {
		hello.magic = MT_HELLO_MAGIC;
		hello.version = MT_WIRE_VERSION;
	}
	/* One that is not given is not guessed. */
	hello.cookie = how & RIGHT_COOKIE ? COOKIE ^ (uint64_t)getpid() : head[1];
	if (how & RIGHT_WHAT)
		hello.what = MT_HELLO_START + head[1] % 3;

	fd = dial(path);
	for (int i = 0; i < (how & TWICE ? 2 : 1); i++)
		fuzz_must(send(fd, &hello, len, MSG_NOSIGNAL) == (ssize_t)len);
	if (how & HANG_UP)
		shutdown(fd, SHUT_WR);
	mt_session_serve(session, 1000, &other, 1);
	fuzz_must(other.revents == 0);
	n_fds = receive(fd, &welcome);
	if (n_fds >= 0)
		check(&welcome, n_fds);
	fuzz_must(n_fds < 0 || (len == sizeof(hello) && how & RIGHT_HEAD) ||
		  hello.magic == MT_HELLO_MAGIC);
	close(fd);
}

static void shake_hands(const char *path, struct input *in)
{
	struct mt_segments_config config = { .budget_bytes = 4096,
					     .ring_bytes = 4096,
					     .cookie = COOKIE ^ (uint64_t)getpid(),
					     .control_fd = -1,
					     .bpf_references_fd = -1 };
	struct mt_segments *segments = NULL;
	struct mt_session *session;
	int arrivals = 0, wake[2];

	fuzz_must(pipe(wake) == 0 && mt_segments_open(&config, &segments) == 0);
	fuzz_must(mt_session_open(path, (uint64_t)getpid(), segments, on_arrival, &arrivals,
				  &session) == 0);
	for (int i = 0; in->len && i < HELLOS_MAX; i++)
		say_hello(session, path, wake[0], in);
	fuzz_must(segments->control->next_process == 1 + (uint64_t)arrivals);
	mt_session_close(session);
	mt_segments_close(segments);
	close(wake[0]);
	close(wake[1]);
}

static void receive_message(const uint8_t *bytes, size_t len)
{
	struct mt_message message;
	int pair[2], r;

	fuzz_must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	if (len <= 2 * sizeof(message)) {
		fuzz_must(send(pair[0], bytes, len, 0) == (ssize_t)len);
		r = mt_channel_receive(pair[1], MSG_DONTWAIT, &message);
		fuzz_must(r == (len <= offsetof(struct mt_message, text) ? len ? -EBADMSG : 0 : 1));
		fuzz_must(r != 1 || memchr(message.text, 0, sizeof(message.text)) != NULL);
	}
	close(pair[0]);
	close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct input in = { bytes, len };
	const char *temporary = getenv("TMPDIR");
	char folder[64], path[80];

	receive_message(bytes, len);
	snprintf(folder, sizeof(folder), "%.40s/fuzz-XXXXXX", temporary ? temporary : "/tmp");
	fuzz_must(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/socket", folder);
	shake_hands(path, &in);
	fuzz_must(rmdir(folder) == 0);
	return 0;
}

void fuzz_corpus(void)
{
	static uint8_t bytes[2 * 256 * 80];
	const int right = RIGHT_HEAD | RIGHT_COOKIE | RIGHT_WHAT;
	size_t len = 0;

	for (int i = 0; i < 128; i++) {
		bytes[0] = (uint8_t)i;
		bytes[1] = (uint8_t)(i * 37);
		memset(bytes + 2, 'x', 78);
		fuzz_try(bytes, 80);
	}
	/* As many as there are chunks, and one after the other what may go wrong. */
	for (int i = 0; i < HELLOS_MAX; i++) {
		bytes[len++] = (uint8_t)(i % 5 ? right : right ^ 1 << i / 5);
		bytes[len++] = (uint8_t)i;
		len += 64 + (size_t)i % 16;
	}
	fuzz_try_around(bytes, len, 16);
	fuzz_try_mixed(bytes, len, 200);
}
