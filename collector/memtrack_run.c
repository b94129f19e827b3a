/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memtrack_run.c - run a command and record its allocations
 *
 * Exit status: the command's, 128 + n if signal n ended it; 125 if memtrack could not run
 * it, 126 and 127 if it could not be executed or found, 121 if something is missing from
 * the artifact and the command itself did not fail.
 *
 * Nothing is printed where all went well, unless -v: the command's output may be read by
 * a program.  A terminal shows how far the run is meanwhile, and nothing of that is left.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/channel.h"
#include "collector/clock.h"
#include "collector/forward.h"
#include "collector/launch.h"
#include "collector/place.h"
#include "collector/progress.h"
#include "collector/status_line.h"
#include "collector/tuning.h"
#include "wire/control.h"

enum {
	STATUS_LOST = 121,
	STATUS_FAILED = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127
};

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
};

/* Arguments of the collector before the command. */
#define FIXED_MAX 32

/* Lines that are kept until the command's end, so that they do not mix with its output. */
#define LINES_MAX 64

/* A command that is done by then shows no progress. */
#define QUIET_NS (2000 * 1000 * 1000ULL)

struct options {
	const char *output;
	const char *stack_size;
	const char *capture;
	const char *stack_ring; /* NULL: the default */
	const char *event_ring;
	const char *drain_interval;
	const char *stats;  /* NULL: none */
	const char *faults; /* on purpose, collector/faults.h; or NULL */
	bool raw_stacks;
	bool no_stacks;
	bool keep_stacks;
	bool no_learned_stacks;
	bool verbose;
	bool quiet;
	char **command;
};

struct run {
	struct options options;
	struct mt_forward forward;
	struct mt_place place;
	struct mt_launch launch;
	struct mt_user user;
	struct mt_status_line line;
	pid_t collector;
	int channel;
	int output;
	int stats; /* -1: none */
	bool stats_created;
	bool output_created;
	char output_path[4200];
	char *lines[LINES_MAX];
	uint32_t n_lines;
	uint32_t done_bits;
	uint64_t artifact_bytes; /* as the collector says */
	bool done;		 /* the collector said so */
};

/* One line on stderr, whatever is in the names. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[8192];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fputs("memtrack-run: ", stderr);
	for (const char *c = line; *c; c++) {
		if (iscntrl((unsigned char)*c))
			fprintf(stderr, "\\x%02x", (unsigned char)*c);
		else
			fputc(*c, stderr);
	}
	fputc('\n', stderr);
}

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
	"      --event-ring=SIZE    each thread's buffer for events: 4K to 64M, default 128K\n"
	"      --drain-interval=MS  empty them so often, in milliseconds: 1 (default) to 60000\n"
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

static int check_tuning(const struct options *o, uint64_t window_bytes)
{
	uint32_t value;

	if (o->stack_ring && mt_tuning_stack_ring(o->stack_ring, window_bytes, &value) < 0) {
		say("--stack-ring=%s is not a power of two from 64K, and %d times --stack-size, to"
		    " 1G",
		    o->stack_ring, MT_STACK_RING_WINDOWS);
		return STATUS_FAILED;
	}
	if (o->event_ring && mt_tuning_event_ring(o->event_ring, &value) < 0) {
		say("--event-ring=%s is not a power of two from 4K to 64M", o->event_ring);
		return STATUS_FAILED;
	}
	if (o->drain_interval && mt_tuning_interval(o->drain_interval, &value) < 0) {
		say("--drain-interval=%s is not a number of milliseconds from 1 to %d",
		    o->drain_interval, MT_DRAIN_INTERVAL_MAX_MS);
		return STATUS_FAILED;
	}
	return 0;
}

static int check_options(const struct options *o)
{
	static const char *const captures[] = { "auto", "ebpf", "inline" };
	uint64_t bytes = 0;
	bool known = false;
	int r;

	if (mt_size_parse(o->stack_size, UINT32_MAX, &bytes) < 0 || bytes & (bytes - 1) ||
	    bytes < MT_BUDGET_MIN_BYTES || bytes > MT_BUDGET_MAX_BYTES) {
		say("--stack-size=%s is not one of 4K, 8K, 16K, 32K, 64K", o->stack_size);
		return STATUS_FAILED;
	}
	for (int i = 0; i < 3; i++)
		known |= !strcmp(o->capture, captures[i]);
	if (!known) {
		say("--capture=%s is not one of auto, ebpf, inline", o->capture);
		return STATUS_FAILED;
	}
	r = check_tuning(o, bytes);
	if (r)
		return r;
	if (!o->command[0]) {
		say("no command to run; try memtrack-run --help");
		return STATUS_FAILED;
	}
	return 0;
}

/* Help that did not get out is not help; returns 1 + the exit status. */
static int print_out(const char *text)
{
	if (fputs(text, stdout) != EOF && fflush(stdout) != EOF)
		return 1 + EXIT_SUCCESS;
	say("cannot write to standard output: %s", strerror(errno));
	return 1 + STATUS_FAILED;
}

/* getopt's own messages come without the remedy.  found: what getopt_long() returned. */
static int complain_option(char **argv, int found)
{
	if (found == ':')
		say("option '%s' needs a value; try memtrack-run --help", argv[optind - 1]);
	else if (optopt >= OPTION_KEEP_STACKS ||
		 (optopt && strchr("hqvV", optopt))) /* as letters these are known */
		say("option '%s' takes no value; try memtrack-run --help", argv[optind - 1]);
	else if (optopt) /* in a cluster of letters optind still is at the one before */
		say("unknown option '-%c'; try memtrack-run --help", optopt);
	else
		say("unknown option '%s'; try memtrack-run --help", argv[optind - 1]);
	return 1 + STATUS_FAILED;
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
static const char **text_of(struct options *o, int opt)
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

/* Returns 0, or 1 + the exit status to end with. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "stack-size", required_argument, NULL, 's' },
		{ "capture", required_argument, NULL, 'c' },
		{ "stack-ring", required_argument, NULL, OPTION_STACK_RING },
		{ "event-ring", required_argument, NULL, OPTION_EVENT_RING },
		{ "drain-interval", required_argument, NULL, OPTION_DRAIN_INTERVAL },
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
	int opt, r;

	*o = (struct options){
		.stack_size = "8K",
		.capture = "auto",
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
			o->keep_stacks = true;
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
	o->command = argv + optind;
	r = check_options(o);
	return r ? 1 + r : 0;
}

/* A descriptor that the command is to find closed must not become one of ours. */
static int fill_standard_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			return mt_neg_errno();
	}
	return 0;
}

/* The command's input and output are not the collector's, which may live longer. */
static int leave_standard_descriptors(void)
{
	mt_cleanup(mt_closep) int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		return mt_neg_errno();
	return 0;
}

/* A part of memtrack: named by the variable, or where the build or the installation has it. */
static void locate(const char *variable, const char *in_build, const char *installed, char *ret,
		   size_t room)
{
	const char *named = secure_getenv(variable);
	char self[3072];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (named) {
		snprintf(ret, room, "%s", named);
		return;
	}
	self[len < 0 ? 0 : len] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		snprintf(ret, room, "%s/%s", self, in_build);
		if (access(ret, R_OK) == 0)
			return;
	}
	snprintf(ret, room, "%s", installed);
}

static int prepare_place(struct run *run)
{
	char shim[4096];
	int r;

	locate("MEMTRACK_PRELOAD", "../preload/.libs/" MT_SHIM_NAME, MT_PKGLIBDIR "/" MT_SHIM_NAME,
	       shim, sizeof(shim));
	r = mt_place_open(shim, &run->place);
	if (r < 0)
		say("cannot prepare '%s': %s", run->place.what, strerror(-r));
	return r;
}

static void give_to_user(const struct run *run, int fd, const char *path)
{
	if (run->user.change && fchown(fd, run->user.uid, run->user.gid) < 0)
		say("cannot give '%s' to the user: %s, ignoring", path, strerror(errno));
}

static int open_stats(struct run *run)
{
	const char *path = run->options.stats;
	int fd;

	if (!path)
		return 0;
	fd = mt_place_open_stats(path, &run->stats_created);
	if (fd < 0) {
		say("cannot write statistics to '%s': %s; give another file with --stats", path,
		    fd == -EBUSY ? "another run is writing it" : strerror(-fd));
		return fd;
	}
	run->stats = fd;
	if (run->stats_created)
		give_to_user(run, fd, path);
	return 0;
}

/* Whether the artifact's path is that of the statistics, too. */
static bool is_stats_file(const struct run *run, const char *path)
{
	struct stat stats, output;

	return run->stats >= 0 && fstat(run->stats, &stats) == 0 && stat(path, &output) == 0 &&
	       stats.st_dev == output.st_dev && stats.st_ino == output.st_ino;
}

static int open_output(struct run *run)
{
	int fd = mt_place_open_output(run->options.output, run->options.command[0],
				      run->launch.tgid, run->output_path, sizeof(run->output_path),
				      &run->output_created);

	if (fd < 0) {
		say("cannot write '%s': %s; give another file with -o", run->output_path,
		    fd == -EINVAL			   ? "not a regular file"
		    : fd != -EBUSY			   ? strerror(-fd)
		    : is_stats_file(run, run->output_path) ? "the statistics go there"
							   : "another run is writing it");
		return fd;
	}
	run->output = fd;
	if (run->output_created)
		give_to_user(run, fd, run->output_path);
	return 0;
}

/* The collector's arguments before the command. */
struct arguments {
	char *list[FIXED_MAX];
	size_t n;
	bool failed; /* one could not be made */
};

__attribute__((format(printf, 2, 3))) static void add_argument(struct arguments *arguments,
							       const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (arguments->n == FIXED_MAX || vasprintf(&text, format, args) < 0)
		arguments->failed = true;
	else
		arguments->list[arguments->n++] = text;
	va_end(args);
}

/* An option that is passed on as it was given. */
static void pass_on(struct arguments *arguments, const char *name, const char *value)
{
	if (value)
		add_argument(arguments, "--%s=%s", name, value);
}

static void list_arguments(const struct run *run, const char *path, int channel,
			   struct arguments *ret)
{
	const struct options *o = &run->options;

	add_argument(ret, "%s", path);
	add_argument(ret, "--channel=%d", channel);
	add_argument(ret, "--output=%d", run->output);
	add_argument(ret, "--directory=%s", run->place.directory);
	add_argument(ret, "--shim=%s", run->place.shim);
	pass_on(ret, "stack-size", o->stack_size);
	pass_on(ret, "capture", o->capture);
	pass_on(ret, "stack-ring", o->stack_ring);
	pass_on(ret, "event-ring", o->event_ring);
	pass_on(ret, "drain-interval", o->drain_interval);
	if (o->raw_stacks)
		add_argument(ret, "--raw-stacks");
	if (o->no_stacks)
		add_argument(ret, "--no-stacks");
	if (o->keep_stacks)
		add_argument(ret, "--keep-stacks");
	if (o->no_learned_stacks)
		add_argument(ret, "--no-learned-stacks");
	if (run->stats >= 0)
		add_argument(ret, "--stats=%d", run->stats);
	pass_on(ret, "inject-faults", o->faults);
	add_argument(ret, "--");
}

/* What is allocated here goes with the image that execv() replaces. */
__attribute__((noreturn)) static void exec_collector(struct run *run, int channel)
{
	struct arguments fixed = { 0 };
	char path[4096];
	char **argv = NULL;
	size_t n = 0;
	int r = -ENOMEM;

	locate("MEMTRACK_COLLECTOR", "memtrack-collector", MT_PKGLIBEXECDIR "/memtrack-collector",
	       path, sizeof(path));
	list_arguments(run, path, channel, &fixed);
	while (run->options.command[n])
		n++;
	if (!fixed.failed)
		argv = calloc(fixed.n + n + 1, sizeof(char *));
	if (argv) {
		memcpy(argv, fixed.list, fixed.n * sizeof(char *));
		memcpy(argv + fixed.n, run->options.command, n * sizeof(char *));
		fcntl(channel, F_SETFD, 0);
		fcntl(run->output, F_SETFD, 0);
		if (run->stats >= 0)
			fcntl(run->stats, F_SETFD, 0);
		fcntl(STDERR_FILENO, F_SETFD, 0);
		r = leave_standard_descriptors();
		if (r == 0) {
			execv(path, argv);
			r = mt_neg_errno();
		}
	}
	snprintf(path + strlen(path), sizeof(path) - strlen(path), ": %s", strerror(-r));
	mt_channel_send(channel, MT_MESSAGE_FAILED, 0, path);
	_exit(STATUS_FAILED);
}

static int start_collector(struct run *run)
{
	struct stat st;
	int pair[2];

	if (run->stats >= 0 && fstat(run->stats, &st) == 0 && S_ISREG(st.st_mode) &&
	    ftruncate(run->stats, 0) < 0) {
		say("cannot empty '%s': %s", run->options.stats, strerror(errno));
		return mt_neg_errno();
	}
	if (ftruncate(run->output, 0) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		say("cannot start the collector: %s", strerror(errno));
		return mt_neg_errno();
	}
	run->collector = fork();
	if (run->collector < 0) {
		say("cannot start the collector: %s", strerror(errno));
		return mt_neg_errno();
	}
	if (run->collector == 0) {
		close(pair[0]);
		exec_collector(run, pair[1]);
	}
	close(pair[1]);
	run->channel = pair[0];
	return 0;
}

static void keep_line(struct run *run, const char *text)
{
	if (run->n_lines < LINES_MAX)
		run->lines[run->n_lines++] = strdup(text);
}

/* Waits for one kind of message; -EPIPE, and a line on stderr, if it does not come. */
static int await(struct run *run, enum mt_message_kind kind, struct mt_message *ret)
{
	int r;

	while ((r = mt_channel_receive(run->channel, 0, ret)) == 1) {
		if (ret->kind == (uint32_t)kind)
			return 0;
		if (ret->kind == MT_MESSAGE_FAILED) {
			say("%s", ret->text);
			/* It closes the channel when it has let go of the file. */
			while (mt_channel_receive(run->channel, 0, ret) == 1)
				;
			return -EPIPE;
		}
		if (ret->kind == MT_MESSAGE_NOTE)
			keep_line(run, ret->text);
	}
	say("the collector ended before the run began");
	return -EPIPE;
}

/* Returns 0, or the exit status of what failed. */
static int start_command(struct run *run)
{
	struct mt_message message;
	char variable[160];
	int r;

	r = await(run, MT_MESSAGE_READY, &message);
	if (r < 0)
		return STATUS_FAILED;
	snprintf(variable, sizeof(variable), "%.16s:%s", message.text, run->place.socket);
	r = mt_channel_send(run->channel, MT_MESSAGE_TARGET, (uint32_t)run->launch.tgid, "");
	if (r == 0)
		r = await(run, MT_MESSAGE_GO, &message);
	if (r < 0)
		return STATUS_FAILED;
	r = mt_launch_go(&run->launch, run->place.preload, variable);
	run->launch.tgid = r < 0 ? 0 : run->launch.tgid;
	if (r < 0) {
		say("cannot run '%s': %s", run->options.command[0], strerror(-r));
		return r == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	}
	return 0;
}

/* Asks for what there will be to show next. */
static void ask_for_progress(struct run *run)
{
	/* A collector that is not there any more is found out elsewhere. */
	if (mt_status_line_is_on(&run->line))
		(void)mt_channel_offer(run->channel, MT_MESSAGE_ASK, 0, "");
}

static void show_progress(struct run *run, const struct mt_message *message)
{
	char text[MT_PROGRESS_ROOM];
	struct mt_progress progress;
	struct stat st;

	if (mt_progress_parse(message, &progress) == 0 && fstat(run->output, &st) == 0) {
		mt_progress_format(&progress, (uint64_t)st.st_size, text, sizeof(text));
		mt_status_line_show(&run->line, text);
	}
	ask_for_progress(run);
}

/* Reads what the collector has to say; at its end the channel is closed. */
static void hear_collector(struct run *run, int flags)
{
	struct mt_message message;
	int r;

	while ((r = mt_channel_receive(run->channel, flags, &message)) == 1) {
		if (message.kind == MT_MESSAGE_NOTE ||
		    (message.kind == MT_MESSAGE_SUMMARY && run->options.verbose))
			keep_line(run, message.text);
		if (message.kind == MT_MESSAGE_PROGRESS)
			show_progress(run, &message);
		if (message.kind == MT_MESSAGE_DONE) {
			run->done = true;
			run->done_bits = message.number;
			run->artifact_bytes = strtoull(message.text, NULL, 10);
		}
	}
	if (r != -EAGAIN) {
		mt_status_line_end(&run->line);
		close(run->channel);
		run->channel = -1;
	}
}

static int wait_for_command(struct run *run)
{
	int status;

	if (!run->options.quiet)
		mt_status_line_begin(&run->line, STDERR_FILENO, mt_clock_ns() + QUIET_NS);
	ask_for_progress(run);
	for (;;) {
		struct pollfd fds[] = { { .fd = run->forward.fd, .events = POLLIN },
					{ .fd = run->channel, .events = POLLIN } };

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			hear_collector(run, MSG_DONTWAIT);
		/* Before we are stopped, or the command's end is told of. */
		if (fds[0].revents)
			mt_status_line_erase(&run->line);
		if (fds[0].revents && mt_forward_handle(&run->forward, run->launch.tgid, &status)) {
			mt_status_line_end(&run->line);
			return status;
		}
	}
}

/* Whether the artifact is what the collector has written. */
static void check_output(struct run *run)
{
	const char *what = NULL;
	struct stat st;

	if (run->done_bits & MT_DONE_FAILED || fstat(run->output, &st) < 0)
		return;
	if (!st.st_nlink)
		what = "deleted";
	else if ((uint64_t)st.st_size != run->artifact_bytes)
		what = "changed by others";
	if (!what)
		return;
	say("'%s' was %s while it was written", run->output_path, what);
	run->done_bits |= MT_DONE_FAILED;
}

static void end_collector(struct run *run, int status)
{
	int end;

	if (run->channel >= 0) {
		/* One that died in between is found out by what it does not say. */
		(void)mt_channel_send(run->channel, MT_MESSAGE_END, (uint32_t)status, "");
		mt_forward_release(&run->forward);
		hear_collector(run, 0);
	}
	if (run->done) {
		/* It tears down what is slow without us. */
		check_output(run);
		return;
	}
	if (waitpid(run->collector, &end, 0) == run->collector && WIFSIGNALED(end))
		say("the collector was killed by signal %d; '%s' ends before that and the command"
		    " went on untracked",
		    WTERMSIG(end), run->output_path);
	else
		say("the collector ended early; '%s' is not complete", run->output_path);
}

static void print_lines(struct run *run)
{
	for (uint32_t i = 0; i < run->n_lines; i++) {
		if (run->lines[i])
			say("%s", run->lines[i]);
		free(run->lines[i]);
	}
	if (run->options.verbose && run->done)
		say("artifact: %s", run->output_path);
}

static int exit_status(const struct run *run, int status)
{
	int own = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

	return own == 0 && (!run->done || run->done_bits & ~MT_DONE_IN_USE) ? STATUS_LOST : own;
}

/* Everything up to the command's first instruction; returns 0 or an exit status. */
static int start(struct run *run)
{
	int r;

	if (prepare_place(run) < 0)
		return STATUS_FAILED;
	r = mt_launch_fork(run->options.command, &run->user, &run->forward, &run->launch);
	if (r < 0) {
		say("cannot start '%s': %s", run->options.command[0], strerror(-r));
		run->launch.tgid = 0;
		return STATUS_FAILED;
	}
	if (open_output(run) < 0)
		return STATUS_FAILED;
	if (start_collector(run) < 0)
		return STATUS_FAILED;
	return start_command(run);
}

int main(int argc, char **argv)
{
	struct run run = { .channel = -1, .output = -1, .stats = -1 };
	int status, r;

	if (fill_standard_descriptors() < 0)
		return STATUS_FAILED;
	r = parse_options(argc, argv, &run.options);
	if (r)
		return r - 1;
	mt_launch_user(&run.user);
	if (open_stats(&run) < 0)
		return STATUS_FAILED;
	r = mt_forward_init(&run.forward);
	if (r < 0) {
		say("cannot take signals: %s", strerror(-r));
		return STATUS_FAILED;
	}

	r = start(&run);
	if (r) {
		if (run.launch.tgid)
			mt_launch_cancel(&run.launch);
		if (run.output >= 0 && run.output_created)
			unlink(run.output_path);
		if (run.stats_created)
			unlink(run.options.stats);
		mt_place_close(&run.place);
		return r;
	}
	status = wait_for_command(&run);
	end_collector(&run, status);
	if (run.done_bits & MT_DONE_IN_USE)
		mt_place_leave(&run.place);
	mt_place_close(&run.place);
	print_lines(&run);
	return exit_status(&run, status);
}
