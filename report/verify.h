/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * verify.h - the kept stacks of an artifact, hashed and unwound again
 *
 * Of each the digest is computed with libxxhash, as wire/digest.h defines it, and the chain
 * with the collector's unwinder, by the mappings that the process had then and the files of
 * its modules.  What differs from what the recording made of it is a fault of memtrack's, or
 * damage that somebody has sealed again.
 *
 * A module's file counts if its build-id is the recorded one; where none was recorded, the
 * path is believed.  The vDSO is that of the kernel that runs now.  A chain that comes
 * through a module whose file is not to be had is not compared.
 *
 * Contract
 *   Input:     any file; artifact/reader.h says what is checked.
 *   Ownership: fd and out stay the caller's.
 *   Errors:    as of mt_reader_read(), and ret->reader is set where it says so; -EPROTO:
 *              a stack is longer than the run's stacks are.  Stacks that do not agree are
 *              no error: they are counted, and the first MT_VERIFY_NAMED named on out.
 *   Bounds:    memory: what the artifact says of modules, nodes, threads and mappings, and
 *              the unwind information of the modules.  Stacks are looked at one by one.
 */
#include <stdint.h>
#include <stdio.h>

#include "artifact/reader.h"

#define MT_VERIFY_NAMED 10

struct mt_verified {
	uint64_t stacks;
	uint64_t hashes_right;
	uint64_t chains_equal;
	uint64_t chains_different;
	uint64_t not_checkable; /* chains */
	struct mt_reader_result reader;
};

/* Prints what does not agree and, if there are stacks, the counts. */
int mt_verify_stacks(int fd, FILE *out, struct mt_verified *ret);
