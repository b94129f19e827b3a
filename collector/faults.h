/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * faults.h - stack records lost, repeated, swapped or damaged on purpose, on their way in
 *
 * For tests of the recovery (collector/stacks.h), by an option for debugging: what is said to
 * happen to a record happens between its ring and mt_stacks_push().
 *
 * Contract
 *   Input:     a text, KIND:N for the N-th stack record of the run, counted from 1, KIND/N for
 *              every N-th, several with commas between.  Kinds are
 *                drop          it never comes
 *                duplicate     it comes twice
 *                swap          it comes after the next of its slot
 *                corrupt       a bit of the first half of a word behind its head is turned;
 *                              of the head, where that has a second mask, or is all
 *                corrupt-head  a bit of its head is turned
 *              Of another kind, slow-pass:MS: so many milliseconds go by in each pass over the
 *              rings.
 *   Ownership: mt_faults_new() gives an object for mt_faults_free(), which takes NULL.
 *   Errors:    -EINVAL: not such a text; problem, with room for MT_FAULTS_PROBLEM, then says
 *              what is wrong.  -ENOMEM.  Of mt_faults_push(): what push() returned; after
 *              -EAGAIN the same record is expected again, as if it had not come.
 *   Threads:   one.
 *   Bounds:    MT_FAULTS_MAX faults; one record that is to be swapped waits at a time, others
 *              that should be meanwhile come in their place.
 */
#include <stddef.h>
#include <stdint.h>

#define MT_FAULTS_MAX 16
#define MT_FAULTS_PROBLEM 128

enum mt_fault {
	MT_FAULT_DROP,
	MT_FAULT_DUPLICATE,
	MT_FAULT_SWAP,
	MT_FAULT_CORRUPT,
	MT_FAULT_CORRUPT_HEAD,
	_MT_FAULT_MAX,
};

struct mt_faults;

typedef int (*mt_push_fn)(void *ctx, uint32_t slot, const void *record, size_t len);

int mt_faults_new(const char *text, char *problem, struct mt_faults **ret);
void mt_faults_free(struct mt_faults *faults);

/* A record on its way to push(ctx, slot, ...), whatever it is. */
int mt_faults_push(struct mt_faults *faults, uint32_t slot, const void *record, size_t len,
		   mt_push_fn push, void *ctx);

/* How often it was done. */
uint64_t mt_faults_done(const struct mt_faults *faults, enum mt_fault fault);

/* How much slower each pass is to be made. */
uint32_t mt_faults_pass_ms(const struct mt_faults *faults);

const char *mt_fault_name(enum mt_fault fault);

static inline void mt_faults_freep(struct mt_faults **faults)
{
	mt_faults_free(*faults);
}
