/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * collector_options.c - see collector_options.h for the contract
 */
#include "collector/collector_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "collector/policy.h"
#include "collector/tuning.h"
#include "wire/ring.h"

/* Options whose values are looked at right away; -EINVAL: there is no such option. */
static int parse_value(int opt, const char *text, struct mt_collector_options *o)
{
	switch (opt) {
	case 'c':
		o->channel = atoi(text);
		return 0;
	case 'o':
		o->output = atoi(text);
		return 0;
	case 't':
		o->stats = atoi(text);
		return 0;
	case 'S':
		return mt_size_parse(text, MT_BUDGET_MAX_BYTES, &o->stack_bytes);
	case 'R':
		return mt_tuning_stack_ring(text, 0, &o->stack_ring_bytes);
	case 'E':
		return mt_tuning_event_ring(text, &o->event_ring_bytes);
	case 'I':
		return mt_tuning_interval(text, &o->drain_interval_ms);
	case 'P':
		return mt_policy_pause(text, &o->pause);
	case 'W':
		return mt_policy_watermark(text, &o->watermark_percent);
	case 'C':
		return mt_capture_choose(text, &o->capture);
	default:
		return -EINVAL;
	}
}

int mt_collector_options_parse(int argc, char **argv, struct mt_collector_options *o)
{
	static const struct option longs[] = {
		{ "channel", required_argument, NULL, 'c' },
		{ "output", required_argument, NULL, 'o' },
		{ "stats", required_argument, NULL, 't' },
		{ "directory", required_argument, NULL, 'd' },
		{ "shim", required_argument, NULL, 's' },
		{ "stack-size", required_argument, NULL, 'S' },
		{ "capture", required_argument, NULL, 'C' },
		{ "stack-ring", required_argument, NULL, 'R' },
		{ "event-ring", required_argument, NULL, 'E' },
		{ "drain-interval", required_argument, NULL, 'I' },
		{ "pause", required_argument, NULL, 'P' },
		{ "pressure-watermark", required_argument, NULL, 'W' },
		{ "raw-stacks", no_argument, NULL, 'r' },
		{ "no-stacks", no_argument, NULL, 'n' },
		{ "keep-stacks", no_argument, NULL, 'k' },
		{ "no-learned-stacks", no_argument, NULL, 'l' },
		{ "inject-faults", required_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	*o = (struct mt_collector_options){
		.channel = -1,
		.output = -1,
		.stats = -1,
		.event_ring_bytes = MT_RING_BYTES,
		.drain_interval_ms = MT_DRAIN_INTERVAL_MS,
	};
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			o->directory = optarg;
			break;
		case 's':
			o->shim = optarg;
			break;
		case 'k':
			o->keep_stacks = true;
			break;
		case 'l':
			o->no_learned_stacks = true;
			break;
		case 'r':
			o->run_flags |= MT_RUN_RAW;
			break;
		case 'n': /* and so no references either */
			o->run_flags |= MT_RUN_NO_STACKS | MT_RUN_RAW;
			break;
		case 'f':
			o->faults = optarg;
			break;
		default:
			if (parse_value(opt, optarg, o) < 0)
				return -EINVAL;
		}
	}
	o->command = argv + optind;
	if (o->channel < 0 || o->output < 0 || !o->directory || !o->shim || !o->stack_bytes)
		return -EINVAL;
	return 0;
}
