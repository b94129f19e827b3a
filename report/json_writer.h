/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * json_writer.h - JSON (RFC 8259) to a stream, member by member
 *
 * Contract
 *   Input:     strings of any bytes.  What is valid UTF-8 stays, with control characters as
 *              \u00NN; a byte that is not becomes the four characters \xNN (in JSON: a
 *              backslash that is escaped, x, two digits), so that the output is valid
 *              whatever the input.  Numbers are integers, written with all their digits.
 *              Keys are ours: plain ASCII.  key is NULL in an array and at the top.
 *   Errors:    the stream's: ferror().
 *   Bounds:    MT_JSON_DEPTH objects and arrays in one another.
 */
#include <stdint.h>
#include <stdio.h>

#define MT_JSON_DEPTH 16

struct mt_json {
	FILE *out;
	unsigned int depth;
	unsigned int flat_depth; /* what is in this depth or deeper is on one line; 0: nothing */
	int empty;		 /* nothing in what was opened last */
	char closing[MT_JSON_DEPTH];
};

void mt_json_init(struct mt_json *json, FILE *out);

/* bracket: '{' or '['. */
void mt_json_open(struct mt_json *json, const char *key, char bracket);
/* The same, all on one line. */
void mt_json_open_flat(struct mt_json *json, const char *key, char bracket);
void mt_json_close(struct mt_json *json);

void mt_json_number(struct mt_json *json, const char *key, uint64_t value);
void mt_json_bool(struct mt_json *json, const char *key, int value);
void mt_json_null(struct mt_json *json, const char *key);
/* NULL: null. */
void mt_json_string(struct mt_json *json, const char *key, const char *value);
