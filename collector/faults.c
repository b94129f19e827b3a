/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * faults.c - see faults.h for the contract
 *
 * Invariants
 *   - A record is counted once, when it is taken: not when push() says -EAGAIN.
 *   - Records are only ever changed in a copy.
 */
#include "collector/faults.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/stack_record.h"

#define SLOW_PASS "slow-pass:"

struct rule {
	enum mt_fault fault;
	bool every;
	uint64_t n;
};

struct mt_faults {
	struct rule rules[MT_FAULTS_MAX];
	unsigned n_rules;
	uint32_t pass_ms;
	uint64_t records;
	uint64_t done[_MT_FAULT_MAX];
	/* The record that is to come after the next of its slot, or NULL. */
	char *held;
	size_t held_len;
	uint16_t held_slot;
};

static const char *const names[] = {
	[MT_FAULT_DROP] = "drop",
	[MT_FAULT_DUPLICATE] = "duplicate",
	[MT_FAULT_SWAP] = "swap",
	[MT_FAULT_CORRUPT] = "corrupt",
	[MT_FAULT_CORRUPT_HEAD] = "corrupt-head",
};

_Static_assert(sizeof(names) / sizeof(names[0]) == _MT_FAULT_MAX, "a fault without a name");

const char *mt_fault_name(enum mt_fault fault)
{
	return names[fault];
}

uint64_t mt_faults_done(const struct mt_faults *faults, enum mt_fault fault)
{
	return faults->done[fault];
}

uint32_t mt_faults_pass_ms(const struct mt_faults *faults)
{
	return faults->pass_ms;
}

void mt_faults_free(struct mt_faults *faults)
{
	if (!faults)
		return;
	free(faults->held);
	free(faults);
}

static int find_fault(const char *text, size_t len, enum mt_fault *ret)
{
	for (int i = 0; i < _MT_FAULT_MAX; i++) {
		if (strlen(names[i]) == len && !memcmp(names[i], text, len)) {
			*ret = (enum mt_fault)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* One KIND:N or KIND/N of len characters. */
static int parse_rule(const char *text, size_t len, char *problem, struct rule *ret)
{
	size_t kind = strcspn(text, ":/,"), digits;
	int shown = len < 40 ? (int)len : 40;

	if (kind >= len) {
		snprintf(problem, MT_FAULTS_PROBLEM, "'%.*s' is neither KIND:N nor KIND/N", shown,
			 text);
		return -EINVAL;
	}
	if (find_fault(text, kind, &ret->fault) < 0) {
		snprintf(problem, MT_FAULTS_PROBLEM,
			 "'%.*s': no such fault (drop, duplicate, swap, corrupt, corrupt-head)",
			 kind < 40 ? (int)kind : 40, text);
		return -EINVAL;
	}
	ret->every = text[kind] == '/';
	digits = strspn(text + kind + 1, "0123456789");
	ret->n = digits && digits < 19 ? strtoull(text + kind + 1, NULL, 10) : 0;
	if (kind + 1 + digits != len || !ret->n) {
		snprintf(problem, MT_FAULTS_PROBLEM, "'%.*s': N is a number from 1 on", shown,
			 text);
		return -EINVAL;
	}
	return 0;
}

/* One of records, or slow-pass:MS. */
static int add_rule(struct mt_faults *faults, const char *text, size_t len, char *problem)
{
	size_t digits;
	int r;

	if (strncmp(text, SLOW_PASS, sizeof(SLOW_PASS) - 1) == 0) {
		text += sizeof(SLOW_PASS) - 1;
		len -= sizeof(SLOW_PASS) - 1;
		digits = strspn(text, "0123456789");
		if (!digits || digits > 5 || digits != len) {
			snprintf(problem, MT_FAULTS_PROBLEM,
				 SLOW_PASS "MS: MS is a number of at most 5 digits");
			return -EINVAL;
		}
		faults->pass_ms = (uint32_t)strtoul(text, NULL, 10);
		return 0;
	}
	if (faults->n_rules == MT_FAULTS_MAX) {
		snprintf(problem, MT_FAULTS_PROBLEM, "more than %d faults", MT_FAULTS_MAX);
		return -EINVAL;
	}
	r = parse_rule(text, len, problem, &faults->rules[faults->n_rules]);
	if (r == 0)
		faults->n_rules++;
	return r;
}

int mt_faults_new(const char *text, char *problem, struct mt_faults **ret)
{
	mt_cleanup(mt_faults_freep) struct mt_faults *faults = calloc(1, sizeof(*faults));
	int r;

	if (!faults) {
		snprintf(problem, MT_FAULTS_PROBLEM, "no memory");
		return -ENOMEM;
	}
	for (;;) {
		size_t len = strcspn(text, ",");

		r = add_rule(faults, text, len, problem);
		if (r < 0)
			return r;
		if (!text[len])
			break;
		text += len + 1;
	}
	*ret = mt_take_ptr(faults);
	return 0;
}

/* Whether that is to be done to the n-th record. */
static bool is_due(const struct mt_faults *faults, enum mt_fault fault, uint64_t n)
{
	for (unsigned i = 0; i < faults->n_rules; i++) {
		const struct rule *rule = &faults->rules[i];

		if (rule->fault == fault && (rule->every ? n % rule->n == 0 : n == rule->n))
			return true;
	}
	return false;
}

/* Pushes the held record behind the one of its slot that was just pushed. */
static int push_held(struct mt_faults *faults, uint32_t slot, mt_push_fn push, void *ctx)
{
	mt_cleanup(mt_freep) char *held = mt_take_ptr(faults->held);
	int r = push(ctx, slot, held, faults->held_len);

	/* No room: then it is one that never comes. */
	return r == -EAGAIN ? 0 : r;
}

static int push_copy(struct mt_faults *faults, uint32_t slot, const void *record, size_t len,
		     size_t wrong_at, mt_push_fn push, void *ctx)
{
	mt_cleanup(mt_freep) char *copy = NULL;

	if (wrong_at >= len)
		return push(ctx, slot, record, len);
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, len);
	copy[wrong_at] = (char)(copy[wrong_at] ^ 1 << faults->records % 8);
	return push(ctx, slot, copy, len);
}

static int hold(struct mt_faults *faults, uint16_t slot, const void *record, size_t len)
{
	faults->held = malloc(len);
	if (!faults->held)
		return -ENOMEM;
	memcpy(faults->held, record, len);
	faults->held_len = len;
	faults->held_slot = slot;
	return 0;
}

/* Where the first half of a word that differs is, or the second mask of a head that has one;
 * or the check, if a short head is all there is. */
static size_t body_at(const struct mt_stack_record *head)
{
	size_t short_head = offsetof(struct mt_stack_record, mask[1]);

	return (size_t)head->len_words * 8 > short_head ? short_head
							: offsetof(struct mt_stack_record, check);
}

int mt_faults_push(struct mt_faults *faults, uint32_t slot, const void *record, size_t len,
		   mt_push_fn push, void *ctx)
{
	uint64_t n = faults->records + 1;
	struct mt_stack_record head = { 0 };
	enum mt_fault fault = 0;
	int r;

	memcpy(&head, record, sizeof(head) < len ? sizeof(head) : len);
	while (fault < _MT_FAULT_MAX && !is_due(faults, fault, n))
		fault++;
	switch (fault) {
	case MT_FAULT_DROP:
		r = 0;
		break;
	case MT_FAULT_DUPLICATE:
		r = push(ctx, slot, record, len);
		if (r == 0 && push(ctx, slot, record, len) == -ENOMEM)
			r = -ENOMEM;
		break;
	case MT_FAULT_SWAP:
		if (!faults->held) {
			r = hold(faults, head.slot, record, len);
			faults->done[fault] += r == 0;
			faults->records += r == 0;
			return r;
		}
		fault = _MT_FAULT_MAX;
		r = push(ctx, slot, record, len);
		break;
	case MT_FAULT_CORRUPT:
		r = push_copy(faults, slot, record, len, body_at(&head), push, ctx);
		break;
	case MT_FAULT_CORRUPT_HEAD:
		r = push_copy(faults, slot, record, len, n % offsetof(struct mt_stack_record, mask),
			      push, ctx);
		break;
	default:
		r = push(ctx, slot, record, len);
	}
	if (r < 0)
		return r;
	faults->records++;
	if (fault < _MT_FAULT_MAX)
		faults->done[fault]++;
	return faults->held && faults->held_slot == head.slot ? push_held(faults, slot, push, ctx)
							      : 0;
}
