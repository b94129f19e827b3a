/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * forward.c - see forward.h for the contract
 *
 * Invariants
 *   - The kernel's own SIGXFSZ is not forwarded, as no signal of the kernel is: a limit that
 *     is meant for the command gives our writes an error.
 *   - The terminal's SIGTSTP stops us by way of the command, if it stops for it: what is on the
 *     terminal can be erased before (collector/status_line.h).
 *   - All signals that are forwarded and SIGCHLD are blocked and have their default
 *     disposition here, whatever was inherited: one that is ignored would not be queued.
 */
#include "collector/forward.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "collector/proc_state.h"

/*
 * What somebody may send: but for SIGCHLD, and what comes of our own faults and of our own use of
 * the terminal.  Of the real-time signals the C library has some for itself.
 */
static bool is_forwarded(int signo)
{
	switch (signo) {
	case SIGKILL:
	case SIGSTOP:
	case SIGCHLD:
	case SIGILL:
	case SIGTRAP:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGSYS:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return signo < __SIGRTMIN || signo >= SIGRTMIN;
	}
}

static void take(struct mt_forward *f, sigset_t *blocked, int signo)
{
	struct sigaction old, dfl = { .sa_handler = SIG_DFL };

	sigaddset(blocked, signo);
	if (sigaction(signo, &dfl, &old) == 0 && old.sa_handler == SIG_IGN)
		sigaddset(&f->ignored, signo);
}

int mt_forward_init(struct mt_forward *f)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigemptyset(&f->ignored);
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (is_forwarded(signo))
			take(f, &blocked, signo);
	take(f, &blocked, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &blocked, &f->mask) < 0)
		return mt_neg_errno();
	f->fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	return f->fd < 0 ? mt_neg_errno() : 0;
}

void mt_forward_restore(const struct mt_forward *f)
{
	const struct sigaction ign = { .sa_handler = SIG_IGN };

	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (sigismember(&f->ignored, signo) == 1)
			sigaction(signo, &ign, NULL);
	sigprocmask(SIG_SETMASK, &f->mask, NULL);
}

/*
 * The end of a terminal: SIGHUP, and SIGCONT for who is stopped, to the session's leader alone.
 * Where that is us, it would have been the command.
 */
static bool is_hangup(const struct signalfd_siginfo *info)
{
	return info->ssi_code == SI_KERNEL &&
	       (info->ssi_signo == SIGHUP || info->ssi_signo == SIGCONT) && getsid(0) == getpid();
}

/* Whether it is for the command that has not got it: from a process, rather than from the terminal
 * or a timer of the kernel. */
static bool is_for_command(const struct mt_forward *f, const struct signalfd_siginfo *info)
{
	if (f->waker && info->ssi_pid == (uint32_t)f->waker && info->ssi_signo == SIGCONT)
		return false;
	return is_hangup(info) || info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE ||
	       info->ssi_code == SI_TKILL;
}

/* With the value that it was sent with, if it was sent with one. */
static void pass_on(pid_t tgid, const struct signalfd_siginfo *info)
{
	const union sigval value = { .sival_ptr = (void *)(uintptr_t)info->ssi_ptr };
	int signo = (int)info->ssi_signo;

	if (info->ssi_code != SI_QUEUE || sigqueue(tgid, signo, value) < 0)
		kill(tgid, signo);
}

/*
 * Whether the command is stopped and stays so, and not by a pause of ours: one that was on when
 * we looked, or was meanwhile, tells us what it has left (mt_forward_look()).  Where one
 * SIGCONT continues the whole group, we may run before it has reached the command.
 */
static bool stays_stopped(const struct mt_forward *f, pid_t tgid)
{
	const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };
	uint32_t turn = f->turn ? __atomic_load_n(f->turn, __ATOMIC_SEQ_CST) : 0;

	if (turn & 1)
		return false;
	nanosleep(&moment, NULL);
	return mt_proc_state((uint32_t)tgid) == 'T' &&
	       (!f->turn || __atomic_load_n(f->turn, __ATOMIC_SEQ_CST) == turn);
}

void mt_forward_look(const struct mt_forward *f, pid_t tgid)
{
	if (!stays_stopped(f, tgid))
		return;
	if (f->on_sleep)
		f->on_sleep(f->ctx, true);
	raise(SIGSTOP);
	if (f->on_sleep)
		f->on_sleep(f->ctx, false);
}

static bool reap(const struct mt_forward *f, pid_t tgid, int *ret_status)
{
	pid_t r;
	int status;

	while ((r = waitpid(tgid, &status, WNOHANG | WUNTRACED)) == tgid) {
		if (!WIFSTOPPED(status)) {
			*ret_status = status;
			return true;
		}
		mt_forward_look(f, tgid);
	}
	return false;
}

/*
 * Orphans of the command are our children where we are the first process of a PID namespace, as
 * in a container: nobody else takes them away.  The collector's status is kept for who asks for it.
 */
static void reap_orphans(struct mt_forward *f, pid_t tgid)
{
	siginfo_t info = { 0 };

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid) {
		bool ours = f->waker && info.si_pid == f->waker && !f->waker_ended;

		if (info.si_pid == tgid)
			return;
		/* Left there, it would be the first that is found, and hide all others. */
		waitpid(info.si_pid, ours ? &f->waker_status : NULL, __WALL);
		f->waker_ended |= ours;
		info.si_pid = 0;
	}
}

bool mt_forward_handle(struct mt_forward *f, pid_t tgid, int *ret_status)
{
	struct signalfd_siginfo info;

	while (read(f->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			if (reap(f, tgid, ret_status))
				return true;
			reap_orphans(f, tgid);
		} else if (is_for_command(f, &info)) {
			pass_on(tgid, &info);
		}
	}
	return false;
}

void mt_forward_release(struct mt_forward *f)
{
	struct signalfd_siginfo info;

	while (read(f->fd, &info, sizeof(info)) == sizeof(info))
		;
	mt_forward_restore(f);
}
