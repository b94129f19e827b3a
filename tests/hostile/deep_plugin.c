/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * deep_plugin.c - plugins by relative paths, from directories as deep as a path can be long
 *
 * Together with the directory these have a byte less than a path can have, no byte less, and more.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/hostile/copy_file.h"
#include "tests/hostile/demand.h"

#define NAME "plugin.so"
#define STEP 100

/* With the byte that ends it. */
static size_t place_bytes(void)
{
	char place[PATH_MAX];
	long n = syscall(SYS_getcwd, place, sizeof(place));

	demand(n > 0);
	return (size_t)n;
}

static void go_down(size_t bytes)
{
	char name[NAME_MAX + 1] = "";

	memset(name, 'd', bytes);
	demand(!mkdir(name, 0700) || errno == EEXIST);
	demand(!chdir(name));
}

static void go_to(size_t bytes)
{
	size_t left;

	while ((left = bytes - place_bytes()) > NAME_MAX)
		go_down(STEP);
	demand(left > 1);
	go_down(left - 1);
}

static void take_from(const char *plugin)
{
	void *(*take)(void);
	void *object;

	demand(!unlink(NAME) || errno == ENOENT);
	copy_file(plugin, NAME);
	object = dlopen("./" NAME, RTLD_NOW);
	demand(object);
	take = (void *(*)(void))dlsym(object, "exchange_plugin_take");
	demand(take);
	free(take());
	demand(!dlclose(object));
}

int main(int argc, char **argv)
{
	const size_t depths[] = { PATH_MAX - sizeof(NAME) - 1, PATH_MAX - sizeof(NAME),
				  PATH_MAX - 1, PATH_MAX };

	demand(argc > 1);
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		go_to(depths[i]);
		take_from(argv[1]);
		if (i + 1 < sizeof(depths) / sizeof(depths[0]))
			demand(!chdir(".."));
	}
	return 0;
}
