/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run_options.c - see run_options.h for the contract
 *
 * Invariants
 *   - What names no letter has a number from OPTION_KEEP_STACKS on: messages about options tell
 *     the two apart by that.
 */
#include "collector/run_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/capture_choice.h"
#include "collector/policy.h"
#include "collector/say.h"
#include "collector/tuning.h"
#include "wire/control.h"

/* Options that have no letter. */
enum {
	OPTION_KEEP_STACKS = 0x100,
	OPTION_NO_STACKS,
	OPTION_RAW_STACKS,
	OPTION_FAULTS,
	OPTION_NO_LEARNED_STACKS,
	OPTION_STACK_RING,
	OPTION_EVENT_RING,
	OPTION_DRAIN_INTERVAL,
	OPTION_STATS,
	OPTION_PAUSE,
	OPTION_TIMEOUT,
	OPTION_WATERMARK,
};

static const char usage_text[] =
	"usage: memtrack-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"Runs COMMAND and records each of its heap allocations with its call chain.\n"
	"\n"
	"  -o, --output=FILE        the artifact; default memtrack.COMMAND.PID.mtk; a directory:\n"
	"                           that name in it\n"
	"      --stack-size=SIZE    bytes of stack copied at most: 4K, 8K (default), 16K, 32K, "
	"64K\n"
	"      --capture=HOW        auto (default), ebpf (needs root, or CAP_BPF and CAP_PERFMON)\n"
	"                           or inline (needs no privileges)\n"
	"      --no-stacks          record no call chains\n"
	"      --no-stack-compression\n"
	"                           hand stacks on as they are, not as differences\n"
	"      --no-learned-stacks  do not teach threads the call chains that they had before\n"
	"      --stack-ring=SIZE    the kernel's buffer for stacks: 64K to 1G, default 4M\n"
	"      --event-ring=SIZE    each thread's buffer for events: 4K to 64M, default 256K\n"
	"      --drain-interval=MS  empty them so often, in milliseconds: 1 (default) to 60000\n"
	"      --pause=HOW          where buffers fill up, the program waits by itself: futex\n"
	"                           (default); or is stopped and continued: signal\n"
	"      --pressure-timeout=SECONDS\n"
	"                           wait so long, then end the program; inf (default); 0: do not\n"
	"                           wait, count what is lost\n"
	"      --pressure-watermark=PERCENT\n"
	"                           a buffer so full makes the program wait: 1 to 99, default 75\n"
	"      --keep-stacks        keep the copied stacks, for memtrack-report --verify-stacks\n"
	"      --stats=FILE         write what memtrack did and how long it took, as JSON lines\n"
	"  -v, --verbose            print a summary on stderr at the end\n"
	"  -q, --quiet              show no progress, where stderr is a terminal\n"
	"  -h, --help               print this\n"
	"  -V, --version            print the version\n"
	"\n"
	"memtrack-report FILE shows what was recorded.  Exit status: COMMAND's; 128+n if a signal\n"
	"ended it; 121: something was lost; 125: memtrack failed; 126, 127: COMMAND could not be\n"
	"executed or found.\n";

static int check_tuning(const struct mt_run_options *o, uint64_t window_bytes)
{
	uint32_t value;

	if (o->stack_ring && mt_tuning_stack_ring(o->stack_ring, window_bytes, &value) < 0) {
		mt_say("--stack-ring=%s is not a power of two from 64K, and %d times --stack-size, "
		       "to"
		       " 1G",
		       o->stack_ring, MT_STACK_RING_WINDOWS);
		return MT_STATUS_FAILED;
	}
	if (o->event_ring && mt_tuning_event_ring(o->event_ring, &value) < 0) {
		mt_say("--event-ring=%s is not a power of two from 4K to 64M", o->event_ring);
		return MT_STATUS_FAILED;
	}
	if (o->drain_interval && mt_tuning_interval(o->drain_interval, &value) < 0) {
		mt_say("--drain-interval=%s is not a number of milliseconds from 1 to %d",
		       o->drain_interval, MT_DRAIN_INTERVAL_MAX_MS);
		return MT_STATUS_FAILED;
	}
	return 0;
}

static int check_policy(struct mt_run_options *o)
{
	uint32_t value;

	if (o->pause && (mt_policy_pause(o->pause, &value) < 0 || value == MT_PAUSE_NEVER)) {
		mt_say("--pause=%s is not one of futex, signal", o->pause);
		return MT_STATUS_FAILED;
	}
	if (o->watermark && mt_policy_watermark(o->watermark, &value) < 0) {
		mt_say("--pressure-watermark=%s is not a percentage from 1 to 99", o->watermark);
		return MT_STATUS_FAILED;
	}
	if (mt_policy_timeout(o->timeout, &o->timeout_ns) < 0) {
		mt_say("--pressure-timeout=%s is not a number of seconds up to %d, 0 or inf",
		       o->timeout, MT_PRESSURE_MAX_SECONDS);
		return MT_STATUS_FAILED;
	}
	if (o->timeout_ns == MT_PRESSURE_NEVER)
		o->pause = "never";
	return 0;
}

static int check_options(struct mt_run_options *o)
{
	enum mt_capture_choice capture;
	uint64_t bytes = 0;
	int r;

	if (mt_size_parse(o->stack_size, UINT32_MAX, &bytes) < 0 || bytes & (bytes - 1) ||
	    bytes < MT_BUDGET_MIN_BYTES || bytes > MT_BUDGET_MAX_BYTES) {
		mt_say("--stack-size=%s is not one of 4K, 8K, 16K, 32K, 64K", o->stack_size);
		return MT_STATUS_FAILED;
	}
	if (mt_capture_choose(o->capture, &capture) < 0) {
		mt_say("--capture=%s is not one of auto, ebpf, inline", o->capture);
		return MT_STATUS_FAILED;
	}
	r = check_tuning(o, bytes);
	if (!r)
		r = check_policy(o);
	if (r)
		return r;
	if (!o->command[0]) {
		mt_say("no command to run; try memtrack-run --help");
		return MT_STATUS_FAILED;
	}
	return 0;
}

/* Help that did not get out is not help; returns 1 + the exit status. */
static int print_out(const char *text)
{
	if (fputs(text, stdout) != EOF && fflush(stdout) != EOF)
		return 1 + EXIT_SUCCESS;
	mt_say("cannot write to standard output: %s", strerror(errno));
	return 1 + MT_STATUS_FAILED;
}

/* getopt's own messages come without the remedy.  found: what getopt_long() returned. */
static int complain_option(char **argv, int found)
{
	if (found == ':')
		mt_say("option '%s' needs a value; try memtrack-run --help", argv[optind - 1]);
	else if (optopt >= OPTION_KEEP_STACKS ||
		 (optopt && strchr("hqvV", optopt))) /* as letters these are known */
		mt_say("option '%s' takes no value; try memtrack-run --help", argv[optind - 1]);
	else if (optopt) /* in a cluster of letters optind still is at the one before */
		mt_say("unknown option '-%c'; try memtrack-run --help", optopt);
	else
		mt_say("unknown option '%s'; try memtrack-run --help", argv[optind - 1]);
	return 1 + MT_STATUS_FAILED;
}

/* Is the variable set to 0? */
static bool switched_off(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && !strcmp(value, "0");
}

/* Whether the variable is set, to anything but 0. */
static bool is_on(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && value[0] && strcmp(value, "0") != 0;
}

/* Where the value of an option is kept as it was given; NULL: another option. */
static const char **text_of(struct mt_run_options *o, int opt)
{
	switch (opt) {
	case 'o':
		return &o->output;
	case 's':
		return &o->stack_size;
	case 'c':
		return &o->capture;
	case OPTION_STACK_RING:
		return &o->stack_ring;
	case OPTION_EVENT_RING:
		return &o->event_ring;
	case OPTION_DRAIN_INTERVAL:
		return &o->drain_interval;
	case OPTION_STATS:
		return &o->stats;
	case OPTION_PAUSE:
		return &o->pause;
	case OPTION_TIMEOUT:
		return &o->timeout;
	case OPTION_WATERMARK:
		return &o->watermark;
	case OPTION_FAULTS:
		return &o->faults;
	default:
		return NULL;
	}
}

/* The variable's value; NULL where there is none. */
static const char *named_by(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && value[0] ? value : NULL;
}

int mt_run_options_parse(int argc, char **argv, struct mt_run_options *o)
{
	static const struct option longs[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "stack-size", required_argument, NULL, 's' },
		{ "capture", required_argument, NULL, 'c' },
		{ "stack-ring", required_argument, NULL, OPTION_STACK_RING },
		{ "event-ring", required_argument, NULL, OPTION_EVENT_RING },
		{ "drain-interval", required_argument, NULL, OPTION_DRAIN_INTERVAL },
		{ "pause", required_argument, NULL, OPTION_PAUSE },
		{ "pressure-timeout", required_argument, NULL, OPTION_TIMEOUT },
		{ "pressure-watermark", required_argument, NULL, OPTION_WATERMARK },
		{ "no-stacks", no_argument, NULL, OPTION_NO_STACKS },
		{ "no-stack-compression", no_argument, NULL, OPTION_RAW_STACKS },
		{ "stats", required_argument, NULL, OPTION_STATS },
		{ "inject-faults", required_argument, NULL, OPTION_FAULTS },
		{ "keep-stacks", no_argument, NULL, OPTION_KEEP_STACKS },
		{ "no-learned-stacks", no_argument, NULL, OPTION_NO_LEARNED_STACKS },
		{ "verbose", no_argument, NULL, 'v' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	bool keep_given = false;
	int opt, r;

	*o = (struct mt_run_options){
		.stack_size = "8K",
		.capture = "auto",
		.timeout = "inf",
		.raw_stacks = switched_off("MEMTRACK_STACK_COMPRESSION"),
		.keep_stacks = is_on("MEMTRACK_KEEP_STACKS"),
		.no_learned_stacks = switched_off("MEMTRACK_LEARNED_STACKS"),
		.stats = named_by("MEMTRACK_STATS"),
	};
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:o:vqhV", longs, NULL)) != -1) {
		const char **text = text_of(o, opt);

		if (text) {
			*text = optarg;
			continue;
		}
		switch (opt) {
		case OPTION_NO_LEARNED_STACKS:
			o->no_learned_stacks = true;
			break;
		case OPTION_KEEP_STACKS:
			o->keep_stacks = keep_given = true;
			break;
		case OPTION_NO_STACKS:
			o->no_stacks = true;
			break;
		case OPTION_RAW_STACKS:
			o->raw_stacks = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'h':
			return print_out(usage_text);
		case 'V':
			return print_out("memtrack-run " PACKAGE_VERSION "\n");
		default:
			return complain_option(argv, opt);
		}
	}
	if (keep_given && o->no_stacks) {
		mt_say("--keep-stacks with --no-stacks: there are none to keep; give one of them");
		return 1 + MT_STATUS_FAILED;
	}
	o->command = argv + optind;
	r = check_options(o);
	return r ? 1 + r : 0;
}
