/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stats.c - see stats.h for the contract
 *
 * Invariants
 *   - A row is put into the buffer whole, and buffers are written whole and in order: a file
 *     that ends too early has one line that is cut, its last.
 *   - lock is never held while something is written: a slow file delays nobody but who finds
 *     both buffers full.
 *   - After an error used is 0, and nothing is put or written any more.
 */
#include "collector/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/clock.h"

/* The longest row but for that of an episode of pressure. */
#define ROW_BYTES 512
#define RING_NAME_BYTES 24
/* Of an episode: what it has anyway, and what each process adds at most. */
#define EPISODE_BYTES 256
#define PAUSE_BYTES 64

struct mt_stats {
	int fd;
	int statm; /* -1: there is no /proc */
	long page_bytes;
	pthread_t thread;
	uint64_t drained, encoded; /* atomic */
	char *writing;		   /* the thread's own */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* All below: under lock. */
	char *filling;
	size_t used; /* bytes of it */
	bool wanted; /* somebody waits for room */
	bool stopping;
	int error;
};

/* lock is held. */
static void keep_error(struct mt_stats *s, int r)
{
	if (!s->error)
		s->error = r;
	s->used = 0;
	pthread_cond_broadcast(&s->changed);
}

static void fail(struct mt_stats *s, int r)
{
	pthread_mutex_lock(&s->lock);
	keep_error(s, r);
	pthread_mutex_unlock(&s->lock);
}

/* Until there is room for len bytes; lock is held. */
static void wait_for_room(struct mt_stats *s, size_t len)
{
	struct timespec until = mt_clock_timespec(mt_clock_ns() +
						  MT_STATS_PATIENCE_MS * 1000000ULL);

	while (!s->error && len > MT_STATS_BUFFER_BYTES - s->used) {
		s->wanted = true;
		pthread_cond_broadcast(&s->changed);
		if (pthread_cond_timedwait(&s->changed, &s->lock, &until) == ETIMEDOUT &&
		    len > MT_STATS_BUFFER_BYTES - s->used)
			keep_error(s, -ETIMEDOUT);
	}
}

/* Puts a row, if there is room; lock is held. */
static bool try_put(struct mt_stats *s, const char *row, size_t len)
{
	if (s->error)
		return true;
	if (len > MT_STATS_BUFFER_BYTES - s->used)
		return false;
	memcpy(s->filling + s->used, row, len);
	s->used += len;
	return true;
}

static void put(struct mt_stats *s, const char *row, size_t len)
{
	pthread_mutex_lock(&s->lock);
	if (len > MT_STATS_BUFFER_BYTES)
		keep_error(s, -EMSGSIZE);
	while (!try_put(s, row, len))
		wait_for_room(s, len);
	pthread_mutex_unlock(&s->lock);
}

__attribute__((format(printf, 2, 3))) static void put_row(struct mt_stats *s, const char *format,
							  ...)
{
	char row[ROW_BYTES];
	va_list args;
	int len;

	if (!s)
		return;
	va_start(args, format);
	len = vsnprintf(row, sizeof(row), format, args);
	va_end(args);
	if (len > 0 && (size_t)len < sizeof(row))
		put(s, row, (size_t)len);
}

static const char *name_ring(uint32_t ring, char *room)
{
	if (ring == MT_STATS_STACKS)
		return "stacks";
	if (ring == MT_STATS_LIFE)
		return "life";
	snprintf(room, RING_NAME_BYTES, "events:%" PRIu32, ring);
	return room;
}

void mt_stats_ring_open(struct mt_stats *s, const struct mt_stats_ring_open *row)
{
	char name[RING_NAME_BYTES];

	put_row(s,
		"{\"type\":\"ring_open\",\"time_ns\":%" PRIu64 ",\"ring\":\"%s\",\"bytes\":%" PRIu64
		",\"watermark_bytes\":%" PRIu64 "}\n",
		mt_clock_ns(), name_ring(row->ring, name), row->bytes, row->watermark_bytes);
}

void mt_stats_ring(struct mt_stats *s, const struct mt_stats_ring *row)
{
	char name[RING_NAME_BYTES];

	put_row(s,
		"{\"type\":\"ring\",\"time_ns\":%" PRIu64 ",\"ring\":\"%s\",\"start_ns\":%" PRIu64
		",\"producer_before\":%" PRIu64 ",\"producer_after\":%" PRIu64
		",\"consumer_before\":%" PRIu64 ",\"consumer_after\":%" PRIu64
		",\"peak_bytes\":%" PRIu64 "}\n",
		row->end_ns, name_ring(row->ring, name), row->start_ns, row->producer_before,
		row->producer_after, row->consumer_before, row->consumer_after, row->peak_bytes);
}

void mt_stats_pressure(struct mt_stats *s, const struct mt_stats_pressure *row)
{
	size_t room = EPISODE_BYTES + row->n_processes * PAUSE_BYTES, len;
	char name[RING_NAME_BYTES];

	if (!s)
		return;
	mt_cleanup(mt_freep) char *text = malloc(room);
	if (!text) {
		fail(s, -ENOMEM);
		return;
	}
	len = (size_t)snprintf(text, room,
			       "{\"type\":\"pressure\",\"time_ns\":%" PRIu64
			       ",\"ring\":\"%s\",\"slot\":%" PRIu32
			       ",\"pause\":\"%s\",\"latch_ns\":%" PRIu64 ",\"release_ns\":%" PRIu64
			       ",\"processes\":[",
			       mt_clock_ns(), name_ring(row->ring, name), row->slot,
			       row->by_signal ? "signal" : "futex", row->latch_ns, row->release_ns);
	for (size_t i = 0; i < row->n_processes; i++)
		len += (size_t)snprintf(
			text + len, room - len, "%s{\"pid\":%" PRIu32 ",\"paused_ns\":%" PRIu64 "}",
			i ? "," : "", row->processes[i].tgid, row->processes[i].paused_ns);
	len += (size_t)snprintf(text + len, room - len, "]}\n");
	put(s, text, len);
}

void mt_stats_resolve(struct mt_stats *s, const struct mt_stats_resolve *row)
{
	put_row(s,
		"{\"type\":\"resolve\",\"time_ns\":%" PRIu64 ",\"start_ns\":%" PRIu64
		",\"wait_ns\":%" PRIu64 ",\"events\":%" PRIu64 ",\"records\":%" PRIu64
		",\"chains\":%" PRIu64 "}\n",
		mt_clock_ns(), row->start_ns, row->wait_ns, row->events, row->records, row->chains);
}

void mt_stats_encode(struct mt_stats *s, const struct mt_stats_encode *row)
{
	put_row(s,
		"{\"type\":\"encode\",\"time_ns\":%" PRIu64 ",\"wait_ns\":%" PRIu64
		",\"encode_ns\":%" PRIu64 ",\"write_ns\":%" PRIu64 ",\"events\":%" PRIu64
		",\"msgpack_bytes\":%" PRIu64 ",\"zstd_bytes\":%" PRIu64 "}\n",
		mt_clock_ns(), row->wait_ns, row->encode_ns, row->write_ns, row->events,
		row->msgpack_bytes, row->zstd_bytes);
	if (s)
		__atomic_fetch_add(&s->encoded, row->events, __ATOMIC_RELEASE);
}

void mt_stats_drained(struct mt_stats *s, uint64_t events)
{
	if (s)
		__atomic_store_n(&s->drained, events, __ATOMIC_RELAXED);
}

static uint64_t resident_bytes(const struct mt_stats *s)
{
	char text[128];
	ssize_t len = s->statm < 0 ? -1 : pread(s->statm, text, sizeof(text) - 1, 0);
	uint64_t pages;

	if (len <= 0)
		return 0;
	text[len] = '\0';
	return sscanf(text, "%*u %" SCNu64, &pages) == 1 ? pages * (uint64_t)s->page_bytes : 0;
}

static size_t make_backlog(const struct mt_stats *s, char *ret)
{
	/* In this order: what is encoded was drained. */
	uint64_t encoded = __atomic_load_n(&s->encoded, __ATOMIC_ACQUIRE);
	uint64_t drained = __atomic_load_n(&s->drained, __ATOMIC_RELAXED);

	return (size_t)snprintf(ret, ROW_BYTES,
				"{\"type\":\"backlog\",\"time_ns\":%" PRIu64 ",\"drained\":%" PRIu64
				",\"encoded\":%" PRIu64 ",\"rss_bytes\":%" PRIu64 "}\n",
				mt_clock_ns(), drained, encoded, resident_bytes(s));
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);
		struct pollfd pollfd = { .fd = fd, .events = POLLOUT };

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			if (poll(&pollfd, 1, MT_STATS_PATIENCE_MS) == 0)
				return -ETIMEDOUT;
		} else if (n == 0 || errno != EINTR) {
			return n ? mt_neg_errno() : -EIO;
		}
	}
	return 0;
}

/* Waits for a tick of the backlog, or for somebody who needs room. */
static void wait_for_tick(struct mt_stats *s, uint64_t tick_ns)
{
	struct timespec until = mt_clock_timespec(tick_ns);
	int r = 0;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping && !s->wanted && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&s->changed, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
}

/* Writes the buffer that was filled; returns whether more may come. */
static bool write_buffer(struct mt_stats *s)
{
	size_t len;
	char *full;
	bool last;
	int r;

	pthread_mutex_lock(&s->lock);
	last = s->stopping;
	full = s->filling;
	len = s->used;
	s->filling = s->writing;
	s->writing = full;
	s->used = 0;
	s->wanted = false;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	r = write_all(s->fd, full, len);
	if (r < 0)
		fail(s, r);
	return !last;
}

/* The thread's own: nobody else would make room for it. */
static bool try_put_backlog(struct mt_stats *s)
{
	char row[ROW_BYTES];
	size_t len = make_backlog(s, row);
	bool done;

	pthread_mutex_lock(&s->lock);
	done = try_put(s, row, len);
	pthread_mutex_unlock(&s->lock);
	return done;
}

static void *writer(void *arg)
{
	struct mt_stats *s = arg;
	uint64_t tick_ns = mt_clock_ns(), now_ns;

	do {
		wait_for_tick(s, tick_ns);
		now_ns = mt_clock_ns();
		if (now_ns >= tick_ns && try_put_backlog(s))
			tick_ns += (now_ns - tick_ns) / MT_STATS_BACKLOG_NS * MT_STATS_BACKLOG_NS +
				   MT_STATS_BACKLOG_NS;
	} while (write_buffer(s));
	return NULL;
}

static void free_all(struct mt_stats *s)
{
	mt_closep(&s->fd);
	mt_closep(&s->statm);
	free(s->filling);
	free(s->writing);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int mt_stats_open(int fd, struct mt_stats **ret)
{
	struct mt_stats *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r = -ENOMEM;

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->fd = fd;
	s->page_bytes = sysconf(_SC_PAGESIZE);
	s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	s->filling = malloc(MT_STATS_BUFFER_BYTES);
	s->writing = malloc(MT_STATS_BUFFER_BYTES);
	if (s->filling && s->writing) {
		/* Touched now: what is measured does not grow by being measured. */
		memset(s->filling, 0, MT_STATS_BUFFER_BYTES);
		memset(s->writing, 0, MT_STATS_BUFFER_BYTES);
		r = -pthread_create(&s->thread, NULL, writer, s);
	}
	if (r < 0) {
		free_all(s);
		return r;
	}
	*ret = s;
	return 0;
}

int mt_stats_close(struct mt_stats *s)
{
	char row[ROW_BYTES];
	int error;

	if (!s)
		return 0;
	put(s, row, make_backlog(s, row));
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	error = s->error;
	if (close(mt_take_fd(&s->fd)) < 0 && !error)
		error = mt_neg_errno();
	free_all(s);
	return error;
}
