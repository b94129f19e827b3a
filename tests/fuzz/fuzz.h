/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * fuzz.h - what a fuzz target has, and what its corpus is made with
 *
 * With an engine seeds.c is linked too, without one replay.c.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Returns 0; a defect is a crash. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Calls fuzz_try() with inputs that the target makes: good ones, and what is next to them. */
void fuzz_corpus(void);

/* replay.c: runs the target on a copy of exactly that size.  seeds.c: writes it to a file. */
void fuzz_try(const uint8_t *bytes, size_t len);

/* The input, every step-th of its truncations, and others at every step-th byte; bytes are
 * changed meanwhile. */
void fuzz_try_around(uint8_t *bytes, size_t len, size_t step);

/* Inputs with a few bytes changed, or with a piece put where another one was. */
void fuzz_try_mixed(const uint8_t *bytes, size_t len, unsigned int count);

uint64_t fuzz_random(uint64_t *state);

static inline void fuzz_must(int good)
{
	if (!good)
		abort();
}
