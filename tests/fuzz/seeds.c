/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seeds.c - with an engine: a target's corpus as files, for the engine to begin with
 *
 * With FUZZ_SEEDS=FOLDER in the environment the target writes them, and ends.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char *folder;

/* Named by its content: what comes twice is one file. */
void fuzz_try(const uint8_t *bytes, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	char path[PATH_MAX];
	FILE *file;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	snprintf(path, sizeof(path), "%s/%016" PRIx64, folder, hash);
	file = fopen(path, "we");
	if (!file || fwrite(bytes, 1, len, file) != len || fclose(file)) {
		perror(path);
		exit(EXIT_FAILURE);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	folder = getenv("FUZZ_SEEDS");
	if (!folder)
		return 0;
	fuzz_corpus();
	exit(EXIT_SUCCESS);
}
