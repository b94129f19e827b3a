/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * fuzz.h - what a fuzz target has: for the engine, and for replay.c
 */
#include <stddef.h>
#include <stdint.h>

/* Returns 0; a defect is a crash. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Calls it with inputs that the target makes: good ones, and what is next to them. */
void fuzz_corpus(void);
