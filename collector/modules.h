/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * modules.h - the files with code of a run: their ids, and their unwind information
 *
 * A module is a path and a build-id.  Its file is looked for where the process sees it:
 * among what it had mapped when it shook hands (collector/mappings.h), as the process's own
 * mapping (which also finds what was deleted or replaced, and memfds), below its root, and by
 * the path alone; what is found counts only if its build-id is the one that the process has
 * in memory.  The vDSO's is our own (collector/vdso.h).
 *
 * Names of functions are looked up later, in the file at the module's path.  If that is not the
 * file that was found here, as one that was deleted, is in memory, or on a mount of the process's
 * own, its functions are put behind the module, once.
 *
 * Contract
 *   Input:     MT_RECORD_MODULE records, checked here; paths with any bytes.
 *   Ownership: mt_modules_new() gives an object for mt_modules_free(), which takes NULL;
 *              encode is borrowed, and is put each new module and its functions.
 *   Errors:    -EBADMSG: not a record, or more than there can be; -ENOMEM; what
 *              mt_encode_put() returns.  A file that is not found is no error: its code
 *              is in no CFI.
 *   Threads:   one.
 *   Bounds:    distinct modules of the run; of functions that are put, what they weigh in
 *              the artifact, MT_MODULES_SYMBOLS_WEIGHT in all.
 */
#include <stddef.h>
#include <stdint.h>

#include "collector/encode.h"
#include "collector/space.h"

/* A part of MT_READER_DEFINED_BYTES. */
#define MT_MODULES_SYMBOLS_WEIGHT (64u * 1024 * 1024)

struct mt_modules;

int mt_modules_new(struct mt_encode *encode, struct mt_modules **ret);
void mt_modules_free(struct mt_modules *modules);

/* Process tgid waits for an answer: its files are there now, and may not be later. */
int mt_modules_arrive(struct mt_modules *modules, uint32_t tgid);

/* Brings the space of process tgid, 0 if that is not known, up to date with a record; listing is
 * where a list of all its modules is made, which nobody else uses. */
int mt_modules_apply(struct mt_modules *modules, struct mt_space *space, struct mt_space *listing,
		     uint32_t tgid, const void *record, size_t len);

/* Modules whose file was not found, so far. */
uint64_t mt_modules_missing(const struct mt_modules *modules);
