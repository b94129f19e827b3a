/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * summary.c - see summary.h for the contract
 *
 * Invariants
 *   - What is not in the artifact and should be is a NOTE, and a bit of the result: nothing is
 *     lost in silence.  All else is a SUMMARY.
 */
#include "collector/summary.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "collector/channel.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* User and system time together, in ms. */
static long cpu_ms(const struct rusage *used)
{
	return (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000 +
	       (used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1000;
}

static void summarize_runs(const struct mt_summary *s)
{
	struct mt_probes_runs n;

	if (mt_probes_capture_runs(s->probes, &n) == 0 && n.runs)
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
				"BPF: %" PRIu64 " runs, %" PRIu64 " ns each", n.runs,
				n.ns / n.runs);
}

static void summarize(const struct mt_summary *s)
{
	const struct mt_pipeline_counts *n = s->counts;
	const struct mt_control *control = s->control;
	const struct mt_stacks_counts *st = &n->stacks;
	uint64_t lost_in_shim = control->lost_stacks;
	char never_captured[64] = "";
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	if (lost_in_shim)
		snprintf(never_captured, sizeof(never_captured),
			 ", of them never captured %" PRIu64, lost_in_shim);
	mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY, "capture: %s%s%s",
			s->probes ? "ebpf" : "inline", s->why_inline[0] ? "; " : "", s->why_inline);
	mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
			"events: %" PRIu64 ", lost %" PRIu64 "; artifact: %" PRIu64 " bytes",
			n->events, n->lost_events, s->artifact_bytes);
	mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
			"stack records: %" PRIu64 " for %" PRIu64 " stacks, %" PRIu64
			" raw, mean %" PRIu64 " bytes for %" PRIu64,
			st->records, st->resolved, st->raw_records,
			st->records ? st->record_bytes / st->records : 0,
			st->records ? st->window_bytes / st->records : 0);
	mt_channel_tell(
		s->channel, MT_MESSAGE_SUMMARY,
		"allocations that needed no record and no trap: %.1f %%; with a learned "
		"chain: %.1f %%",
		percent(st->resolved > st->records ? st->resolved - st->records : 0, st->resolved),
		percent(st->learned, st->resolved));
	mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
			"stack records: mismatches %" PRIu64 ", stale %" PRIu64
			", malformed %" PRIu64 ", duplicates %" PRIu64 ", gaps %" PRIu64
			", dropped %" PRIu64 "; lost %" PRIu64 "%s",
			st->mismatches, st->stale, st->malformed, st->duplicates, st->gaps,
			st->dropped, st->lost, never_captured);
	for (enum mt_fault i = 0; s->faults && i < _MT_FAULT_MAX; i++)
		if (mt_faults_done(s->faults, i))
			mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
					"faults injected: %s %" PRIu64, mt_fault_name(i),
					mt_faults_done(s->faults, i));
	if (n->abandoned_records)
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
				"records left unfinished by their threads: %" PRIu64,
				n->abandoned_records);
	if (s->keep_stacks)
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY, "stacks kept: %" PRIu64,
				n->kept_stacks);
	if (s->probes) {
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
				"probes: refused %" PRIu64 ", busy %" PRIu64 ", ring full %" PRIu64
				", page absent %" PRIu64,
				(uint64_t)control->refused_probes, (uint64_t)control->busy_probes,
				(uint64_t)control->full_probes, (uint64_t)control->faulted_probes);
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY, "kernel memory: %" PRIu64 " KiB",
				mt_probes_kernel_bytes(s->probes) / 1024);
		summarize_runs(s);
	}
	mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY, "collector: %ld KiB, %ld.%03ld s of CPU",
			used.ru_maxrss, cpu_ms(&used) / 1000, cpu_ms(&used) % 1000);
	if (n->episodes)
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
				"pressure: episodes %" PRIu64 ", processes paused at most %" PRIu32,
				n->episodes, n->most_paused);
	/* After an error nobody has looked who ended. */
	if (n->live_processes && !s->error)
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
				"processes that go on, not recorded any more: %" PRIu32,
				n->live_processes);
	if (n->missing_modules)
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
				"modules: %" PRIu64 " without their file, not unwound through",
				n->missing_modules);
}

/* What is missing from the artifact, each kind in a line of its own. */
static uint32_t complain(const struct mt_summary *s)
{
	const struct mt_pipeline_counts *n = s->counts;
	/* Copied: programs that go on may still write them. */
	uint64_t unserved = s->control->unserved_threads;
	uint64_t missed = s->control->lost_lives + s->control->lost_members;
	uint32_t bits = 0;

	if (s->error) {
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE,
				"cannot %s: %s; the artifact ends before that", s->error_verb,
				strerror(-s->error));
		bits |= MT_DONE_FAILED;
	}
	if (n->lost_events) {
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE, "%" PRIu64 " events were lost",
				n->lost_events);
		bits |= MT_DONE_LOST;
	}
	if (n->stacks.lost) {
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE,
				"%" PRIu64 " allocations have no stack (lost or not verified)",
				n->stacks.lost);
		bits |= MT_DONE_LOST;
	}
	if (n->damaged_rings) {
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE,
				"the rings of %" PRIu64
				" threads were damaged, with events in them",
				n->damaged_rings);
		bits |= MT_DONE_LOST;
	}
	if (n->stray_cells) {
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE,
				"%" PRIu64 " records of tracked processes were damaged",
				n->stray_cells);
		bits |= MT_DONE_LOST;
	}
	if (unserved) {
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE,
				"%" PRIu64 " threads were not tracked: no slot or memory for them",
				unserved);
		bits |= MT_DONE_LOST;
	}
	if (missed) {
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE,
				"%" PRIu64 " processes' beginnings or ends were missed", missed);
		bits |= MT_DONE_LOST;
	}
	if (s->stats_error) /* Nothing of the artifact is missing. */
		mt_channel_tell(s->channel, MT_MESSAGE_NOTE,
				"cannot write the statistics: %s; they end before that",
				strerror(-s->stats_error));
	if (n->not_tracked > MT_PIPELINE_NOTES)
		mt_channel_tell(s->channel, MT_MESSAGE_SUMMARY,
				"not tracked: %" PRIu64 " more; the artifact names them",
				n->not_tracked - MT_PIPELINE_NOTES);
	return bits;
}

uint32_t mt_summary_tell(const struct mt_summary *s)
{
	uint32_t bits = complain(s);

	summarize(s);
	return bits;
}
