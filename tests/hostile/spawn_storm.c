/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * spawn_storm.c - a hundred children by posix_spawn, of which some can not start; system and
 * popen; the parent has the descriptors and children that it had
 */
#include <dirent.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

#define PARENT_BYTES 20249
#define IMAGE_BYTES 20261
#define CHILDREN 100

LEDGER_SITE static void take_in_parent(void)
{
	free(ledger_block(malloc(PARENT_BYTES)));
	ledger_took(__func__, "main", PARENT_BYTES, 1);
	ledger_gave(PARENT_BYTES, 1);
}

LEDGER_SITE static void take_in_image(void)
{
	free(ledger_block(malloc(IMAGE_BYTES)));
}

static int descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	demand(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void spawn(char *self, int kind)
{
	char word[] = "image", *argv[] = { self, word, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int status, error;
	pid_t child;

	demand(!posix_spawnattr_init(&attributes));
	demand(!posix_spawnattr_setflags(&attributes, kind == 1	  ? POSIX_SPAWN_SETPGROUP
						      : kind == 2 ? POSIX_SPAWN_SETSIGMASK
								  : 0));
	demand(!posix_spawn_file_actions_init(&actions));
	demand(!posix_spawn_file_actions_addopen(&actions, 5, "/dev/null", 0, 0));
	error = posix_spawn(&child, kind == 3 ? "/no/such/program" : self, &actions, &attributes,
			    argv, environ);
	demand(!posix_spawn_file_actions_destroy(&actions));
	demand(!posix_spawnattr_destroy(&attributes));
	demand(error == (kind == 3 ? ENOENT : 0));
	if (!error) {
		demand(waitpid(child, &status, 0) == child && status == 0);
		ledger_took("take_in_image", "main", IMAGE_BYTES, 1);
		ledger_gave(IMAGE_BYTES, 1);
	}
}

int main(int argc, char **argv)
{
	char said[16] = "", self[4096];
	int before;
	FILE *pipe;

	(void)argv;
	if (argc > 1) {
		take_in_image();
		return 0;
	}
	demand(readlink("/proc/self/exe", memset(self, 0, sizeof(self)), sizeof(self) - 1) > 0);
	before = descriptors();
	for (int i = 0; i < CHILDREN; i++) {
		spawn(self, i % 4);
		take_in_parent();
	}
	demand(system("exit 5") == 5 << 8);
	pipe = popen("echo said", "r");
	demand(pipe && fgets(said, sizeof(said), pipe) && !strcmp(said, "said\n"));
	demand(!pclose(pipe));
	demand(descriptors() == before && waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	ledger_print();
	return 0;
}
