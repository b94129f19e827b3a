/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * printable.c - see printable.h
 */
#include "report/printable.h"

/*
 * The second byte's range depends on the first: it excludes what has a shorter form,
 * surrogates, and what is beyond U+10FFFF.  A NUL is in no range, so that nothing behind
 * the string's end is read.
 */
size_t mt_printable_utf8(const char *string)
{
	const unsigned char *s = (const unsigned char *)string;
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (s[0] < 0x80)
		return s[0] ? 1 : 0;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		len = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		len = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return len;
}

int mt_printable_is_control(const char *string)
{
	const unsigned char *s = (const unsigned char *)string;

	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

void mt_printable_write(FILE *out, const char *string)
{
	while (*string) {
		size_t len = mt_printable_utf8(string);

		if (len && !mt_printable_is_control(string)) {
			fwrite(string, 1, len, out);
		} else {
			len = len ? len : 1;
			for (size_t i = 0; i < len; i++)
				fprintf(out, "\\x%02x", (unsigned char)string[i]);
		}
		string += len;
	}
}
