/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * closed_streams.c - an image that begins without standard streams finds the lowest
 * descriptors free, and what it opens there goes to nobody else
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostile/demand.h"

#define BYTES 20297
#define ROUNDS 500

static int be_image(void)
{
	int pipe_ends[2];
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		void *volatile block = malloc(BYTES);

		if (!block)
			return 1;
		free(block);
	}
	if (fcntl(0, F_GETFD) != -1 || fcntl(1, F_GETFD) != -1 || fcntl(2, F_GETFD) != -1)
		return 2;
	if (pipe(pipe_ends) || pipe_ends[0] != 0 || pipe_ends[1] != 1)
		return 3;
	if (open("/dev/null", O_RDWR) != 2 || write(1, "x", 1) != 1)
		return 4;
	for (int i = 0; i < ROUNDS; i++)
		free(malloc((size_t)i * 100));
	if (read(0, &byte, 1) != 1 || byte != 'x' || fcntl(0, F_SETFL, O_NONBLOCK))
		return 5;
	return read(0, &byte, 1) == -1 && errno == EAGAIN ? 0 : 6;
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	if (argc > 1)
		return be_image();
	child = fork();
	demand(child >= 0);
	if (child == 0) {
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		execl("/proc/self/exe", argv[0], "image", NULL);
		_exit(127);
	}
	demand(waitpid(child, &status, 0) == child && WIFEXITED(status));
	dprintf(STDOUT_FILENO, "image: %d\n", WEXITSTATUS(status));
	return WEXITSTATUS(status);
}
