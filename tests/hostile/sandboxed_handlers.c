/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sandboxed_handlers.c - a coroutine allocates at stacks that are new, and so does a signal handler
 * that interrupts it, when a question for where their stacks are kills
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "fixtures/library_text.h"
#include "tests/hostile/demand.h"
#include "tests/hostile/filter.h"

#define STACK_BYTES (256 * 1024)
#define BLOCK_BYTES 353
#define SIGNALS 3000
#define SIGNAL_US 100
#define DEPTHS 20

static char coroutine_stack[STACK_BYTES], signal_stack[STACK_BYTES];
static volatile int n_signals;

static void take(void)
{
	free(ledger_block(malloc(BLOCK_BYTES)));
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	if (!library_text_was_interrupted(context))
		take();
	n_signals++;
}

/* Another stack for each number. */
static __attribute__((noinline)) void descend(int depth, unsigned number)
{
	volatile unsigned there[] = { number, number * 3 };

	if (depth)
		descend(depth - 1, there[0] / 2 + there[1]);
	else
		take();
	there[0] = there[1];
}

static void run(void)
{
	for (unsigned i = 0; n_signals < SIGNALS; i++)
		descend(i % DEPTHS, i);
	_exit(0);
}

static void shut_in(void)
{
	static struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sigaltstack, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	filter_by(rules, sizeof(rules) / sizeof(rules[0]));
}

int main(void)
{
	stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_ONSTACK | SA_SIGINFO };
	struct itimerval timer = { { 0, SIGNAL_US }, { 0, SIGNAL_US } };
	ucontext_t back, coroutine;

	demand(library_text_find());
	demand(!sigaltstack(&stack, NULL) && !sigaction(SIGALRM, &action, NULL));
	demand(!getcontext(&coroutine));
	coroutine.uc_stack.ss_sp = coroutine_stack;
	coroutine.uc_stack.ss_size = sizeof(coroutine_stack);
	makecontext(&coroutine, run, 0);
	shut_in();
	demand(!setitimer(ITIMER_REAL, &timer, NULL));
	swapcontext(&back, &coroutine);
	return 3;
}
