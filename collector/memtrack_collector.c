/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memtrack_collector.c - the process that records a run; started by memtrack-run
 *
 * It is told of the command over the channel (collector/channel.h) and tells memtrack-run
 * what to print; it prints nothing itself but what is wrong before there is a channel.
 * Signals of the terminal are memtrack-run's and the command's business: they are blocked
 * here, and when the channel ends, for whatever reason, the artifact is finished.  Its
 * standard input and output are /dev/null.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "artifact/writer.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "collector/channel.h"
#include "collector/clock.h"
#include "collector/collector_options.h"
#include "collector/encode.h"
#include "collector/guard.h"
#include "collector/pipeline.h"
#include "collector/place.h"
#include "collector/probes.h"
#include "collector/proc_state.h"
#include "collector/progress.h"
#include "collector/rest.h"
#include "collector/segments.h"
#include "collector/session.h"
#include "collector/stats.h"
#include "collector/summary.h"
#include "collector/tuning.h"

/* Between two looks at what may end a sleep that is longer, but for a rest. */
#define LOOK_NS (1000 * 1000ULL)
/* A run that is drained seldom is paused as a whole: so much of the interval is waited for all to
 * park. */
#define GATHER_SHARE 50
#define GATHER_STEP_NS (200 * 1000ULL)
#define WORTH_SLEEPING_NS (20 * 1000ULL)
#define TIMER_SLACK_NS 1000UL
/* After the targets are switched off: for those that are in the middle of an append. */
#define SETTLE_US 2000
#define FILES_WANTED 4096
/* So often it is looked whether memtrack-run has to be continued, and told, at most, that the
 * command stands still. */
#define WAKE_NS (10 * 1000 * 1000ULL)
#define TOLD_AGAIN_NS (100 * 1000 * 1000ULL)
/* Descriptors that are opened after the kernel part: shared memories, the bell, the socket, a
 * client and what is looked at in /proc; and those without which no process could be tracked. */
#define FILES_AFTER_PROBES 9
#define FILES_NEEDED 8

struct collector {
	struct mt_collector_options options;
	uint64_t start_ns;
	uint64_t cookie, name; /* wire/session.h */
	struct mt_probes *probes;
	struct mt_segments *segments;
	struct mt_rest *rest;
	struct mt_session *session;
	struct mt_stats *stats; /* NULL: none */
	struct mt_writer *writer;
	struct mt_encode *encode;
	struct mt_pipeline *pipeline;
	struct mt_holds *holds;	     /* NULL: nobody is ever stopped */
	struct mt_place_marks marks; /* where somebody may be */
	uint32_t root;
	pid_t runner;		  /* memtrack-run */
	bool runner_asleep;	  /* memtrack-run has stopped itself */
	uint64_t looked_ns;	  /* whether to continue it */
	bool to_tell_stopped;	  /* a pause is over: does the command stand still? */
	uint64_t told_stopped_ns; /* STOPPED was sent last */
	struct mt_faults *faults; /* NULL: none on purpose */
	struct mt_progress_pace progress;
	char why_inline[256];
	int command_status; /* -1: not known */
	int place;	    /* the run's directory */
	bool placed;	    /* it is filled */
	bool leave;	    /* remove the directory when nobody uses it any more */
	int error;	    /* the first that ended the recording */
	const char *error_verb;
};

static int usage(const char *what)
{
	fprintf(stderr, "memtrack-collector: %s; it is started by memtrack-run, see its manual\n",
		what);
	return EXIT_FAILURE;
}

static const char *remedy(int r)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return " (needs root, or CAP_BPF and CAP_PERFMON)";
	case -EMFILE:
		return " (needs about 35: raise ulimit -n)";
	case -EOPNOTSUPP:
		return " (this memtrack was built without)";
	default:
		return "";
	}
}

/* Whether there are so many descriptors, FILES_AFTER_PROBES at most. */
static int check_files(const struct collector *c, int needed)
{
	int fds[FILES_AFTER_PROBES];
	int n = 0, r = 0;

	while (n < needed && r == 0) {
		fds[n] = fcntl(c->options.channel, F_DUPFD_CLOEXEC, 0);
		if (fds[n] < 0)
			r = mt_neg_errno();
		else
			n++;
	}
	while (n > 0)
		close(fds[--n]);
	return r;
}

/* There will be no kernel part; why_inline says what it could not do. */
static int give_up_probes(struct collector *c, const char *verb, int r)
{
	snprintf(c->why_inline, sizeof(c->why_inline), "cannot %s: %s%s", verb, strerror(-r),
		 remedy(r));
	mt_probes_close(c->probes);
	c->probes = NULL;
	return r;
}

static int load_probes(struct collector *c)
{
	struct mt_probes_config config = {
		.budget_bytes = (uint32_t)c->options.stack_bytes,
		.raw = c->options.run_flags & MT_RUN_RAW,
		.cookie = c->cookie,
		.stacks_bytes = c->options.stack_ring_bytes,
		.measured = c->options.stats >= 0,
		.watermark_percent = c->options.watermark_percent,
		.wakeup_bytes = 1, /* whatever comes where nothing was ends a rest */
	};
	int r = mt_probes_open(&config, &c->probes);

	return r < 0 ? give_up_probes(c, "load the BPF programs", r) : 0;
}

static int attach_probes(struct collector *c)
{
	const char *verb = "attach to the preloaded library";
	int r = mt_probes_attach(c->probes, c->options.shim);

	if (r == 0) {
		verb = "work beside the BPF programs";
		r = check_files(c, FILES_AFTER_PROBES);
	}
	return r < 0 ? give_up_probes(c, verb, r) : 0;
}

/* memtrack-run puts the shim there meanwhile. */
static int await_place(struct collector *c)
{
	struct mt_message message;
	int r = mt_channel_receive(c->options.channel, 0, &message);

	c->placed = r == 1 && message.kind == MT_MESSAGE_PLACE;
	if (c->placed)
		return 0;
	c->leave = true; /* memtrack-run has given up, or is gone */
	return r < 0 ? r : -EPIPE;
}

static int choose_capture(struct collector *c)
{
	bool wants_probes = c->options.capture != MT_CHOICE_INLINE;
	int probes = wants_probes ? load_probes(c) : 0, r;

	r = await_place(c);
	if (r < 0)
		return r;
	if (wants_probes && probes == 0)
		probes = attach_probes(c);
	if (probes == 0 || c->options.capture != MT_CHOICE_EBPF)
		return 0;
	mt_channel_tell(c->options.channel, MT_MESSAGE_FAILED, "%s; --capture=inline does without",
			c->why_inline);
	return probes;
}

static int open_segments(struct collector *c)
{
	struct mt_segments_config config = {
		.budget_bytes = (uint32_t)c->options.stack_bytes,
		.ring_bytes = c->options.event_ring_bytes,
		.pause = c->options.pause,
		.watermark_percent = c->options.watermark_percent,
		.flags = c->options.run_flags,
		.learned = !c->options.keep_stacks && !c->options.no_learned_stacks,
		.cookie = c->cookie,
		.control_fd = -1,
		.bpf_references_fd = -1,
	};

	if (c->probes) {
		config.control_fd = mt_probes_control_fd(c->probes);
		config.control = mt_probes_control(c->probes);
		config.bpf_references_fd = mt_probes_references_fd(c->probes);
		config.bpf_references = mt_probes_references(c->probes);
	}
	return mt_segments_open(&config, &c->segments);
}

static int open_rest(struct collector *c)
{
	return mt_rest_new(c->segments, &c->rest);
}

/* What an earlier run wrote is kept as long as it is likely that this one can not begin. */
static int empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) < 0)
		return mt_neg_errno();
	return 0;
}

static int open_writer(struct collector *c)
{
	struct timespec wall;
	struct utsname machine;
	struct mt_header header = {
		.start_ns = c->start_ns,
		.capture = c->segments->capture,
		.budget_bytes = c->segments->budget_bytes,
		.machine = machine.machine,
		.program = PACKAGE_STRING,
		.argv = (const char *const *)c->options.command,
	};
	int fd, r;

	if (uname(&machine) < 0 || clock_gettime(CLOCK_REALTIME, &wall) < 0)
		return mt_neg_errno();
	header.wall_ns = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec -
			 (mt_clock_ns() - c->start_ns);
	fd = c->options.output;
	r = empty(fd);
	if (r < 0)
		return r;
	c->options.output = -1; /* the writer's, whatever comes of it */
	return mt_writer_new(fd, &header, &c->writer);
}

static void note(void *ctx, const char *text)
{
	const struct collector *c = ctx;

	mt_channel_tell(c->options.channel, MT_MESSAGE_SUMMARY, "%s", text);
}

/* Whether the process is of this run: what it has mapped tells, and can not be made up. */
static bool is_ours(void *ctx, uint32_t tgid)
{
	const struct collector *c = ctx;

	return mt_place_is_loaded(&c->marks, tgid);
}

static int open_holds(struct collector *c)
{
	int r;

	if (c->options.pause != MT_PAUSE_SIGNAL)
		return 0;
	r = mt_place_mark(c->place, &c->marks);
	return r < 0 ? r : mt_holds_new(is_ours, c, &c->holds);
}

static void on_released(void *ctx)
{
	struct collector *c = ctx;

	c->to_tell_stopped = true;
}

/*
 * The command stands still after a pause, and nobody will tell memtrack-run but us: while the
 * pause was on that took each stop for ours.  Now and then is enough, but the last pause is to be
 * told of, too; one that stands still itself is told when it goes on.
 */
static void tell_stopped(struct collector *c)
{
	uint64_t now_ns = mt_clock_ns();

	if (!c->to_tell_stopped || c->runner_asleep || now_ns - c->told_stopped_ns < TOLD_AGAIN_NS)
		return;
	if (mt_proc_state(c->root) == 'T') {
		if (mt_channel_offer(c->options.channel, MT_MESSAGE_STOPPED, 0, "") == -EAGAIN)
			return;
		c->told_stopped_ns = now_ns;
	}
	c->to_tell_stopped = false;
}

static int open_pipeline(struct collector *c)
{
	const char *slash = strrchr(c->options.shim, '/');
	struct mt_pipeline_config config = {
		.segments = c->segments,
		.probes = c->probes,
		.encode = c->encode,
		.stats = c->stats,
		.faults = c->faults,
		.shim_name = slash ? slash + 1 : c->options.shim,
		.keep_stacks = c->options.keep_stacks,
		.note = note,
		.holds = c->holds,
		.gather_ns = c->options.drain_interval_ms * (1000000ULL / GATHER_SHARE),
		.released = on_released,
		.ctx = c,
	};

	return mt_pipeline_new(&config, &c->pipeline);
}

static int open_encode(struct collector *c)
{
	return mt_encode_start(c->writer, c->stats, &c->encode);
}

static int open_session(struct collector *c)
{
	char path[256];
	int len = snprintf(path, sizeof(path), "%s/socket", c->options.directory);

	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	return mt_session_open(path, c->name, c->segments, mt_pipeline_arrive, c->pipeline,
			       &c->session);
}

/* Each step and what it is for a person who reads that it failed. */
static const struct {
	int (*open)(struct collector *c);
	const char *verb;
} steps[] = {
	{ open_segments, "make the shared memory" },
	{ open_rest, "prepare for rests" },
	{ open_writer, "write the artifact" },
	{ open_encode, "start the encoder" },
	{ open_holds, "prepare for pauses" },
	{ open_pipeline, "set up the decoder" },
	{ open_session, "listen for the tracked processes" },
};

static int open_faults(struct collector *c)
{
	char problem[MT_FAULTS_PROBLEM];
	int r;

	if (!c->options.faults)
		return 0;
	r = mt_faults_new(c->options.faults, problem, &c->faults);
	if (r < 0)
		mt_channel_tell(c->options.channel, MT_MESSAGE_FAILED, "--inject-faults: %s",
				problem);
	return r;
}

static int open_stats(struct collector *c)
{
	int r;

	if (c->options.stats < 0)
		return 0;
	r = empty(c->options.stats);
	if (r == 0)
		r = mt_stats_open(c->options.stats, &c->stats);
	if (r < 0)
		mt_channel_tell(c->options.channel, MT_MESSAGE_FAILED,
				"cannot start the statistics: %s", strerror(-r));
	return r;
}

static int open_all(struct collector *c)
{
	int r = open_faults(c);

	if (r < 0)
		return r;
	if (getrandom(&c->cookie, sizeof(c->cookie), 0) != sizeof(c->cookie) ||
	    getrandom(&c->name, sizeof(c->name), 0) != sizeof(c->name)) {
		mt_channel_tell(c->options.channel, MT_MESSAGE_FAILED,
				"cannot make the run's cookie: %s", strerror(errno));
		return -EIO;
	}
	r = choose_capture(c);
	if (r < 0)
		return r;
	/* Before an earlier run's files are emptied. */
	r = check_files(c, FILES_NEEDED);
	if (r < 0) {
		mt_channel_tell(c->options.channel, MT_MESSAGE_FAILED, "cannot begin: %s%s",
				strerror(-r), r == -EMFILE ? " (raise ulimit -n)" : "");
		return r;
	}
	r = open_stats(c);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		r = steps[i].open(c);
		if (r < 0) {
			mt_channel_tell(c->options.channel, MT_MESSAGE_FAILED, "cannot %s: %s",
					steps[i].verb, strerror(-r));
			return r;
		}
	}
	return 0;
}

static int close_stats(struct collector *c)
{
	int r = mt_stats_close(c->stats);

	c->stats = NULL;
	return r;
}

/* Before memtrack-run ends: another run may write the file then. */
static void release_output(struct collector *c)
{
	mt_encode_stop(c->encode);
	c->encode = NULL;
	close_stats(c);
	mt_writer_free(c->writer);
	c->writer = NULL;
	mt_closep(&c->options.output);
	c->options.output = -1;
}

/* Returns what keeps the run's abstract name, for as long as we live, or -1. */
static int close_all(struct collector *c)
{
	int name = mt_session_end(c->session);

	mt_pipeline_free(c->pipeline);
	mt_holds_free(c->holds);
	mt_faults_free(c->faults);
	mt_rest_free(c->rest);
	mt_segments_close(c->segments);
	mt_probes_close(c->probes);
	return name;
}

static void fail(struct collector *c, int r, const char *verb)
{
	if (r >= 0 || c->error)
		return;
	c->error = r;
	c->error_verb = verb;
	/* The targets run on without us. */
	__atomic_store_n(&c->segments->control->enabled, 0, __ATOMIC_SEQ_CST);
	mt_segments_wake(c->segments);
}

/* With what memtrack-run needs for pressure: collector/guard.h. */
static int send_ready(const struct collector *c)
{
	char numbers[2 * MT_RUN_DIGITS + 2];
	int fds[MT_GUARD_FDS] = { [MT_GUARD_CONTROL] = c->segments->control_fd };
	size_t n = 1;

	if (c->holds)
		fds[n++] = mt_holds_page_fd(c->holds);
	snprintf(numbers, sizeof(numbers), "%016" PRIx64 ":%016" PRIx64, c->cookie, c->name);
	return mt_channel_send_with(c->options.channel, MT_MESSAGE_READY, c->segments->capture,
				    numbers, fds, n, 0);
}

static void on_target(struct collector *c, uint32_t tgid)
{
	int r = c->probes ? mt_probes_add_member(c->probes, tgid) : 0;

	c->root = tgid;
	mt_pipeline_target(c->pipeline, tgid, c->options.command[0]);
	fail(c, r, "follow the command's processes");
	if (mt_channel_send(c->options.channel, MT_MESSAGE_GO, 0, "") < 0)
		c->command_status = -1;
}

/* Reads what memtrack-run says; returns whether the run is over. */
static bool hear(struct collector *c)
{
	struct mt_message message;
	int r;

	for (;;) {
		r = mt_channel_receive(c->options.channel, MSG_DONTWAIT, &message);
		if (r == -EAGAIN)
			return false;
		if (r <= 0)
			return true;
		if (message.kind == MT_MESSAGE_TARGET)
			on_target(c, message.number);
		if (message.kind == MT_MESSAGE_ASK)
			c->progress.asked = true;
		if (message.kind == MT_MESSAGE_ASLEEP)
			c->runner_asleep = message.number != 0;
		if (message.kind == MT_MESSAGE_END) {
			c->command_status = (int)message.number;
			return true;
		}
	}
}

/*
 * How long to wait for the next pass.  Usually no ring is to fill up in that time; an interval
 * that was asked for and is longer than usual is kept to, whatever comes of it.
 */
static uint64_t interval_ns(const struct collector *c)
{
	uint64_t drain_ns = c->options.drain_interval_ms * 1000000ULL;
	uint64_t due_ns = c->error ? UINT64_MAX : mt_pipeline_due_ns(c->pipeline);

	if (!c->error && mt_pipeline_pressed(c->pipeline))
		return mt_pipeline_gathers(c->pipeline) ? GATHER_STEP_NS : 0;
	if (c->options.drain_interval_ms > MT_DRAIN_INTERVAL_MS)
		return drain_ns;
	if (due_ns < WORTH_SLEEPING_NS)
		return 0;
	return due_ns < drain_ns ? due_ns : drain_ns;
}

/* Whether a ring is full, or nearly: its threads wait for a pass. */
static bool is_latched(const struct collector *c)
{
	return __atomic_load_n(&c->segments->control->latch, __ATOMIC_ACQUIRE) != 0;
}

/* memtrack-run has stopped with the command, and the command goes on. */
static void wake_runner(struct collector *c)
{
	uint64_t now_ns = mt_clock_ns();

	if (!c->runner_asleep || getppid() != c->runner || now_ns - c->looked_ns < WAKE_NS)
		return;
	c->looked_ns = now_ns;
	if (mt_proc_state(c->root) != 'T' && mt_proc_state((uint32_t)c->runner) == 'T')
		kill(c->runner, SIGCONT);
}

/* Serves who comes, for that time at most; returns whether the run is over. */
static bool serve(struct collector *c, uint64_t most_ns)
{
	struct pollfd channel = { .fd = c->options.channel, .events = POLLIN };

	mt_session_serve(c->session, most_ns, &channel, 1);
	return channel.revents && hear(c);
}

/* The same for a rest, which ends with whatever happens. */
static bool serve_in_rest(struct collector *c)
{
	struct pollfd others[] = {
		{ .fd = c->options.channel, .events = POLLIN },
		{ .fd = mt_rest_fd(c->rest), .events = POLLIN },
		{ .fd = c->probes ? mt_probes_stacks_fd(c->probes) : -1, .events = POLLIN },
		{ .fd = c->probes ? mt_probes_life_fd(c->probes) : -1, .events = POLLIN },
	};

	mt_session_serve(c->session, MT_REST_NS, others, sizeof(others) / sizeof(others[0]));
	mt_rest_end(c->rest, others[1].revents || others[2].revents || others[3].revents);
	return others[0].revents && hear(c);
}

/* Serves who comes, until the next pass is due or a ring can not wait for it; returns whether
 * the run is over.  cells: what the last pass has handed on. */
static bool wait_for_pass(struct collector *c, uint64_t cells)
{
	uint64_t drain_ns = c->options.drain_interval_ms * 1000000ULL;
	uint64_t interval = cells < MT_PIPELINE_CELLS ? interval_ns(c) : 0;
	uint64_t now_ns = mt_clock_ns(), due_ns = now_ns + interval, left_ns;
	bool over, rests;

	mt_rest_note(c->rest, cells, now_ns);
	do {
		left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
		/* Not where a ring fills faster than that, or a longer interval was asked for. */
		rests = interval == drain_ns && drain_ns < MT_REST_NS && mt_rest_begin(c->rest);
		over = rests ? serve_in_rest(c) : serve(c, left_ns < LOOK_NS ? left_ns : LOOK_NS);
		wake_runner(c);
		tell_stopped(c);
		now_ns = mt_clock_ns();
	} while (!over && !rests && now_ns < due_ns && !is_latched(c));
	return over;
}

/* For memtrack-run's line on the terminal, if it has one. */
static void tell_progress(struct collector *c)
{
	struct mt_pipeline_counts counts;
	uint64_t now_ns = mt_clock_ns();

	if (!mt_progress_due(&c->progress, now_ns))
		return;
	mt_pipeline_counts(c->pipeline, &counts);
	mt_progress_tell(&c->progress, c->options.channel, now_ns, counts.events,
			 counts.stacks.chains);
}

static void record(struct collector *c)
{
	bool over = false;
	int64_t r = 0;

	while (!over) {
		over = wait_for_pass(c, r > 0 ? (uint64_t)r : 0);
		if (c->error) {
			/* Whoever was about to append may be waiting for room by now. */
			mt_pipeline_skip(c->pipeline);
			r = 0;
			continue;
		}
		c->progress.paused |= is_latched(c);
		r = mt_pipeline_pass(c->pipeline);
		if (r < 0)
			fail(c, (int)r, "record the run");
		tell_progress(c);
		fail(c, mt_encode_error(c->encode), "write the artifact");
	}
}

static uint32_t sum_up(const struct collector *c, const struct mt_pipeline_counts *counts,
		       int stats_error)
{
	struct mt_summary summary = {
		.channel = c->options.channel,
		.counts = counts,
		.control = c->segments->control,
		.probes = c->probes,
		.faults = c->faults,
		.why_inline = c->why_inline,
		.artifact_bytes = mt_writer_bytes(c->writer),
		.keep_stacks = c->options.keep_stacks,
		.error = c->error,
		.error_verb = c->error_verb,
		.stats_error = stats_error,
	};

	return mt_summary_tell(&summary);
}

static void finish(struct collector *c)
{
	struct mt_pipeline_counts counts;
	struct mt_footer footer;
	char bytes[32];
	uint32_t bits;

	if (!c->error)
		fail(c, (int)mt_pipeline_pass(c->pipeline), "record the run");
	__atomic_store_n(&c->segments->control->enabled, 0, __ATOMIC_SEQ_CST);
	mt_segments_wake(c->segments);
	if (!mt_place_is_left(c->place))
		usleep(SETTLE_US);
	if (!c->error)
		fail(c, mt_pipeline_finish(c->pipeline), "record the run");
	else
		mt_pipeline_skip(c->pipeline);
	mt_pipeline_counts(c->pipeline, &counts);
	mt_encode_end(c->encode);
	/* Looks at every process there is, meanwhile. */
	c->leave = mt_place_in_use(c->place, c->options.directory);
	fail(c, mt_encode_stop(c->encode), "write the artifact");
	c->encode = NULL;

	footer = (struct mt_footer){
		.end_ns = mt_clock_ns(),
		.status = c->command_status,
		.events = counts.events,
		.lost_events = counts.lost_events,
		.lost_stacks = counts.stacks.lost,
	};
	/* After an error the artifact is not complete, and must not say that it is. */
	if (!c->error)
		fail(c, mt_writer_finish(c->writer, &footer), "write the artifact");
	/* Nothing moves any more: what is written of it from here on would not be seen. */
	bits = sum_up(c, &counts, close_stats(c));
	bits |= c->leave ? MT_DONE_IN_USE : 0;
	snprintf(bytes, sizeof(bytes), "%" PRIu64, mt_writer_bytes(c->writer));
	/* With memtrack-run gone the directory is left to us. */
	if (mt_channel_send(c->options.channel, MT_MESSAGE_DONE, bits, bytes) < 0)
		c->leave = true;
}

/* The command's limits may be small on purpose; a privileged collector needs not keep them,
 * and any may go up to the hard ones. */
static void lift(int resource, rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max > wanted ? limit.rlim_max : wanted;
	if (limit.rlim_max < limit.rlim_cur)
		limit.rlim_max = limit.rlim_cur;
	if (setrlimit(resource, &limit) < 0 && getrlimit(resource, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

static void settle_in(void)
{
	sigset_t all;

	/* A signal of the terminal, or for the group, is for the command; the channel tells us
	 * when it ended, and who kills all of them needs us to tidy up. */
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	lift(RLIMIT_NOFILE, FILES_WANTED);
	lift(RLIMIT_FSIZE, RLIM_INFINITY); /* the shared memories count too */
	lift(RLIMIT_AS, RLIM_INFINITY);
	lift(RLIMIT_CPU, RLIM_INFINITY);
	/* A sleep may last 50 us more otherwise, in which half of a ring is filled. */
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
}

/* Programs go on that look for the directory when they execute others: stays for them, but
 * keeps nothing else. */
static void outlive(const struct collector *c)
{
	if (chdir("/") == 0)
		mt_place_outlive(c->place, c->options.directory);
}

int main(int argc, char **argv)
{
	struct collector c = { .command_status = -1,
			       .start_ns = mt_clock_ns(),
			       .runner = getppid() };
	int name, r;

	if (mt_collector_options_parse(argc, argv, &c.options) < 0)
		return usage("wrong or missing options");
	settle_in();
	c.place = mt_place_attend(c.options.directory);
	r = open_all(&c);
	if (r == 0) {
		r = send_ready(&c);
		c.leave = r < 0; /* memtrack-run has gone meanwhile */
	}
	if (r == 0) {
		record(&c);
		finish(&c);
	}
	release_output(&c);
	/* What is slow to undo comes after memtrack-run was told; whoever reads what the command
	 * wrote is not to wait for it. */
	close(c.options.channel);
	dup2(STDIN_FILENO, STDERR_FILENO);
	name = close_all(&c);
	if (c.leave)
		outlive(&c);
	else if (c.placed)
		/* memtrack-run does, unless it was killed on the way to it. */
		mt_place_remove(c.place, c.options.directory);
	mt_closep(&c.place);
	mt_closep(&name);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
