/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replay.c - a fuzz target without an engine: on the files named, or on its own corpus
 *
 * The bytes are in an allocation of their exact size, so that valgrind and the sanitizers
 * see a read past the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/fuzz/fuzz.h"

void fuzz_try(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	fuzz_must(copy != NULL);
	if (len)
		memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static int replay(const char *path)
{
	mt_cleanup(mt_fclosep) FILE *file = fopen(path, "rbe");
	mt_cleanup(mt_freep) uint8_t *bytes = NULL;
	long len;

	if (!file || fseek(file, 0, SEEK_END) || (len = ftell(file)) < 0) {
		perror(path);
		return 1;
	}
	rewind(file);
	bytes = malloc((size_t)len);
	if ((len && !bytes) || fread(bytes, 1, (size_t)len, file) != (size_t)len) {
		perror(path);
		return 1;
	}
	LLVMFuzzerTestOneInput(bytes, (size_t)len);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc == 1)
		fuzz_corpus();
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	return failed;
}
