/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * static_tls_plugin.c - wants nearly all of the static thread storage that the C library
 * keeps for libraries that are loaded late
 */
#include <string.h>

#define TLS_BYTES 1200

static __thread char storage[TLS_BYTES] __attribute__((tls_model("initial-exec")));

int static_tls_plugin_use(int value)
{
	int before = storage[TLS_BYTES - 1];

	memset(storage, value, sizeof(storage));
	return before;
}
