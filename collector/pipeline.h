/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * pipeline.h - one run: what is drained from the rings becomes records for the encoder
 *
 *   drain -> merge -> decode -> unwind -> (queue) -> encode -> write
 *
 * Contract
 *   Input:     open segments and, in an eBPF run, open probes; both borrowed, as are encode,
 *              stats and faults.
 *   Ownership: mt_pipeline_new() gives an object for mt_pipeline_free(), which takes NULL.
 *   Errors:    negative errno, of memory mostly.  The first one ends the recording; the
 *              caller switches the targets off and says so.
 *   Threads:   one.
 *   Bounds:    a pass hands on at most MT_PIPELINE_CELLS cells, and the rest of a blob.
 */
#include "collector/encode.h"
#include "collector/faults.h"
#include "collector/pressure.h"
#include "collector/probes.h"
#include "collector/segments.h"
#include "collector/session.h"
#include "collector/stacks.h"
#include "collector/stats.h"

#define MT_PIPELINE_CELLS (128 * 1024)
/* Processes not tracked that are told of one by one. */
#define MT_PIPELINE_NOTES 20

struct mt_pipeline_config {
	struct mt_segments *segments;
	struct mt_probes *probes; /* NULL: inline */
	struct mt_encode *encode;
	struct mt_stats *stats;	  /* NULL: none */
	struct mt_faults *faults; /* what is to happen to stack records on purpose; or NULL */
	const char *shim_name;
	bool keep_stacks; /* in the artifact */
	/* A process that is not tracked, for people; the artifact is told by itself. */
	void (*note)(void *ctx, const char *text);
	struct mt_holds *holds; /* NULL: no process is ever stopped */
	uint64_t gather_ns;	/* of pauses, collector/pressure.h */
	/* A pause with holds is over; some process may stand still yet, see mt_pressure_config. */
	void (*released)(void *ctx);
	void *ctx; /* of these */
};

struct mt_pipeline;

int mt_pipeline_new(const struct mt_pipeline_config *config, struct mt_pipeline **ret);
void mt_pipeline_free(struct mt_pipeline *pipeline);

/* The root of the tree, before it starts, and what it will execute, for people. */
void mt_pipeline_target(struct mt_pipeline *pipeline, uint32_t tgid, const char *name);

/* For mt_session_open(). */
int mt_pipeline_arrive(void *pipeline, const struct mt_arrival *arrival);

/* One pass over everything; returns the cells that were handed on, or more than 0 where stack
 * records had to be left. */
int64_t mt_pipeline_pass(struct mt_pipeline *pipeline);

/* Whether threads or processes are paused for the pass to come: it is not to wait. */
bool mt_pipeline_pressed(const struct mt_pipeline *pipeline);

/* Whether nothing but that is waited for that more threads park. */
bool mt_pipeline_gathers(const struct mt_pipeline *pipeline);

/* In how many ns, by the rate at which rings were filled lately, a pass is due. */
uint64_t mt_pipeline_due_ns(const struct mt_pipeline *pipeline);

/* Passes until nothing is left, without regard to time, or until a program that goes on
 * although it was told to stop has had its share; then puts what is known to end. */
int mt_pipeline_finish(struct mt_pipeline *pipeline);

/* After an error, instead of a pass: gives up what came, so that no program waits. */
void mt_pipeline_skip(struct mt_pipeline *pipeline);

struct mt_pipeline_counts {
	struct mt_stacks_counts stacks;
	uint64_t events;
	uint64_t lost_events;
	uint64_t stray_cells; /* cells that mean nothing */
	uint64_t damaged_rings;
	uint64_t abandoned_records; /* whose pieces did not all come: no loss */
	uint64_t missing_modules;
	uint64_t not_tracked;
	uint64_t kept_stacks;
	uint32_t live_processes;
	uint64_t episodes;    /* of pressure */
	uint32_t most_paused; /* processes in one of them */
};

void mt_pipeline_counts(const struct mt_pipeline *pipeline, struct mt_pipeline_counts *ret);

static inline void mt_pipeline_freep(struct mt_pipeline **pipeline)
{
	mt_pipeline_free(*pipeline);
}
