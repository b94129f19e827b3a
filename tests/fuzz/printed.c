/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * printed.c - see printed.h
 */
#include "tests/fuzz/printed.h"

#include <ctype.h>
#include <string.h>
#include <wchar.h>

#define DEPTH_MAX 64

/* Bytes of the character there, which is not a control character; 0: there is none. */
static size_t character(const unsigned char *s)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	unsigned long code = len == 1 ? s[0] : s[0] & (0x7fu >> len);

	static const unsigned long least[] = { 0, 0x20, 0xa0, 0x800, 0x10000 };

	if (s[0] > 0xf4 || (s[0] >= 0x80 && s[0] < 0xc2))
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[len] || code == 0x7f || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return len;
}

bool printed_is_text(const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		size_t n = *text == '\n' ? 1 : character((const unsigned char *)text);

		if (!n || n > (size_t)(end - text))
			return false;
		text += n;
	}
	return true;
}

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \n");
}

/* Each of these returns what is behind, or NULL. */
static const char *skip_string(const char *s)
{
	if (*s++ != '"')
		return NULL;
	while (*s != '"') {
		size_t n = character((const unsigned char *)s);

		if (!n)
			return NULL;
		if (*s != '\\') {
			s += n;
			continue;
		}
		if (s[1] == '"' || s[1] == '\\') {
			s += 2;
			continue;
		}
		if (s[1] != 'u' || strspn(s + 2, "0123456789abcdef") < 4)
			return NULL;
		s += 6;
	}
	return s + 1;
}

static const char *skip_scalar(const char *s)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(s, words[i], strlen(words[i])))
			return s + strlen(words[i]);
	if (*s == '"')
		return skip_string(s);
	s += *s == '-';
	if (!isdigit((unsigned char)*s) || (*s == '0' && isdigit((unsigned char)s[1])))
		return NULL;
	s += strspn(s, "0123456789");
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789");
	return s;
}

static const char *skip_value(const char *s, int depth)
{
	char closing = *s == '{' ? '}' : ']';
	bool more = true;

	if (depth == DEPTH_MAX)
		return NULL;
	if (*s != '{' && *s != '[')
		return skip_scalar(s);
	s = skip_space(s + 1);
	if (*s == closing)
		return s + 1;
	while (more) {
		if (closing == '}') {
			s = skip_string(s);
			if (!s || *s != ':')
				return NULL;
			s = skip_space(s + 1);
		}
		s = skip_value(s, depth + 1);
		if (!s)
			return NULL;
		s = skip_space(s);
		more = *s == ',';
		s = more ? skip_space(s + 1) : s;
	}
	return *s == closing ? s + 1 : NULL;
}

bool printed_is_json(const char *text, size_t len)
{
	const char *end = skip_value(skip_space(text), 0);

	return end && skip_space(end) == text + len;
}
