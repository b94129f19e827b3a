/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json_writer.c - see json_writer.h
 */
#include "report/json_writer.h"

#include <assert.h>
#include <inttypes.h>

#include "report/printable.h"

void mt_json_init(struct mt_json *json, FILE *out)
{
	*json = (struct mt_json){ .out = out, .empty = 1 };
}

static void new_line(struct mt_json *json)
{
	if (json->flat_depth && json->depth >= json->flat_depth)
		return;
	fputc('\n', json->out);
	for (unsigned int i = 0; i < json->depth; i++)
		fputs("  ", json->out);
}

/* What comes between the last value and the next one, and the next one's key. */
static void begin_value(struct mt_json *json, const char *key)
{
	int flat = json->flat_depth && json->depth >= json->flat_depth;

	if (!json->empty)
		fputs(flat ? ", " : ",", json->out);
	json->empty = 0;
	if (json->depth)
		new_line(json);
	if (key)
		fprintf(json->out, "\"%s\": ", key);
}

void mt_json_open(struct mt_json *json, const char *key, char bracket)
{
	assert(json->depth < MT_JSON_DEPTH);
	begin_value(json, key);
	fputc(bracket, json->out);
	json->closing[json->depth++] = bracket == '{' ? '}' : ']';
	json->empty = 1;
}

void mt_json_open_flat(struct mt_json *json, const char *key, char bracket)
{
	mt_json_open(json, key, bracket);
	if (!json->flat_depth)
		json->flat_depth = json->depth;
}

void mt_json_close(struct mt_json *json)
{
	int flat = json->flat_depth && json->depth >= json->flat_depth;

	assert(json->depth);
	if (json->depth == json->flat_depth)
		json->flat_depth = 0;
	json->depth--;
	if (!json->empty && !flat)
		new_line(json);
	fputc(json->closing[json->depth], json->out);
	json->empty = 0;
	if (!json->depth)
		fputc('\n', json->out);
}

void mt_json_number(struct mt_json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void mt_json_bool(struct mt_json *json, const char *key, int value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->out);
}

void mt_json_null(struct mt_json *json, const char *key)
{
	begin_value(json, key);
	fputs("null", json->out);
}

/* Writes what the string begins with; returns how many bytes of it that was. */
static size_t write_character(FILE *out, const char *string)
{
	const unsigned char *s = (const unsigned char *)string;
	size_t len = mt_printable_utf8(string);

	if (!len) {
		fprintf(out, "\\\\x%02x", s[0]);
		return 1;
	}
	if (mt_printable_is_control(string))
		fprintf(out, "\\u%04x", s[len - 1]); /* C1's second byte is its number */
	else if (s[0] == '"' || s[0] == '\\')
		fprintf(out, "\\%c", s[0]);
	else
		fwrite(string, 1, len, out);
	return len;
}

void mt_json_string(struct mt_json *json, const char *key, const char *value)
{
	if (!value) {
		mt_json_null(json, key);
		return;
	}
	begin_value(json, key);
	fputc('"', json->out);
	while (*value)
		value += write_character(json->out, value);
	fputc('"', json->out);
}
