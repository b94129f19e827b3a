/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bpf_stats.c - a command, and run-time statistics of BPF programs as long as it runs
 *
 *   bpf_stats COMMAND [ARGUMENT...]
 *
 * The kernel keeps the statistics while a descriptor is open, which ends with this process:
 * no setting of the machine stays changed, however it ends.  The exit status is the
 * command's, 128 + n if signal n ended it, 125 if there are no statistics to be had.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

int main(int argc, char **argv)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	int status;
	pid_t child;

	if (fd < 0 || argc < 2) {
		fprintf(stderr, "bpf_stats: %s\n",
			argc < 2 ? "no command" : "cannot enable statistics of BPF programs");
		return 125;
	}
	child = fork();
	if (child == 0) {
		/* The descriptor is closed on execution. */
		execvp(argv[1], argv + 1);
		fprintf(stderr, "bpf_stats: cannot execute '%s'\n", argv[1]);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
