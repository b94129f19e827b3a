/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * printed.h - whether what a report printed is what a terminal, or a JSON reader, may get
 *
 * Contract
 *   Input:     len bytes and a NUL behind them.
 *   Errors:    false: there is a control character (but a newline), bytes that are not
 *              UTF-8, or no single JSON value.
 */
#include <stdbool.h>
#include <stddef.h>

bool printed_is_text(const char *text, size_t len);
bool printed_is_json(const char *text, size_t len);
