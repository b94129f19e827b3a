/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.c - see session.h for the contract
 *
 * Invariants
 *   - Two listeners, one service: the path is for everybody who sees the file system, the
 *     abstract name for a process that changed its root.
 *   - The clock of another time namespace is known by the wall's, which both are behind.  One
 *     whose namespace is not known is taken for ours unless it is off by more than can come
 *     between two looks; but one of ours never, whoever sets the wall's meanwhile.
 */
#include "collector/session.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/behind_wall.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "collector/clock.h"
#include "collector/proc_state.h"

#define CLIENT_PATIENCE_NS (1000 * 1000 * 1000ULL)
/* Before the rings have their turn again. */
#define ROUNDS_MAX 8
#define CLOCK_NAMESPACE_NS (100 * 1000 * 1000LL)

struct client {
	int fd;
	uint64_t since_ns;
};

struct mt_session {
	struct mt_segments *segments;
	mt_arrival_fn on_arrival;
	void *ctx;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int listeners[2];
	uint64_t time_namespace; /* ours; 0: not known */
	struct client clients[MT_SESSION_CLIENTS];
	uint32_t n_clients;
};

static int listen_at(const struct sockaddr_un *address, socklen_t len)
{
	mt_cleanup(mt_closep) int fd = -1;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return mt_neg_errno();
	if (bind(fd, (const struct sockaddr *)address, len) < 0 || listen(fd, SOMAXCONN) < 0)
		return mt_neg_errno();
	return mt_take_fd(&fd);
}

static int open_listeners(struct mt_session *s, uint64_t name)
{
	struct sockaddr_un named = { .sun_family = AF_UNIX }, abstract = { .sun_family = AF_UNIX };
	int len;

	memcpy(named.sun_path, s->path, sizeof(s->path));
	s->listeners[0] = listen_at(&named, sizeof(named));
	if (s->listeners[0] < 0)
		return s->listeners[0];
	/* The cookie admits, not the file's mode: the tree may change its user. */
	if (chmod(s->path, 0666) < 0)
		return mt_neg_errno();

	len = snprintf(abstract.sun_path + 1, sizeof(abstract.sun_path) - 1,
		       MT_ABSTRACT_PREFIX "%016" PRIx64, name);
	s->listeners[1] = listen_at(
		&abstract, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len));
	return s->listeners[1] < 0 ? s->listeners[1] : 0;
}

int mt_session_open(const char *path, uint64_t name, struct mt_segments *segments,
		    mt_arrival_fn on_arrival, void *ctx, struct mt_session **ret)
{
	mt_cleanup(mt_session_closep) struct mt_session *s = NULL;
	int r;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->listeners[0] = s->listeners[1] = -1;
	if (strlen(path) >= sizeof(s->path))
		return -ENAMETOOLONG;
	strcpy(s->path, path);
	s->segments = segments;
	s->time_namespace = mt_proc_namespace((uint32_t)getpid(), "time");
	s->on_arrival = on_arrival;
	s->ctx = ctx;
	r = open_listeners(s, name);
	if (r < 0)
		return r;
	*ret = mt_take_ptr(s);
	return 0;
}

int mt_session_end(struct mt_session *s)
{
	int name = s ? mt_take_fd(&s->listeners[1]) : -1, fd;

	mt_session_close(s);
	if (name < 0)
		return -1;
	(void)shutdown(name, SHUT_RDWR);
	/* Who got in before that would wait for an answer. */
	while ((fd = accept4(name, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
	return name;
}

void mt_session_close(struct mt_session *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_clients; i++)
		close(s->clients[i].fd);
	if (s->listeners[0] >= 0)
		unlink(s->path);
	mt_closep(&s->listeners[0]);
	mt_closep(&s->listeners[1]);
	free(s);
}

static void send_welcome(struct mt_session *s, int fd, const struct mt_welcome *welcome)
{
	char control[CMSG_SPACE(MT_FDS * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)welcome, .iov_len = sizeof(*welcome) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;
	size_t fds_bytes = (size_t)mt_welcome_fds(welcome) * sizeof(int);
	int fds[MT_FDS];

	if (!welcome->error) {
		fds[MT_FD_CONTROL] = s->segments->control_fd;
		fds[MT_FD_REFERENCES] = mt_segments_references_fd(s->segments, welcome->capture);
		fds[MT_FD_RINGS] = s->segments->rings_fd;
		fds[MT_FD_LEARNED] = s->segments->learned_fd;
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(fds_bytes);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fds_bytes);
		memcpy(CMSG_DATA(cmsg), fds, fds_bytes);
	}
	/* A client that is gone, or does not read, has nothing to be told. */
	(void)!sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* As we see it, if we do. */
static uint32_t tgid_of(int fd, const struct mt_hello *hello)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid > 0
		       ? (uint32_t)peer.pid
		       : hello->pid;
}

static int announce(struct mt_session *s, uint32_t tgid, const struct mt_hello *hello,
		    const struct mt_welcome *welcome, uint64_t now_ns)
{
	struct mt_arrival arrival = {
		.process_id = welcome->process_id,
		.tgid = tgid,
		.inner_tgid = hello->pid,
		.time_ns = now_ns,
		.other_clock = welcome->clock_offset_ns != 0,
	};

	memcpy(arrival.exe, hello->exe, sizeof(arrival.exe));
	arrival.exe[sizeof(arrival.exe) - 1] = '\0';
	return s->on_arrival(s->ctx, &arrival);
}

/* What turns its clock into ours, however long the message took. */
static int64_t clock_offset_ns(const struct mt_session *s, uint32_t tgid,
			       const struct mt_hello *hello)
{
	uint64_t theirs = mt_proc_namespace(tgid, "time");
	int64_t offset_ns;

	if (!hello->behind_wall_ns || (theirs && theirs == s->time_namespace))
		return 0;
	offset_ns = (int64_t)(hello->behind_wall_ns - mt_behind_wall_ns(mt_clock_read_ns));
	return !theirs && offset_ns > -CLOCK_NAMESPACE_NS && offset_ns < CLOCK_NAMESPACE_NS
		       ? 0
		       : offset_ns;
}

static int make_welcome(struct mt_session *s, int fd, const struct mt_hello *hello,
			struct mt_welcome *ret)
{
	uint64_t now_ns = mt_clock_ns();
	uint32_t tgid;
	int r;

	if (hello->version != MT_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (hello->what < MT_HELLO_START || hello->what > MT_HELLO_INLINE)
		return -EINVAL;
	if (!s->segments->control->enabled)
		return -ESHUTDOWN;
	r = mt_segments_give_chunk(s->segments, hello->what == MT_HELLO_INLINE, now_ns, ret);
	if (r < 0 || hello->what != MT_HELLO_START) {
		ret->process_id = hello->process_id;
		return r;
	}
	ret->process_id = __atomic_fetch_add(&s->segments->control->next_process, 1,
					     __ATOMIC_RELAXED);
	tgid = tgid_of(fd, hello);
	ret->clock_offset_ns = clock_offset_ns(s, tgid, hello);
	return announce(s, tgid, hello, ret, now_ns);
}

static void answer(struct mt_session *s, int fd, const struct mt_hello *hello)
{
	struct mt_welcome welcome = { .magic = MT_HELLO_MAGIC, .version = MT_WIRE_VERSION };

	if (hello->magic != MT_HELLO_MAGIC || hello->cookie != s->segments->cookie)
		return;
	welcome.error = -make_welcome(s, fd, hello, &welcome);
	send_welcome(s, fd, &welcome);
}

static void accept_clients(struct mt_session *s, int listener)
{
	while (s->n_clients < MT_SESSION_CLIENTS) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return; /* none left; or out of descriptors, and it stays in the backlog */
		s->clients[s->n_clients++] = (struct client){ fd, mt_clock_ns() };
	}
}

/* Whether the client has given up; it may be here again, with another connection. */
static bool is_gone(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Returns whether the client is done with. */
static bool serve_client(struct mt_session *s, const struct client *client)
{
	struct mt_hello hello;
	ssize_t len = recv(client->fd, &hello, sizeof(hello), MSG_DONTWAIT);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return mt_clock_ns() - client->since_ns > CLIENT_PATIENCE_NS;
	if (len == sizeof(hello) && !is_gone(client->fd))
		answer(s, client->fd, &hello);
	return true;
}

/* Takes who waits and serves who has spoken; returns whether somebody was taken. */
static bool serve_round(struct mt_session *s)
{
	uint32_t before = s->n_clients;
	bool taken;

	accept_clients(s, s->listeners[0]);
	accept_clients(s, s->listeners[1]);
	taken = s->n_clients > before;
	for (uint32_t i = 0; i < s->n_clients;) {
		if (!serve_client(s, &s->clients[i])) {
			i++;
			continue;
		}
		close(s->clients[i].fd);
		s->clients[i] = s->clients[--s->n_clients];
	}
	return taken;
}

void mt_session_serve(struct mt_session *s, uint64_t timeout_ns, struct pollfd *others,
		      uint32_t n_others)
{
	const struct timespec timeout = mt_clock_timespec(timeout_ns);
	struct pollfd fds[MT_SESSION_OTHERS + 2 + MT_SESSION_CLIENTS];
	bool full = s->n_clients == MT_SESSION_CLIENTS;
	nfds_t n = n_others;
	int ready;

	memcpy(fds, others, n_others * sizeof(*others));
	for (int i = 0; i < 2; i++)
		fds[n++] = (struct pollfd){ .fd = full ? -1 : s->listeners[i], .events = POLLIN };
	for (uint32_t i = 0; i < s->n_clients; i++)
		fds[n++] = (struct pollfd){ .fd = s->clients[i].fd, .events = POLLIN };

	ready = ppoll(fds, n, &timeout, NULL);
	for (uint32_t i = 0; i < n_others; i++)
		others[i].revents = ready > 0 ? fds[i].revents : 0;
	/* As nearly always.  To ask the listeners is dear: that makes a socket for nobody. */
	if (ready == 0 && !s->n_clients)
		return;
	/* A tree that forks a thousand children waits here all at once, a second each. */
	for (int round = 0; round < ROUNDS_MAX && serve_round(s); round++)
		;
}
