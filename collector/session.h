/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * session.h - the collector's end of the hand-shake, wire/session.h
 *
 * Contract
 *   Input:     what connects is not trusted: a hello of the wrong size, magic, version or
 *              cookie is answered with an error or not at all.
 *   Ownership: mt_session_open() gives an object for mt_session_close(), which takes NULL
 *              and removes the socket's name.  segments are borrowed.
 *   Errors:    negative errno of socket(2), bind(2), listen(2).
 *   Threads:   one.  Nothing blocks: a client that does not speak within a second is
 *              hung up on.
 *   Bounds:    MT_SESSION_CLIENTS connections at a time; more wait in the backlog.
 */
#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/segments.h"

#define MT_SESSION_CLIENTS 512
#define MT_SESSION_OTHERS 4

/* A process that shook hands to start: its number, and who it is. */
struct mt_arrival {
	uint64_t process_id;
	uint32_t tgid;	     /* in the collector's PID namespace */
	uint32_t inner_tgid; /* as it sees itself */
	bool other_clock;    /* it has a time namespace's, and was told what to add to it */
	uint64_t time_ns;
	char exe[464];
};

/* Returns 0, or a negative errno, which the process gets for an answer. */
typedef int (*mt_arrival_fn)(void *ctx, const struct mt_arrival *arrival);

struct mt_session;

/* path: of the socket to be made; name: the number in its abstract name, which must have nothing
 * to do with the cookie; on_arrival is called before the welcome is sent. */
int mt_session_open(const char *path, uint64_t name, struct mt_segments *segments,
		    mt_arrival_fn on_arrival, void *ctx, struct mt_session **ret);
void mt_session_close(struct mt_session *session);

/* The same, but for the abstract name: until the descriptor that is returned is closed, who
 * connects there is refused, and nobody else can have it, to answer programs of the run that go
 * on.  -1: there is none. */
int mt_session_end(struct mt_session *session);

/* Waits for up to timeout_ns for a client, or for what n_others want, MT_SESSION_OTHERS at
 * most, whose revents are set; and serves the clients that are there. */
void mt_session_serve(struct mt_session *session, uint64_t timeout_ns, struct pollfd *others,
		      uint32_t n_others);

static inline void mt_session_closep(struct mt_session **session)
{
	mt_session_close(*session);
}
