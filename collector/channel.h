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
 *     TARGET    number: tgid of the command, which waits to be started
 *     END       number: its wait status
 *     ASK       for one PROGRESS; not again before that came
 *   to memtrack-run, which prints text
 *     READY     number: MT_CAPTURE_*; text: the run's cookie, 16 hex digits
 *     FAILED    could not start; text says why.  Nothing follows.
 *     GO        the command may start: it is known to the kernel part
 *     NOTE      to be printed always: something that is not in the artifact, and why
 *     SUMMARY   to be printed on request (-v)
 *     PROGRESS  number: 1 if threads had to wait; text: events, chains (collector/progress.h)
 *     DONE      number: MT_DONE_* bits; text: bytes in the artifact.  Nothing follows.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"

enum mt_message_kind {
	MT_MESSAGE_TARGET = 1,
	MT_MESSAGE_END,
	MT_MESSAGE_READY,
	MT_MESSAGE_FAILED,
	MT_MESSAGE_GO,
	MT_MESSAGE_NOTE,
	MT_MESSAGE_SUMMARY,
	MT_MESSAGE_DONE,
	MT_MESSAGE_ASK,
	MT_MESSAGE_PROGRESS,
};

#define MT_DONE_LOST 1	 /* events or stacks are missing */
#define MT_DONE_FAILED 2 /* the artifact is not complete */
#define MT_DONE_IN_USE 4 /* programs go on: the collector removes the run's directory later */

struct mt_message {
	uint32_t kind;
	uint32_t number;
	char text[2040];
};

static inline int mt_channel_put(int fd, int flags, enum mt_message_kind kind, uint32_t number,
				 const char *text)
{
	struct mt_message message = { .kind = kind, .number = number };
	size_t len = strnlen(text, sizeof(message.text) - 1);

	memcpy(message.text, text, len);
	message.text[len] = '\0';
	if (send(fd, &message, offsetof(struct mt_message, text) + len + 1, flags | MSG_NOSIGNAL) <
	    0)
		return mt_neg_errno();
	return 0;
}

static inline int mt_channel_send(int fd, enum mt_message_kind kind, uint32_t number,
				  const char *text)
{
	return mt_channel_put(fd, 0, kind, number, text);
}

/* The same without waiting for room: -EAGAIN. */
static inline int mt_channel_offer(int fd, enum mt_message_kind kind, uint32_t number,
				   const char *text)
{
	return mt_channel_put(fd, MSG_DONTWAIT, kind, number, text);
}

/* Returns 1, 0 at the end, -EAGAIN with flags MSG_DONTWAIT if there is none. */
static inline int mt_channel_receive(int fd, int flags, struct mt_message *ret)
{
	ssize_t len;

	do
		len = recv(fd, ret, sizeof(*ret), flags);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return mt_neg_errno();
	if (len == 0)
		return 0;
	if ((size_t)len <= offsetof(struct mt_message, text))
		return -EBADMSG;
	((char *)ret)[len - 1] = '\0';
	return 1;
}
