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
#include <errno.h>
#include <fcntl.h>
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
#include "collector/guard.h"
#include "collector/launch.h"
#include "collector/place.h"
#include "collector/policy.h"
#include "collector/proc_state.h"
#include "collector/progress.h"
#include "collector/run_options.h"
#include "collector/say.h"
#include "collector/status_line.h"
#include "wire/session.h"

/* Arguments of the collector before the command. */
#define FIXED_MAX 32

/* For a collector that has to end after we have ended the command. */
#define PATIENCE_NS (10 * 1000 * 1000 * 1000ULL)
#define PATIENCE_STEP_MS 100

/* Lines that are kept until the command's end, so that they do not mix with its output. */
#define LINES_MAX 64

/* A command that is done by then shows no progress. */
#define QUIET_NS (2000 * 1000 * 1000ULL)

struct run {
	struct mt_run_options options;
	struct mt_forward forward;
	struct mt_place place;
	struct mt_launch launch;
	struct mt_guard guard;
	bool terminated; /* the tree, by us: pressure lasted too long */
	bool gave_up;	 /* the collector, which we have killed */
	bool look;	 /* the command may be left stopped */
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

/* A descriptor that the command is to find closed must not become one of ours.  Nor can it be used
 * now: what is printed is not to be taken for printed. */
static int fill_standard_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
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

	if (named && *named) {
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

/* shim: where the library comes from, NULL: it was not asked for yet. */
static int say_place(const struct run *run, int r, const char *shim)
{
	bool elsewhere = r == -ENOSPC || r == -EDQUOT || r == -EACCES || r == -EROFS;

	if (r < 0 && shim && !strcmp(run->place.what, shim))
		mt_say("cannot use the library '%s': %s; MEMTRACK_PRELOAD names another", shim,
		       strerror(-r));
	else if (r < 0)
		mt_say("cannot prepare '%s': %s%s", run->place.what, strerror(-r),
		       elsewhere ? "; a run needs 1 MiB in /tmp, /var/tmp, /run or /dev/shm, "
				   "mounted without noexec"
				 : "");
	return r;
}

/* While the collector starts, which waits for it. */
static int fill_place(struct run *run)
{
	char shim[4096];
	int r;

	locate("MEMTRACK_PRELOAD", "../preload/.libs/" MT_SHIM_NAME, MT_PKGLIBDIR "/" MT_SHIM_NAME,
	       shim, sizeof(shim));
	r = say_place(run, mt_place_fill(&run->place, shim), shim);
	/* A collector that is not there any more is found out next. */
	if (r == 0)
		(void)mt_channel_send(run->channel, MT_MESSAGE_PLACE, 0, "");
	return r;
}

static void give_to_user(const struct run *run, int fd, const char *path)
{
	if (run->user.change && fchown(fd, run->user.uid, run->user.gid) < 0)
		mt_say("cannot give '%s' to the user: %s, ignoring", path, strerror(errno));
}

static int open_stats(struct run *run)
{
	const char *path = run->options.stats;
	int fd;

	if (!path)
		return 0;
	fd = mt_place_open_stats(path, &run->stats_created);
	if (fd < 0) {
		mt_say("cannot write statistics to '%s': %s; give another file with --stats", path,
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
		mt_say("cannot write '%s': %s; give another file with -o", run->output_path,
		       fd == -EINVAL			      ? "not a regular file"
		       : fd != -EBUSY			      ? strerror(-fd)
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
	const struct mt_run_options *o = &run->options;

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
	pass_on(ret, "pause", o->pause);
	pass_on(ret, "pressure-watermark", o->watermark);
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
		if (r == 0)
			r = mt_launch_own_libraries();
		if (r == 0) {
			execv(path, argv);
			r = mt_neg_errno();
		}
	}
	mt_channel_tell(channel, MT_MESSAGE_FAILED,
			"cannot execute the collector '%s': %s; MEMTRACK_COLLECTOR names another",
			path, strerror(-r));
	_exit(MT_STATUS_FAILED);
}

static int start_collector(struct run *run)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		mt_say("cannot start the collector: %s", strerror(errno));
		return mt_neg_errno();
	}
	run->collector = fork();
	if (run->collector < 0) {
		mt_say("cannot start the collector: %s", strerror(errno));
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

/* Waits for one kind of message, with its descriptors; -EPIPE, and a line on stderr, if it does
 * not come. */
static int await(struct run *run, enum mt_message_kind kind, struct mt_message *ret, int *ret_fds)
{
	int r;

	while ((r = mt_channel_receive_with(run->channel, 0, ret, ret_fds)) == 1) {
		if (ret->kind == (uint32_t)kind)
			return 0;
		if (ret->kind == MT_MESSAGE_FAILED) {
			mt_say("%s", ret->text);
			return -EPIPE;
		}
		if (ret->kind == MT_MESSAGE_NOTE)
			keep_line(run, ret->text);
	}
	mt_say("the collector ended before the run began");
	return -EPIPE;
}

static void on_sleep(void *ctx, bool asleep)
{
	const struct run *run = ctx;

	if (run->channel >= 0)
		(void)mt_channel_offer(run->channel, MT_MESSAGE_ASLEEP, asleep, "");
}

/* With what the collector sends along. */
static int open_guard(struct run *run, int *fds)
{
	uint64_t timeout_ns = run->options.timeout_ns;
	int r;

	r = mt_guard_open(&run->guard, fds,
			  timeout_ns == MT_PRESSURE_NEVER ? MT_PRESSURE_INF : timeout_ns,
			  run->launch.tgid, run->place.fd);
	if (r < 0) {
		mt_say("cannot map the run's memory: %s", strerror(-r));
		return r;
	}
	run->forward.on_sleep = on_sleep;
	run->forward.ctx = run;
	run->forward.waker = run->collector;
	run->forward.turn = run->guard.holds ? &run->guard.holds->turn : NULL;
	return 0;
}

/* Of a command that can not be executed; the exit status. */
static int say_command(const struct run *run, int r, const char *interpreter)
{
	const char *command = run->options.command[0];

	if (interpreter)
		mt_say("cannot run '%s': its interpreter '%s': %s", command, interpreter,
		       strerror(-r));
	else
		mt_say("cannot run '%s': %s", command, strerror(-r));
	return r == -ENOENT ? MT_STATUS_NOT_FOUND : MT_STATUS_NOT_EXECUTABLE;
}

/* Returns 0, or the exit status of what failed. */
static int start_command(struct run *run)
{
	int fds[MT_CHANNEL_FDS], r;
	struct mt_message message;
	char variable[MT_LAUNCH_RUN_BYTES];

	r = await(run, MT_MESSAGE_READY, &message, fds);
	if (r < 0 || open_guard(run, fds) < 0)
		return MT_STATUS_FAILED;
	snprintf(variable, sizeof(variable), "%.*s:%s", 2 * MT_RUN_DIGITS + 1, message.text,
		 run->place.socket);
	r = mt_channel_send(run->channel, MT_MESSAGE_TARGET, (uint32_t)run->launch.tgid, "");
	if (r == 0)
		r = await(run, MT_MESSAGE_GO, &message, NULL);
	if (r < 0)
		return MT_STATUS_FAILED;
	r = mt_launch_go(&run->launch, run->place.preload, variable);
	run->launch.tgid = r < 0 ? 0 : run->launch.tgid;
	return r < 0 ? say_command(run, r, NULL) : 0;
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
		run->look |= message.kind == MT_MESSAGE_STOPPED;
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
		/* It releases what it holds before that, if it lives. */
		mt_guard_undo_holds(&run->guard);
	}
}

/* What pauses may have left, or how long one lasts. */
static void look_after(struct run *run)
{
	if (run->look) {
		mt_status_line_erase(&run->line);
		mt_forward_look(&run->forward, run->launch.tgid);
	}
	run->look = false;
	run->terminated |= mt_guard_tick(&run->guard);
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

		if (poll(fds, 2, mt_guard_wait_ms(&run->guard)) < 0)
			continue;
		if (fds[1].revents)
			hear_collector(run, MSG_DONTWAIT);
		look_after(run);
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
	mt_say("'%s' was %s while it was written", run->output_path, what);
	run->done_bits |= MT_DONE_FAILED;
}

/*
 * Where pauses may last for a time only, neither does the end: a collector that is stopped for
 * longer, or after we have ended the command is not done in a multiple of what is usual, is
 * given up.
 */
static void await_end(struct run *run)
{
	uint64_t now_ns = mt_clock_ns(), stopped_ns = now_ns, limit_ns = run->options.timeout_ns;
	uint64_t end_ns = now_ns + (limit_ns > PATIENCE_NS ? limit_ns : PATIENCE_NS);

	while (run->channel >= 0 && !run->done) {
		struct pollfd fd = { .fd = run->channel, .events = POLLIN };

		if (poll(&fd, 1, PATIENCE_STEP_MS) > 0)
			hear_collector(run, MSG_DONTWAIT);
		now_ns = mt_clock_ns();
		if (mt_proc_state((uint32_t)run->collector) != 'T')
			stopped_ns = now_ns;
		if (now_ns - stopped_ns > limit_ns || (run->terminated && now_ns > end_ns))
			break;
	}
	run->gave_up = run->channel >= 0 && !run->done;
	if (run->gave_up)
		kill(run->collector, SIGKILL);
}

/* How the collector ended, as waitpid(2) says; waits for that.  False: nobody knows. */
static bool collector_end(const struct run *run, int *ret)
{
	*ret = run->forward.waker_status;
	return run->forward.waker_ended || waitpid(run->collector, ret, 0) == run->collector;
}

static void end_collector(struct run *run, int status)
{
	int end = 0;

	if (run->channel >= 0) {
		/* One that died in between is found out by what it does not say. */
		(void)mt_channel_send(run->channel, MT_MESSAGE_END, (uint32_t)status, "");
		mt_forward_release(&run->forward);
		if (run->options.timeout_ns != MT_PRESSURE_INF &&
		    run->options.timeout_ns != MT_PRESSURE_NEVER)
			await_end(run);
		hear_collector(run, 0);
	}
	if (run->done) {
		/* It tears down what is slow without us. */
		check_output(run);
		return;
	}
	if (collector_end(run, &end) && run->gave_up)
		mt_say("the collector did not answer any more and was killed; '%s' ends before"
		       " that",
		       run->output_path);
	else if (WIFSIGNALED(end))
		mt_say("the collector was killed by signal %d; '%s' ends before that and the "
		       "command"
		       " went on untracked",
		       WTERMSIG(end), run->output_path);
	else
		mt_say("the collector ended early; '%s' is not complete", run->output_path);
}

/* There will be no run.  The collector, if there is one, closes the channel when it has let go of
 * the file, which another run may want at once. */
static void dismiss_collector(struct run *run)
{
	struct mt_message message;

	if (run->channel < 0)
		return;
	mt_forward_release(&run->forward);
	shutdown(run->channel, SHUT_WR);
	while (mt_channel_receive(run->channel, 0, &message) == 1)
		;
}

static void print_lines(struct run *run)
{
	for (uint32_t i = 0; i < run->n_lines; i++) {
		if (run->lines[i])
			mt_say("%s", run->lines[i]);
		free(run->lines[i]);
	}
	if (run->terminated)
		mt_say("buffers were full for longer than --pressure-timeout=%s: the command was"
		       " ended, and so was '%s'",
		       run->options.timeout, run->output_path);
	if (run->options.verbose && run->done)
		mt_say("artifact: %s", run->output_path);
}

static int exit_status(const struct run *run, int status)
{
	int own = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

	if (run->terminated)
		return MT_STATUS_LOST;
	return own == 0 && (!run->done || run->done_bits & ~MT_DONE_IN_USE) ? MT_STATUS_LOST : own;
}

/* Everything up to the command's first instruction; returns 0 or an exit status. */
static int start(struct run *run)
{
	mt_cleanup(mt_freep) char *interpreter = NULL;
	int r = mt_launch_look(run->options.command[0], &interpreter);

	/* An earlier artifact is to outlast a slip of the pen. */
	if (r < 0)
		return say_command(run, r, interpreter);
	if (say_place(run, mt_place_open(&run->place), NULL) < 0)
		return MT_STATUS_FAILED;
	r = mt_launch_fork(run->options.command, &run->user, &run->forward, &run->launch);
	if (r < 0) {
		mt_say("cannot start '%s': %s", run->options.command[0], strerror(-r));
		run->launch.tgid = 0;
		return MT_STATUS_FAILED;
	}
	if (open_output(run) < 0)
		return MT_STATUS_FAILED;
	if (start_collector(run) < 0 || fill_place(run) < 0)
		return MT_STATUS_FAILED;
	return start_command(run);
}

int main(int argc, char **argv)
{
	struct run run = { .channel = -1, .output = -1, .stats = -1 };
	int status, r;

	if (fill_standard_descriptors() < 0)
		return MT_STATUS_FAILED;
	r = mt_run_options_parse(argc, argv, &run.options);
	if (r)
		return r - 1;
	mt_launch_user(&run.user);
	if (open_stats(&run) < 0)
		return MT_STATUS_FAILED;
	r = mt_forward_init(&run.forward);
	if (r < 0) {
		mt_say("cannot take signals: %s", strerror(-r));
		return MT_STATUS_FAILED;
	}

	r = start(&run);
	if (r) {
		if (run.launch.tgid)
			mt_launch_cancel(&run.launch);
		dismiss_collector(&run);
		if (run.output >= 0 && run.output_created)
			unlink(run.output_path);
		if (run.stats_created)
			unlink(run.options.stats);
		mt_place_close(&run.place);
		return r;
	}
	status = wait_for_command(&run);
	if (run.terminated)
		mt_guard_sweep(&run.guard);
	end_collector(&run, status);
	if (run.done_bits & MT_DONE_IN_USE)
		mt_place_leave(&run.place);
	mt_guard_close(&run.guard);
	mt_place_close(&run.place);
	print_lines(&run);
	return exit_status(&run, status);
}
