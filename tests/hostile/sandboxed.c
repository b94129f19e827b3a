/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sandboxed.c - gives up all system calls but a few, and then allocates, more than rings hold
 * (sandboxed strict|filter|thread|dispatch|dispatch_within|crowd|fork|later [PLUGIN])
 *
 * strict: SECCOMP_MODE_STRICT, which forbids all but read, write and exit, and takes the
 * time-stamp counter away.  filter: what malloc() itself may need is allowed as well; any
 * other call kills.  thread: the same, by a thread whose stack grows later.  dispatch: calls
 * are the program's to emulate, and it does not; dispatch_within: those of a range of code, which
 * is all.  crowd: sockets kill, and then there are more threads that allocate than had a place to
 * record it; what does not find one is lost.  fork: what no C library asks kills, and a child
 * allocates for the first time.
 *
 * With a plugin, strict and filter load it right before, and it uses its thread-local data for the
 * first time right after; later: the program only says that it may give something up, and loads
 * the plugin then.
 */
#include <dlfcn.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"
#include "tests/hostile/filter.h"

#define BLOCK_BYTES 317
#define DEEP_BYTES 331
#define PLUGIN_BYTES 347
#define PAIRS 30000
#define DEEP_PAIRS 1000
#define PLUGIN_PAIRS 100
#define CROWD 20
#define DEPTH 40
#define FRAME_BYTES 100

#define ALLOW(name)                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter rules[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(read),
	ALLOW(write),
	ALLOW(exit),
	ALLOW(exit_group),
	ALLOW(brk),
	ALLOW(mmap),
	ALLOW(munmap),
	ALLOW(mprotect),
	ALLOW(madvise),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

LEDGER_SITE static void take_sandboxed(size_t pairs, size_t bytes)
{
	for (size_t i = 0; i < pairs; i++)
		free(ledger_block(malloc(bytes)));
}

typedef void use_function(size_t pairs, size_t bytes, void *touch(void *block));

/* What a plugin has, or NULL where there is none. */
static use_function *load(const char *path)
{
	void *plugin = path ? dlopen(path, RTLD_NOW) : NULL;

	return plugin ? (use_function *)dlsym(plugin, "sandboxed_plugin_use") : NULL;
}

/* The thread's stack was never so deep before. */
LEDGER_SITE static void go_deep(int depth)
{
	volatile char frame[FRAME_BYTES];

	frame[0] = (char)depth;
	if (depth)
		go_deep(depth - 1);
	else
		take_sandboxed(DEEP_PAIRS, DEEP_BYTES);
	frame[1] = frame[0];
}

static void filter(void)
{
	filter_by(rules, sizeof(rules) / sizeof(rules[0]));
}

static struct sock_filter no_sockets[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_filter no_questions[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_get_robust_list, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void allocate_in_child(void)
{
	pid_t child;
	int status;

	filter_by(no_questions, sizeof(no_questions) / sizeof(no_questions[0]));
	child = fork();
	demand(child >= 0);
	if (!child) {
		take_sandboxed(PAIRS, BLOCK_BYTES);
		_exit(0);
	}
	demand(waitpid(child, &status, 0) == child && !status);
}

static pthread_barrier_t barrier;

static void *allocate_in_crowd(void *arg)
{
	take_sandboxed(1, BLOCK_BYTES);
	pthread_barrier_wait(&barrier);
	return arg;
}

static int crowd(void)
{
	pthread_t threads[CROWD];

	demand(!pthread_barrier_init(&barrier, NULL, CROWD));
	filter_by(no_sockets, sizeof(no_sockets) / sizeof(no_sockets[0]));
	for (int i = 0; i < CROWD; i++)
		demand(!pthread_create(&threads[i], NULL, allocate_in_crowd, NULL));
	for (int i = 0; i < CROWD; i++)
		demand(!pthread_join(threads[i], NULL));
	return 0;
}

#ifndef PR_SYS_DISPATCH_INCLUSIVE_ON
#define PR_SYS_DISPATCH_INCLUSIVE_ON 2 /* 6.17 */
#endif

static char dispatch;

static void fail(int number)
{
	(void)number;
	dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
	_exit(4);
}

/* Calls are the program's to emulate; kernels before 5.11 have that not. */
static void emulate(bool within)
{
	unsigned long mode = within ? PR_SYS_DISPATCH_INCLUSIVE_ON : PR_SYS_DISPATCH_ON;
	unsigned long bytes = within ? LONG_MAX : 0;
	struct sigaction action = { .sa_handler = fail };

	demand(!sigaction(SIGSYS, &action, NULL));
	if (!prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, 0, bytes, &dispatch))
		dispatch = SYSCALL_DISPATCH_FILTER_BLOCK;
}

static void *allocate_in_thread(void *arg)
{
	(void)arg;
	filter();
	take_sandboxed(PAIRS, BLOCK_BYTES);
	go_deep(DEPTH);
	syscall(SYS_exit_group, 0);
	return NULL;
}

/* Nothing can be printed once nothing is allowed: what will be done is said before. */
static void tell(const char *root, bool deep, bool plugged)
{
	ledger_took("take_sandboxed", root, BLOCK_BYTES, PAIRS);
	ledger_gave(BLOCK_BYTES, PAIRS);
	if (deep) {
		ledger_took("take_sandboxed", root, DEEP_BYTES, DEEP_PAIRS);
		ledger_gave(DEEP_BYTES, DEEP_PAIRS);
	}
	if (plugged) {
		ledger_took("take_in_plugin", root, PLUGIN_BYTES, PLUGIN_PAIRS);
		ledger_gave(PLUGIN_BYTES, PLUGIN_PAIRS);
	}
	ledger_print();
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : NULL;
	use_function *use;
	pthread_t thread;
	bool dispatches;

	/* malloc() asks for random numbers the first time. */
	free(ledger_block(malloc(1)));
	if (!strcmp(how, "thread")) {
		tell("allocate_in_thread", true, false);
		demand(!pthread_create(&thread, NULL, allocate_in_thread, NULL));
		pthread_join(thread, NULL);
		return 3;
	}
	if (!strcmp(how, "crowd"))
		return crowd();
	dispatches = !strncmp(how, "dispatch", strlen("dispatch"));
	tell("main", dispatches, path);
	if (!strcmp(how, "fork")) {
		allocate_in_child();
		return 0;
	}
	if (dispatches) {
		emulate(!strcmp(how, "dispatch_within"));
		take_sandboxed(PAIRS, BLOCK_BYTES);
		go_deep(DEPTH);
		dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
		return 0;
	}
	if (!strcmp(how, "later"))
		demand(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	use = load(path);
	demand(!path == !use);
	if (!strcmp(how, "filter"))
		filter();
	else if (!strcmp(how, "strict"))
		demand(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0));
	take_sandboxed(PAIRS, BLOCK_BYTES);
	if (use)
		use(PLUGIN_PAIRS, PLUGIN_BYTES, ledger_block);
	syscall(SYS_exit, 0);
	return 3;
}
