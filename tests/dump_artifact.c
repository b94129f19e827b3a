/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dump_artifact.c - an artifact on stdin as the text that make_artifact.c takes
 *
 * Exit status: 0 if it was complete and nothing was wrong with it; 1 with a line on stderr
 * if it was not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/artifact_text.h"

int main(void)
{
	struct mt_reader_result result;
	int r = mt_reader_read(STDIN_FILENO, &mt_artifact_text, stdout, &result);

	if (fflush(stdout))
		return 1;
	if (r == 0 && !result.problem[0])
		return 0;
	fprintf(stderr,
		"dump_artifact: %s at byte %" PRIu64 " of %" PRIu64 " (version %" PRIu32 ")\n",
		result.problem[0] ? result.problem : strerror(-r), result.good_bytes,
		result.file_bytes, result.version);
	return 1;
}
