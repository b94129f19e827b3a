/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * channel.h - what memtrack-run and its collector tell each other
 *
 * A SOCK_SEQPACKET pair; each message is one struct mt_message, cut behind its text.  Its
 * end (the peer's death included) is a message too: the collector finishes, memtrack-run
 * goes on without tracking and says so.
 *
 *   to the collector
 *     PLACE     first: the run's directory has the shim
 *     TARGET    number: tgid of the command, which waits to be started
 *     END       number: its wait status
 *     ASK       for one PROGRESS; not again before that came
 *     ASLEEP    number: 1: memtrack-run is about to stop itself, as the command has; 0: it goes on.
 *               Who continues the command knows nothing of us: the collector continues
 *               memtrack-run, then.
 *   to memtrack-run, which prints text
 *     READY     number: MT_CAPTURE_*; text: the run's numbers, "COOKIE:NAME" (wire/session.h);
 *               with descriptors, collector/guard.h
 *     FAILED    could not start; text says why.  Nothing follows.
 *     GO        the command may start: it is known to the kernel part
 *     NOTE      to be printed always: something that is not in the artifact, and why
 *     SUMMARY   to be printed on request (-v)
 *     PROGRESS  number: 1 if threads had to wait; text: events, chains (collector/progress.h)
 *     STOPPED   the command was left stopped after a pause: it is not us who stopped it
 *     DONE      number: MT_DONE_* bits; text: bytes in the artifact.  Nothing follows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"

enum mt_message_kind {
	MT_MESSAGE_TARGET = 1,
	MT_MESSAGE_END,
	MT_MESSAGE_ASLEEP,
	MT_MESSAGE_READY,
	MT_MESSAGE_FAILED,
	MT_MESSAGE_GO,
	MT_MESSAGE_NOTE,
	MT_MESSAGE_SUMMARY,
	MT_MESSAGE_STOPPED,
	MT_MESSAGE_DONE,
	MT_MESSAGE_ASK,
	MT_MESSAGE_PROGRESS,
	MT_MESSAGE_PLACE,
};

#define MT_DONE_LOST 1	 /* events or stacks are missing */
#define MT_DONE_FAILED 2 /* the artifact is not complete */
#define MT_DONE_IN_USE 4 /* programs go on: the collector removes the run's directory later */

/* Descriptors that a message may bring along. */
#define MT_CHANNEL_FDS 2

struct mt_message {
	uint32_t kind;
	uint32_t number;
	char text[2040];
};

/* Sends copies of n descriptors with it, MT_CHANNEL_FDS at most. */
static inline int mt_channel_send_with(int fd, enum mt_message_kind kind, uint32_t number,
				       const char *text, const int *fds, size_t n, int flags)
{
	struct mt_message message = { .kind = kind, .number = number };
	size_t len = strlen(text);
	char control[CMSG_SPACE(MT_CHANNEL_FDS * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = &message };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *head;

	if (len >= sizeof(message.text))
		len = sizeof(message.text) - 1;
	iov.iov_len = offsetof(struct mt_message, text) + len + 1;
	memcpy(message.text, text, len);
	message.text[len] = '\0';
	if (n) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(head), fds, n * sizeof(int));
	}
	if (sendmsg(fd, &msg, MSG_NOSIGNAL | flags) < 0)
		return mt_neg_errno();
	return 0;
}

static inline int mt_channel_send(int fd, enum mt_message_kind kind, uint32_t number,
				  const char *text)
{
	return mt_channel_send_with(fd, kind, number, text, NULL, 0, 0);
}

/* Says something to memtrack-run; with that gone there is nobody to say it to. */
__attribute__((format(printf, 3, 4))) static inline void
mt_channel_tell(int fd, enum mt_message_kind kind, const char *format, ...)
{
	char text[sizeof(((struct mt_message *)0)->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)mt_channel_send(fd, kind, 0, text);
}

/* As mt_channel_send(), without waiting for room: -EAGAIN. */
static inline int mt_channel_offer(int fd, enum mt_message_kind kind, uint32_t number,
				   const char *text)
{
	return mt_channel_send_with(fd, kind, number, text, NULL, 0, MSG_DONTWAIT);
}

/* Returns 1, 0 at the end, -EAGAIN with flags MSG_DONTWAIT if there is none.  ret_fds, of
 * MT_CHANNEL_FDS, or NULL: the descriptors that came with it are the caller's; -1: no other. */
static inline int mt_channel_receive_with(int fd, int flags, struct mt_message *ret, int *ret_fds)
{
	char control[CMSG_SPACE(MT_CHANNEL_FDS * sizeof(int))];
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *head;
	ssize_t len;

	if (ret_fds) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		memset(ret_fds, -1, MT_CHANNEL_FDS * sizeof(int));
	}
	do /* That the peer has closed without reading all of ours is told before what it said. */
		len = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
	while (len < 0 && (errno == EINTR || errno == ECONNRESET));
	if (len < 0)
		return mt_neg_errno();
	if (len == 0)
		return 0;
	head = ret_fds ? CMSG_FIRSTHDR(&msg) : NULL;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	if ((size_t)len <= offsetof(struct mt_message, text))
		return -EBADMSG;
	((char *)ret)[len - 1] = '\0';
	return 1;
}

static inline int mt_channel_receive(int fd, int flags, struct mt_message *ret)
{
	return mt_channel_receive_with(fd, flags, ret, NULL);
}
