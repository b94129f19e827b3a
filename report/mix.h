/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * mix.h - the hash of the report's tables: a number to 64 well mixed bits
 *
 * The seed differs from run to run of the report: whoever writes an artifact can not
 * choose addresses that all fall into one place.
 */
#include <stdint.h>
#include <sys/random.h>

static inline uint64_t mt_mix(uint64_t x, uint64_t seed)
{
	x ^= seed;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

static inline uint64_t mt_mix_seed(void)
{
	uint64_t seed = 0;

	/* Without random numbers the tables still work. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = 0x9e3779b97f4a7c15ULL;
	return seed;
}
