/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * summary.h - the end of a run in words, for memtrack-run to print
 *
 * Contract
 *   Input:     counts as they are once nothing moves any more; all is borrowed.
 *   Errors:    none: where memtrack-run has gone, there is nobody to tell.
 *   Threads:   one.
 *   Bounds:    about twenty messages, and one for each kind of fault that was injected.
 */
#include "collector/faults.h"
#include "collector/pipeline.h"
#include "collector/probes.h"
#include "wire/control.h"

struct mt_summary {
	int channel; /* collector/channel.h */
	const struct mt_pipeline_counts *counts;
	const struct mt_control *control;
	const struct mt_probes *probes; /* NULL: inline */
	const struct mt_faults *faults; /* NULL: none */
	const char *why_inline;		/* "": because that was asked for */
	uint64_t artifact_bytes;
	bool keep_stacks;
	int error; /* what ended the recording, or 0 */
	const char *error_verb;
	int stats_error; /* what ended the statistics, or 0 */
};

/* Tells what is missing from the artifact, then everything else; returns MT_DONE_* bits. */
uint32_t mt_summary_tell(const struct mt_summary *summary);
