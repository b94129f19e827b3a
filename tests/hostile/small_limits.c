/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * small_limits.c - sets a small limit of a resource, starts itself anew under it, and does
 * what it could do without a profiler (small_limits RESOURCE)
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures/ledger.h"

#define BLOCK_BYTES 30641
#define THREAD_BYTES 30643
#define BIG_BYTES (16 << 20)
#define RESIDENT_KIB (200 << 10)
/* More than a process has slots for from its start. */
#define THREADS 20

LEDGER_SITE static void take_limited(void)
{
	for (int i = 0; i < 200; i++) {
		free(memset(ledger_block(malloc(BLOCK_BYTES)), 1, BLOCK_BYTES));
		ledger_took(__func__, "main", BLOCK_BYTES, 1);
		ledger_gave(BLOCK_BYTES, 1);
	}
}

static int take_big(void)
{
	void *block = malloc(BIG_BYTES);

	if (!block)
		return 4;
	free(block);
	ledger_took(NULL, NULL, BIG_BYTES, 1);
	ledger_gave(BIG_BYTES, 1);
	return 0;
}

/* As many descriptors as there were, and what is done with none left. */
static int use_descriptors(void)
{
	int opened = 0, last = -1, fd;

	for (; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0; last = fd)
		opened++;
	if (last != 15)
		return 5;
	printf("descriptors %d\n", opened);
	fflush(stdout);
	take_limited();
	return 0;
}

/* getrusage() would tell of what was before exec(). */
static int measure(void)
{
	char text[64] = "";
	long resident_kib;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || !strchr(text, ' '))
		return 3;
	close(fd);
	resident_kib = strtol(strchr(text, ' '), NULL, 10) * 4;
	if (resident_kib > 0 && resident_kib < RESIDENT_KIB)
		return 0;
	fprintf(stderr, "%ld KiB resident\n", resident_kib);
	return 6;
}

/* A child may be refused, but not because of a thread that is not the program's. */
static int have_child(void)
{
	int status = 0;
	pid_t child = fork();

	if (child < 0)
		return 0;
	if (!child) {
		take_limited();
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && !status ? 0 : 7;
}

static pthread_barrier_t alive;

LEDGER_SITE static void *take_in_thread(void *unused)
{
	free(ledger_block(malloc(THREAD_BYTES)));
	ledger_took(__func__, LEDGER_END, THREAD_BYTES, 1);
	ledger_gave(THREAD_BYTES, 1);
	pthread_barrier_wait(&alive);
	return unused;
}

/* Without descriptors but for those that are open, though more would be allowed. */
static int have_threads(void)
{
	struct rlimit limit;
	pthread_t threads[THREADS];

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 8;
	limit.rlim_cur = STDERR_FILENO + 1;
	if (setrlimit(RLIMIT_NOFILE, &limit) || pthread_barrier_init(&alive, NULL, THREADS))
		return 8;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, take_in_thread, NULL))
			return 8;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int nothing_more(void)
{
	return 0;
}

static const struct {
	const char *name;
	int resource;
	rlim_t value;
	int (*then)(void);
} limits[] = {
	{ "descriptors", RLIMIT_NOFILE, 16, use_descriptors },
	{ "hidden", RLIMIT_NOFILE, 12, have_threads },
	/* The loader wants one besides the standard streams. */
	{ "fewest", RLIMIT_NOFILE, 5, have_threads },
	{ "space", RLIMIT_AS, 40 << 20, take_big },
	{ "data", RLIMIT_DATA, 24 << 20, take_big },
	{ "file", RLIMIT_FSIZE, 0, nothing_more },
	{ "processes", RLIMIT_NPROC, 1, have_child },
	{ "locked", RLIMIT_MEMLOCK, 0, nothing_more },
	{ "stack", RLIMIT_STACK, 64 << 10, nothing_more },
	{ "signals", RLIMIT_SIGPENDING, 0, nothing_more },
};

/* All descriptors that there may be. */
static int raise_descriptors(char **argv)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 2;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 2;
	execl("/proc/self/exe", argv[0], "many", "limited", NULL);
	return 3;
}

int main(int argc, char **argv)
{
	int err = 2;

	if (argc == 2 && !strcmp(argv[1], "many"))
		return raise_descriptors(argv);
	if (argc == 3)
		take_limited();
	if (argc == 3 && !strcmp(argv[1], "many"))
		err = measure();
	for (size_t i = 0; argc > 1 && i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit = { limits[i].value, limits[i].value };

		if (strcmp(argv[1], limits[i].name))
			continue;
		if (argc == 2 && !setrlimit(limits[i].resource, &limit))
			execl("/proc/self/exe", argv[0], argv[1], "limited", NULL);
		err = argc == 3 ? limits[i].then() : 3;
	}
	if (!err)
		ledger_print();
	return err;
}
