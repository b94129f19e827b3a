/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * encode.c - see encode.h for the contract
 *
 * Invariants
 *   - A batch is in exactly one of: the free stack, the submitter's hand, the queue, the
 *     encoder's hand.
 *   - Batches are made by the submitter, one when none is free: a short run, and one whose
 *     encoder keeps up, have few.  The first is made at the start, so that there is one to wait
 *     for.
 */
#include "collector/encode.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "collector/clock.h"

struct mt_encode {
	struct mt_writer *writer;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mt_batch *filling; /* the submitter's; NULL: none taken */
	uint32_t n_made;
	uint64_t events;
	uint64_t waited_ns; /* the submitter, for a free batch */
	/* The encoder's: since the last frame. */
	struct mt_stats *stats; /* NULL: nobody wants to know */
	uint64_t frame_ns;	/* when that was written */
	uint64_t idle_ns;	/* without a batch */
	uint64_t encoded_ns;	/* when the frame at hand was ready to be written */
	/* All below: under lock. */
	struct mt_batch *free[MT_ENCODE_BATCHES];
	uint32_t n_free;
	struct mt_batch *queue[MT_ENCODE_BATCHES];
	uint32_t first, n_queued;
	int error;
	int stopping;
};

static void keep_error(struct mt_encode *e, int r)
{
	if (r >= 0)
		return;
	pthread_mutex_lock(&e->lock);
	if (!e->error)
		e->error = r;
	pthread_mutex_unlock(&e->lock);
}

/* The next batch; NULL when it is time to flush, or to end. */
static struct mt_batch *next(struct mt_encode *e, uint64_t flush_ns, int *ret_end)
{
	struct timespec until = mt_clock_timespec(flush_ns);
	struct mt_batch *batch = NULL;
	uint64_t begin_ns = mt_clock_ns();
	int timed_out = 0;

	pthread_mutex_lock(&e->lock);
	while (!e->n_queued && !e->stopping && !timed_out)
		timed_out = pthread_cond_timedwait(&e->changed, &e->lock, &until) == ETIMEDOUT;
	if (e->n_queued) {
		batch = e->queue[e->first];
		e->first = (e->first + 1) % MT_ENCODE_BATCHES;
		e->n_queued--;
	}
	*ret_end = !batch && e->stopping;
	pthread_mutex_unlock(&e->lock);
	e->idle_ns += mt_clock_ns() - begin_ns;
	return batch;
}

static void give_back(struct mt_encode *e, struct mt_batch *batch)
{
	mt_batch_clear(batch);
	pthread_mutex_lock(&e->lock);
	e->free[e->n_free++] = batch;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

/* The writer's observer. */
static void on_frame(void *ctx, const struct mt_writer_frame *frame)
{
	struct mt_encode *e = ctx;
	uint64_t now_ns = mt_clock_ns();
	struct mt_stats_encode row = {
		.wait_ns = e->idle_ns,
		.encode_ns = e->encoded_ns - e->frame_ns - e->idle_ns,
		.write_ns = now_ns - e->encoded_ns,
		.events = frame->events,
		.msgpack_bytes = frame->packed_bytes,
		.zstd_bytes = frame->frame_bytes,
	};

	if (!frame->written) {
		e->encoded_ns = now_ns;
		return;
	}
	mt_stats_encode(e->stats, &row);
	e->frame_ns = now_ns;
	e->idle_ns = 0;
}

static void *encoder(void *arg)
{
	struct mt_encode *e = arg;
	uint64_t flush_ns = mt_clock_ns() + MT_ENCODE_FLUSH_NS;
	int end = 0;

	while (!end) {
		struct mt_batch *batch = next(e, flush_ns, &end);

		if (batch) {
			if (!mt_encode_error(e))
				keep_error(e, mt_batch_write(batch, e->writer));
			give_back(e, batch);
		}
		if (end || mt_clock_ns() >= flush_ns) {
			if (!mt_encode_error(e))
				keep_error(e, mt_writer_flush(e->writer));
			flush_ns = mt_clock_ns() + MT_ENCODE_FLUSH_NS;
		}
	}
	return NULL;
}

static void free_all(struct mt_encode *e)
{
	mt_batch_free(e->filling);
	for (uint32_t i = 0; i < e->n_free; i++)
		mt_batch_free(e->free[i]);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

int mt_encode_start(struct mt_writer *writer, struct mt_stats *stats, struct mt_encode **ret)
{
	struct mt_encode *e = calloc(1, sizeof(*e));
	pthread_condattr_t attr;
	int r;

	if (!e)
		return -ENOMEM;
	e->writer = writer;
	e->stats = stats;
	e->frame_ns = mt_clock_ns();
	if (stats)
		mt_writer_observe(writer, on_frame, e);
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->changed, &attr);
	pthread_condattr_destroy(&attr);

	r = mt_batch_new(&e->filling);
	if (r == 0) {
		e->n_made = 1;
		r = -pthread_create(&e->thread, NULL, encoder, e);
	}
	if (r < 0) {
		mt_writer_observe(writer, NULL, NULL);
		free_all(e);
		return r;
	}
	*ret = e;
	return 0;
}

/* A free batch; NULL: there is none, and wait is false. */
static struct mt_batch *take_free(struct mt_encode *e, bool wait)
{
	struct mt_batch *batch = NULL;

	pthread_mutex_lock(&e->lock);
	while (wait && !e->n_free)
		pthread_cond_wait(&e->changed, &e->lock);
	if (e->n_free)
		batch = e->free[--e->n_free];
	pthread_mutex_unlock(&e->lock);
	return batch;
}

static struct mt_batch *take(struct mt_encode *e)
{
	struct mt_batch *batch = take_free(e, false);
	uint64_t begin_ns;

	if (batch)
		return batch;
	/* Without memory for more, those that there are will have to do. */
	if (e->n_made < MT_ENCODE_BATCHES && mt_batch_new(&batch) == 0) {
		e->n_made++;
		return batch;
	}
	begin_ns = mt_clock_ns();
	batch = take_free(e, true);
	e->waited_ns += mt_clock_ns() - begin_ns;
	return batch;
}

void mt_encode_push(struct mt_encode *e)
{
	if (!e->filling || mt_batch_empty(e->filling))
		return;
	mt_stats_drained(e->stats, e->events); /* before it is encoded */
	pthread_mutex_lock(&e->lock);
	e->queue[(e->first + e->n_queued++) % MT_ENCODE_BATCHES] = e->filling;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	e->filling = NULL;
}

/* Another batch in the place of one that has no room. */
static struct mt_batch *next_batch(struct mt_encode *e)
{
	mt_encode_push(e);
	e->filling = take(e);
	return e->filling;
}

int mt_encode_put(struct mt_encode *e, enum mt_batch_kind kind, const void *record)
{
	int r;

	if (!e->filling)
		e->filling = take(e);
	r = mt_batch_add(e->filling, kind, record);
	if (r == -ENOSPC)
		r = mt_batch_add(next_batch(e), kind, record);
	if (r == 0 && kind == MT_BATCH_EVENT)
		e->events++;
	return r;
}

struct mt_batch_event *mt_encode_event(struct mt_encode *e)
{
	struct mt_batch_event *event = e->filling ? mt_batch_event(e->filling) : NULL;

	if (!event)
		event = mt_batch_event(next_batch(e));
	e->events++;
	return event;
}

struct mt_batch_node *mt_encode_node(struct mt_encode *e)
{
	struct mt_batch_node *node = e->filling ? mt_batch_node(e->filling) : NULL;

	return node ? node : mt_batch_node(next_batch(e));
}

uint64_t mt_encode_events(const struct mt_encode *e)
{
	return e->events;
}

uint64_t mt_encode_waited_ns(const struct mt_encode *e)
{
	return e->waited_ns;
}

int mt_encode_error(struct mt_encode *e)
{
	int error;

	pthread_mutex_lock(&e->lock);
	error = e->error;
	pthread_mutex_unlock(&e->lock);
	return error;
}

void mt_encode_end(struct mt_encode *e)
{
	mt_encode_push(e);
	pthread_mutex_lock(&e->lock);
	e->stopping = 1;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

int mt_encode_stop(struct mt_encode *e)
{
	int error;

	if (!e)
		return 0;
	mt_encode_end(e);
	pthread_join(e->thread, NULL);
	mt_writer_observe(e->writer, NULL, NULL);
	error = e->error;
	free_all(e);
	return error;
}
