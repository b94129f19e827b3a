/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waits_undisturbed.c - calls that end with EINTR when anything at all happens to their
 * thread, while other threads allocate: none is interrupted, none ends early
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30471
#define WORKERS 2
#define ROUNDS 20000

static const struct timespec some_time = { .tv_nsec = 60 * 1000 * 1000 };

static int wait_nanosleep(void)
{
	return nanosleep(&some_time, NULL) ? errno : 0;
}

static int wait_poll(void)
{
	return poll(NULL, 0, 60) < 0 ? errno : 0;
}

static int wait_epoll(void)
{
	struct epoll_event event;
	int set = epoll_create1(EPOLL_CLOEXEC), err = 0;

	if (epoll_wait(set, &event, 1, 60) < 0)
		err = errno;
	close(set);
	return err;
}

/* EAGAIN when the time is over. */
static int wait_receive(void)
{
	struct timeval limit = { .tv_usec = 60 * 1000 };
	int pair[2], err;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
	    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return errno;
	err = recv(pair[0], &byte, 1, 0) < 0 ? errno : 0;
	close(pair[0]);
	close(pair[1]);
	return err == EAGAIN ? 0 : err;
}

/* As above. */
static int wait_semaphore(void)
{
	struct sembuf down = { .sem_op = -1 };
	int set = semget(IPC_PRIVATE, 1, 0600), err;

	if (set < 0)
		return errno == ENOSYS ? 0 : errno;
	err = semtimedop(set, &down, 1, &some_time) ? errno : 0;
	semctl(set, 0, IPC_RMID);
	return err == EAGAIN ? 0 : err;
}

static const struct {
	const char *name;
	int (*wait)(void);
} waits[] = {
	{ "nanosleep", wait_nanosleep },  { "poll", wait_poll },
	{ "epoll_wait", wait_epoll },	  { "recv with SO_RCVTIMEO", wait_receive },
	{ "semtimedop", wait_semaphore },
};

#define WAITS (sizeof(waits) / sizeof(waits[0]))

LEDGER_SITE static void take_many(void)
{
	for (int i = 0; i < ROUNDS; i++)
		free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(__func__, "work", BLOCK_BYTES, ROUNDS);
	ledger_gave(BLOCK_BYTES, ROUNDS);
}

static void *work(void *unused)
{
	take_many();
	return NULL;
}

static void *wait_for(void *row)
{
	size_t i = (size_t)row;

	/* One that has a slot, as threads have that allocated. */
	free(ledger_block(malloc(BLOCK_BYTES)));
	ledger_took(NULL, NULL, BLOCK_BYTES, 1);
	ledger_gave(BLOCK_BYTES, 1);
	return (void *)(long)waits[i].wait();
}

int main(void)
{
	pthread_t workers[WORKERS], waiters[WAITS];
	void *err;

	for (size_t i = 0; i < WAITS; i++)
		if (pthread_create(&waiters[i], NULL, wait_for, (void *)i))
			return 3;
	for (size_t i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, work, NULL))
			return 3;
	for (size_t i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	for (size_t i = 0; i < WAITS; i++) {
		pthread_join(waiters[i], &err);
		if (err) {
			fprintf(stderr, "%s: error %ld\n", waits[i].name, (long)err);
			return 4;
		}
	}
	ledger_print();
	return 0;
}
