/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own_names.c - the executable has functions of its own under names that the C library has, too,
 * which mean something else: what is preloaded calls none of them
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define BYTES 20969
#define TAKEN 20
#define THREADS 12

static int calls;

/* Nobody here calls it. */
int count_call(void);
int count_call(void)
{
	calls++;
	return -1;
}

#define OWN(name) __asm__(#name) __attribute__((alias("count_call")))
int own_clock_gettime(void) OWN(clock_gettime);
int own_connect(void) OWN(connect);
int own_dl_iterate_phdr(void) OWN(dl_iterate_phdr);
int own_dladdr(void) OWN(dladdr);
int own_fcntl(void) OWN(fcntl);
int own_getauxval(void) OWN(getauxval);
int own_madvise(void) OWN(madvise);
int own_mprotect(void) OWN(mprotect);
int own_process_vm_readv(void) OWN(process_vm_readv);
int own_pthread_mutex_consistent(void) OWN(pthread_mutex_consistent);
int own_pthread_mutexattr_setrobust(void) OWN(pthread_mutexattr_setrobust);
int own_recvmsg(void) OWN(recvmsg);
int own_sendto(void) OWN(sendto);
int own_sigaltstack(void) OWN(sigaltstack);
int own_socket(void) OWN(socket);

static pthread_barrier_t all_there;

LEDGER_SITE static void take_own(void)
{
	for (int i = 0; i < TAKEN; i++)
		free(ledger_block(malloc(BYTES)));
	ledger_took(__func__, LEDGER_END, BYTES, TAKEN);
	ledger_gave(BYTES, TAKEN);
}

static void *work(void *unused)
{
	take_own();
	pthread_barrier_wait(&all_there);
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];
	int status;
	pid_t child;

	take_own();
	demand(!pthread_barrier_init(&all_there, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_create(&threads[i], NULL, work, NULL));
	for (int i = 0; i < THREADS; i++)
		demand(!pthread_join(threads[i], NULL));
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		take_own();
		_exit(calls);
	}
	demand(waitpid(child, &status, 0) == child && !status);
	demand(!calls);
	ledger_print();
	return 0;
}
