/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * loader_held_plugin.c - waits for a thread of the program while the loader loads it, and
 * again while it unloads it
 */
#include <dlfcn.h>

static void wait_for_thread(void)
{
	void (*wait)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "loader_held_wait_for_thread");

	if (wait)
		wait();
}

__attribute__((constructor)) static void start(void)
{
	wait_for_thread();
}

__attribute__((destructor)) static void end(void)
{
	wait_for_thread();
}
