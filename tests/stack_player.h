/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * stack_player.h - stacks that churn, for the tests of the codec
 *
 * A player has memory that stands for a thread's stack and a window in it, and moves both at
 * random the way that programs do: calls, returns, words that change here and there; and the
 * way they hardly ever do: windows of a few words, jumps by a whole budget, other bounds.
 *
 * The memory ends where an unreadable page begins, and nothing below a window's first page
 * is touched by a correct encoder.
 */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/reference.h"
#include "wire/stack_delta.h"

#define PLAYER_BYTES (4 * (size_t)MT_BUDGET_MAX_BYTES)

struct stack_player {
	uint64_t *words; /* PLAYER_BYTES, the last before an unreadable page */
	uint64_t state;	 /* of the random numbers */
	uint64_t budget_bytes;
	uint64_t bound; /* the stack's end */
	uint64_t start, end;
	uint32_t epoch;
};

static inline uint64_t player_random(struct stack_player *player)
{
	player->state ^= player->state << 13;
	player->state ^= player->state >> 7;
	player->state ^= player->state << 17;
	return player->state;
}

static inline void player_init(struct stack_player *player, uint64_t budget_bytes, uint64_t seed)
{
	char *at = mmap(NULL, PLAYER_BYTES + 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(at != MAP_FAILED);
	ck_assert_int_eq(mprotect(at + PLAYER_BYTES, 4096, PROT_NONE), 0);
	memset(player, 0, sizeof(*player));
	player->words = (uint64_t *)at;
	player->state = seed * 2 + 1;
	player->budget_bytes = budget_bytes;
	player->bound = (uint64_t)at + PLAYER_BYTES;
	player->start = player->bound - 64;
	for (size_t i = 0; i < PLAYER_BYTES / 8; i++)
		player->words[i] = player_random(player) % 4 ? 0 : player_random(player);
}

static inline void player_done(struct stack_player *player)
{
	munmap(player->words, PLAYER_BYTES + 4096);
}

static inline uint64_t *player_word(struct stack_player *player, uint64_t address)
{
	return player->words + (address - (uint64_t)player->words) / 8;
}

/* Where the window that starts at start ends: the budget, or the bound. */
static inline uint64_t player_window_end(const struct stack_player *player)
{
	uint64_t most = (player->start & ~(uint64_t)(MT_GROUP_BYTES - 1)) + player->budget_bytes;

	return most < player->bound ? most : player->bound;
}

static inline void player_move_start(struct stack_player *player)
{
	uint64_t lowest = (uint64_t)player->words + 4096;
	uint64_t highest = player->bound - 8;
	uint64_t step = 8 * (player_random(player) % 200);

	switch (player_random(player) % 16) {
	case 0: /* the same place modulo the budget */
		step = player->budget_bytes;
		__attribute__((fallthrough));
	case 1:
	case 2:
	case 3:
	case 4:
		player->start -= step;
		break;
	case 5:
	case 6:
	case 7:
		player->start += step;
		break;
	case 8: /* a window of a few words */
		player->start = player->bound - 8 - 8 * (player_random(player) % 8);
		break;
	case 9:
		player->start = lowest + player_random(player) % (highest - lowest);
		player->start &= ~7ULL;
		break;
	default: /* the same function again */
		break;
	}
	if (player->start < lowest || player->start > highest)
		player->start = highest - 8 * (player_random(player) % 512);
}

/* The next window: [start, end) and epoch, with other words in it than before. */
static inline void player_step(struct stack_player *player)
{
	uint64_t changes, most;

	if (player_random(player) % 64 == 0) {
		most = (uint64_t)player->words + PLAYER_BYTES;
		player->bound = most - 8 * (player_random(player) % 4096);
	}
	player_move_start(player);
	player->end = player_window_end(player);
	if (player_random(player) % 128 == 0)
		player->epoch++;

	changes = player_random(player) % 4 ? player_random(player) % 12 : 0;
	if (player_random(player) % 256 == 0)
		changes = 4096;
	while (changes--) {
		uint64_t at = player->start + player_random(player) % 4 * 512;
		uint64_t span = player->end - player->start;

		at = player->start + (at - player->start + player_random(player) % 512) % span;
		*player_word(player, at & ~7ULL) = player_random(player) % 3 ? player_random(player)
									     : 0;
	}
}

/* Whether the words of [start, end) are those of memory; words[(A / 8) & mask] is A's. */
static inline void player_check_window(struct stack_player *player, uint64_t start, uint64_t end,
				       const uint64_t *words, uint64_t mask)
{
	ck_assert_uint_eq(start, player->start);
	ck_assert_uint_eq(end, player->end);
	for (uint64_t at = start; at < end; at += 8)
		ck_assert_uint_eq(words[at / 8 & mask], *player_word(player, at));
}
