/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * launch.c - see launch.h for the contract
 *
 * Invariants
 *   - The child has its process id before anything else is decided: the artifact's name
 *     has it, and the kernel part must know it before it executes.
 *   - Both variables come through the gate, so that the child needs no more than its own
 *     memory once it is let go.
 */
#include "collector/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/place.h"
#include "wire/session.h"

struct gate_message {
	char shim[128];
	char run[MT_LAUNCH_RUN_BYTES];
};

static const int timer_kinds[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };

#define N_TIMERS (sizeof(timer_kinds) / sizeof(timer_kinds[0]))

/* What was ours by exec(), for the command, and what no fork's child has from its parent. */
struct bequest {
	struct itimerval timers[N_TIMERS];
	int death_signal; /* that comes when the parent ends; 0: none */
};

/* From here on no timer is ours. */
static void bequeath(struct bequest *ret)
{
	const struct itimerval none = { 0 };

	*ret = (struct bequest){ 0 };
	for (size_t i = 0; i < N_TIMERS; i++)
		setitimer(timer_kinds[i], &none, &ret->timers[i]);
	prctl(PR_GET_PDEATHSIG, &ret->death_signal);
}

/* What they send until there is a command waits for it: the signals are blocked. */
static void inherit_timers(const struct bequest *bequest)
{
	for (size_t i = 0; i < N_TIMERS; i++)
		setitimer(timer_kinds[i], &bequest->timers[i], NULL);
}

/* Last: the kernel forgets it where the user changes. */
static void inherit_death(const struct bequest *bequest)
{
	if (bequest->death_signal)
		prctl(PR_SET_PDEATHSIG, bequest->death_signal);
}

static bool parse_id(const char *name, unsigned long *ret)
{
	const char *text = secure_getenv(name);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoul(text, &end, 10);
	return !errno && !*end && *ret < UINT32_MAX; /* which would leave what is */
}

void mt_launch_user(struct mt_user *ret)
{
	unsigned long uid, gid;

	*ret = (struct mt_user){ 0 };
	if (geteuid() == 0 && parse_id("SUDO_UID", &uid) && parse_id("SUDO_GID", &gid) && uid)
		*ret = (struct mt_user){ .change = 1, .uid = (uid_t)uid, .gid = (gid_t)gid };
}

static int become(const struct mt_user *user)
{
	const struct passwd *entry;

	if (!user->change)
		return 0;
	entry = getpwuid(user->uid);
	if (entry ? initgroups(entry->pw_name, user->gid) : setgroups(1, &user->gid))
		return mt_neg_errno();
	if (setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0)
		return mt_neg_errno();
	if (entry &&
	    (setenv("HOME", entry->pw_dir, 1) < 0 || setenv("USER", entry->pw_name, 1) < 0 ||
	     setenv("LOGNAME", entry->pw_name, 1) < 0))
		return mt_neg_errno();
	return 0;
}

/* Whether the entry of LD_PRELOAD, len bytes, is a memtrack shim. */
static bool is_shim(const char *entry, size_t len)
{
	size_t n = strlen(MT_SHIM_NAME);

	return len >= n && !memcmp(entry + len - n, MT_SHIM_NAME, n) &&
	       (len == n || entry[len - n - 1] == '/');
}

/* LD_PRELOAD becomes first, and what it had of shims, or of others. */
static int set_preload(const char *first, bool keep_shims)
{
	mt_cleanup(mt_freep) char *value = NULL;
	const char *old = getenv("LD_PRELOAD");
	size_t room, used;

	if (!old)
		old = "";
	room = strlen(first) + 1 + strlen(old) + 1;
	value = malloc(room);
	if (!value)
		return -ENOMEM;
	used = (size_t)snprintf(value, room, "%s", first);
	while (*old) {
		size_t len = strcspn(old, ": ");

		if (len && is_shim(old, len) == keep_shims)
			used += (size_t)snprintf(value + used, room - used, ":%.*s", (int)len, old);
		old += len + (old[len] != '\0');
	}
	return setenv("LD_PRELOAD", value, 1) < 0 ? mt_neg_errno() : 0;
}

/* Where we have the C library from, that is where our other libraries are, too. */
static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const char name[] = "/libc.so.6";
	size_t len = strlen(info->dlpi_name);

	(void)size;
	if (len < sizeof(name) || strcmp(info->dlpi_name + len - (sizeof(name) - 1), name) != 0)
		return 0;
	*(const char **)arg = info->dlpi_name;
	return 1;
}

static int prefer_own_libraries(void)
{
	mt_cleanup(mt_freep) char *value = NULL;
	const char *old = getenv("LD_LIBRARY_PATH"), *own = NULL;

	if (!old || !*old || !dl_iterate_phdr(find_library, (void *)&own))
		return 0;
	if (asprintf(&value, "%.*s:%s", (int)(strrchr(own, '/') - own), own, old) < 0)
		return -ENOMEM;
	return setenv("LD_LIBRARY_PATH", value, 1) < 0 ? mt_neg_errno() : 0;
}

int mt_launch_own_libraries(void)
{
	int r = getenv("LD_PRELOAD") ? set_preload("", true) : 0;

	return r < 0 ? r : prefer_own_libraries();
}

/* The kernel goes no further from a script to its interpreter, which may be a script. */
#define SCRIPTS_MAX 4
/* Of a script the kernel reads as much. */
#define SCRIPT_HEAD_BYTES 256

static int look_at(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return mt_neg_errno();
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? mt_neg_errno() : 0;
}

/* The interpreter of a script; false: it is none, or nobody but the kernel can tell. */
static bool read_interpreter(const char *path, char ret[SCRIPT_HEAD_BYTES])
{
	mt_cleanup(mt_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[SCRIPT_HEAD_BYTES + 1];
	ssize_t n = fd < 0 ? -1 : read(fd, head, SCRIPT_HEAD_BYTES);
	const char *name;
	size_t len;

	if (n < 2 || memcmp(head, "#!", 2) != 0)
		return false;
	head[n] = '\0';
	name = head + 2 + strspn(head + 2, " \t");
	len = strcspn(name, " \t\n");
	if (!len || (!name[len] && n == SCRIPT_HEAD_BYTES))
		return false;
	memcpy(ret, name, len);
	ret[len] = '\0';
	return true;
}

/* The same of what the kernel executes in a script's place; lacking: of that, what can not be. */
static int look_at_all(const char *path, char **lacking)
{
	char interpreter[SCRIPT_HEAD_BYTES];
	int r = look_at(path);

	for (int i = 0; r == 0 && i < SCRIPTS_MAX && read_interpreter(path, interpreter); i++) {
		path = interpreter;
		r = look_at(path);
		if (r < 0 && !*lacking)
			*lacking = strdup(path);
	}
	return r;
}

int mt_launch_look(const char *name, char **lacking)
{
	const char *path = getenv("PATH");
	int found = -ENOENT;

	*lacking = NULL;
	if (!*name || strchr(name, '/'))
		return look_at_all(name, lacking);
	if (!path)
		path = MT_LAUNCH_PATH;
	for (;;) {
		size_t len = strcspn(path, ":");
		mt_cleanup(mt_freep) char *candidate = NULL;
		int r;

		/* None is the working directory. */
		if (asprintf(&candidate, "%.*s%s%s", (int)len, path, len ? "/" : "", name) < 0)
			return -ENOMEM;
		r = look_at_all(candidate, lacking);
		if (r == 0)
			return 0;
		/* What is refused in one place may be allowed in the next. */
		if (r == -EACCES)
			found = r;
		if (!path[len])
			return found;
		path += len + 1;
	}
}

__attribute__((noreturn)) static void child(char **command, const struct mt_user *user,
					    const struct mt_forward *forward,
					    const struct bequest *bequest, int gate, int report)
{
	struct gate_message message;
	int r;

	inherit_timers(bequest);
	if (read(gate, &message, sizeof(message)) != sizeof(message))
		_exit(125);
	r = set_preload(message.shim, false);
	if (r == 0 && setenv(MT_RUN_VARIABLE, message.run, 1) < 0)
		r = mt_neg_errno();
	if (r == 0)
		r = become(user);
	if (r == 0) {
		inherit_death(bequest);
		mt_forward_restore(forward);
		execvp(command[0], command);
		r = mt_neg_errno();
	}
	(void)!write(report, &r, sizeof(r));
	_exit(125);
}

int mt_launch_fork(char **command, const struct mt_user *user, const struct mt_forward *forward,
		   struct mt_launch *ret)
{
	mt_cleanup(mt_closep) int gate_in = -1;
	mt_cleanup(mt_closep) int gate_out = -1;
	mt_cleanup(mt_closep) int report_in = -1;
	mt_cleanup(mt_closep) int report_out = -1;
	struct bequest bequest;
	int fds[2];
	pid_t tgid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return mt_neg_errno();
	gate_in = fds[0];
	gate_out = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return mt_neg_errno();
	report_in = fds[0];
	report_out = fds[1];

	bequeath(&bequest);
	tgid = fork();
	if (tgid < 0)
		return mt_neg_errno();
	if (tgid == 0) {
		close(gate_out);
		close(report_in);
		child(command, user, forward, &bequest, gate_in, report_out);
	}
	*ret = (struct mt_launch){
		.tgid = tgid,
		.gate = mt_take_fd(&gate_out),
		.report = mt_take_fd(&report_in),
	};
	return 0;
}

int mt_launch_go(struct mt_launch *launch, const char *shim, const char *run)
{
	struct gate_message message = { 0 };
	ssize_t len;
	int r;

	if (snprintf(message.shim, sizeof(message.shim), "%s", shim) >= (int)sizeof(message.shim) ||
	    snprintf(message.run, sizeof(message.run), "%s", run) >= (int)sizeof(message.run))
		return -ENAMETOOLONG;
	/* One that was killed at the gate has ended as a command that was killed later. */
	if (write(launch->gate, &message, sizeof(message)) != sizeof(message) && errno != EPIPE)
		return mt_neg_errno();
	mt_closep(&launch->gate);
	launch->gate = -1;
	do
		len = read(launch->report, &r, sizeof(r));
	while (len < 0 && errno == EINTR);
	mt_closep(&launch->report);
	launch->report = -1;
	if (len == sizeof(r)) {
		waitpid(launch->tgid, NULL, 0);
		return r;
	}
	return 0;
}

void mt_launch_cancel(struct mt_launch *launch)
{
	mt_closep(&launch->gate);
	mt_closep(&launch->report);
	waitpid(launch->tgid, NULL, 0);
}
