/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_unpack.c - artifact/unpack.c against msgpack-c, and against every lie about a length
 */
#include <check.h>
#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "artifact/unpack.h"

/* A copy of the bytes that ends where an unreadable page begins. */
static struct mt_unpack at_page_end(const void *bytes, size_t len)
{
	static uint8_t *map;
	size_t size = 1 << 24;

	if (!map) {
		map = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		ck_assert_ptr_ne(map, MAP_FAILED);
		ck_assert_int_eq(mprotect(map + size, 4096, PROT_NONE), 0);
	}
	ck_assert_uint_le(len, size);
	memcpy(map + size - len, bytes, len);
	return (struct mt_unpack){ map + size - len, map + size };
}

START_TEST(integers_of_every_width)
{
	for (int shift = 0; shift < 64; shift++) {
		for (int64_t add = -1; add <= 1; add++) {
			uint64_t value = (1ULL << shift) + (uint64_t)add, ret;
			msgpack_sbuffer buffer;
			msgpack_packer packer;
			struct mt_unpack at;
			int32_t i32;
			uint32_t u32;

			msgpack_sbuffer_init(&buffer);
			msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
			msgpack_pack_uint64(&packer, value);
			msgpack_pack_int64(&packer, 0 - (int64_t)(value >> 1) - 1);
			at = at_page_end(buffer.data, buffer.size);
			ck_assert_int_eq(mt_unpack_u32(&at, &u32),
					 value <= UINT32_MAX ? 0 : -EBADMSG);
			at = at_page_end(buffer.data, buffer.size);
			ck_assert_int_eq(mt_unpack_i32(&at, &i32),
					 value <= INT32_MAX ? 0 : -EBADMSG);
			at = at_page_end(buffer.data, buffer.size);
			ck_assert_int_eq(mt_unpack_uint(&at, &ret), 0);
			ck_assert_uint_eq(ret, value);
			ck_assert_int_eq(mt_unpack_uint(&at, &ret), -EBADMSG);
			ck_assert_int_eq(mt_unpack_i32(&at, &i32),
					 value >> 1 <= INT32_MAX ? 0 : -EBADMSG);
			if (value >> 1 <= INT32_MAX) {
				ck_assert_int_eq(i32, 0 - (int64_t)(value >> 1) - 1);
				ck_assert_ptr_eq(at.pos, at.end);
			}
			msgpack_sbuffer_destroy(&buffer);
		}
	}
}
END_TEST

START_TEST(strings_of_every_width)
{
	static const size_t lens[] = { 0, 1, 31, 32, 255, 256, 65535, 65536, 1 << 20 };
	static char text[(1 << 20) + 1];

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		msgpack_sbuffer buffer;
		msgpack_packer packer;
		struct mt_unpack at;
		uint8_t *bytes;
		size_t len;
		char *ret;

		msgpack_sbuffer_init(&buffer);
		msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
		msgpack_pack_str_with_body(&packer, text, lens[i]);
		msgpack_pack_bin_with_body(&packer, text, lens[i]);
		msgpack_pack_int(&packer, 5);
		at = at_page_end(buffer.data, buffer.size);
		ck_assert_int_eq(mt_unpack_string(&at, &ret), 0);
		ck_assert_uint_eq(strlen(ret), lens[i]);
		ck_assert_int_eq(strncmp(ret, text, lens[i]), 0);
		ck_assert_int_eq(mt_unpack_bytes(&at, &bytes, &len), 0);
		ck_assert_uint_eq(len, lens[i]);
		ck_assert_int_eq(memcmp(bytes, text, len), 0);
		ck_assert_uint_eq(*at.pos, 5);
		msgpack_sbuffer_destroy(&buffer);
	}
}
END_TEST

START_TEST(a_string_has_no_nul)
{
	struct mt_unpack at = at_page_end("\xa3\x61\0\x62", 4);
	uint8_t *start = at.pos;
	char *ret;

	ck_assert_int_eq(mt_unpack_string(&at, &ret), -EBADMSG);
	ck_assert_ptr_eq(at.pos, start);
	ck_assert_int_eq(memcmp(start, "\xa3\x61\0\x62", 4), 0);
}
END_TEST

static const struct {
	const char *bytes;
	size_t len;
} lies[] = {
#define LIE(bytes)                       \
	{                                \
		bytes, sizeof(bytes) - 1 \
	}
	LIE(""),
	LIE("\xc1"),
	LIE("\xdd\xff\xff\xff\xff"),
	LIE("\xdd\xff\xff\xff\xff\xc0\xc0\xc0"),
	LIE("\xdf\xff\xff\xff\xff\xc0\xc0"),
	LIE("\xdf\x80\x00\x00\x00\xc0\xc0"),
	LIE("\xdb\xff\xff\xff\xff\x61\x62\x63"),
	LIE("\xc6\xff\xff\xff\xff\x61\x62\x63"),
	LIE("\xc9\xff\xff\xff\xff\x05\x61\x62\x63"),
	LIE("\xc9\xff\xff\xff\xff"),
	LIE("\xd9\x02\x61"),
	LIE("\xda\x00"),
	LIE("\xcf\x00\x00\x00\x00\x00\x00\x00"),
	LIE("\xcb\x00\x00\x00\x00\x00\x00\x00"),
	LIE("\xd8\x05\x30\x31\x32\x33\x34\x35\x36\x37\x38\x39\x61\x62\x63\x64\x65"),
	LIE("\xc7\x01\x05"),
	LIE("\x91"),
	LIE("\x82\x01\x02\x03"),
	LIE("\x92\x91\x91\x91\x91\x01"),
	LIE("\xa5\x61\x62\x63\x64"),
};

START_TEST(lies_about_lengths)
{
	struct mt_unpack at = at_page_end(lies[_i].bytes, lies[_i].len);
	struct mt_unpack before = at;
	uint64_t u64;
	int32_t i32;
	uint8_t *bytes;
	size_t len;
	char *string;

	ck_assert_int_eq(mt_unpack_skip(&at), -EBADMSG);
	ck_assert_int_eq(mt_unpack_uint(&at, &u64), -EBADMSG);
	ck_assert_int_eq(mt_unpack_i32(&at, &i32), -EBADMSG);
	ck_assert_int_eq(mt_unpack_bytes(&at, &bytes, &len), -EBADMSG);
	ck_assert_int_eq(mt_unpack_string(&at, &string), -EBADMSG);
	ck_assert_ptr_eq(at.pos, before.pos);
}
END_TEST

START_TEST(skips_what_msgpack_c_packs)
{
	msgpack_sbuffer buffer;
	msgpack_packer packer;
	struct mt_unpack at;

	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
	msgpack_pack_array(&packer, 70000);
	for (int i = 0; i < 10000; i++) {
		msgpack_pack_map(&packer, 20);
		for (int j = 0; j < 20; j++) {
			msgpack_pack_int64(&packer, (int64_t)j << 3 * j);
			msgpack_pack_double(&packer, j);
		}
		msgpack_pack_nil(&packer);
		msgpack_pack_true(&packer);
		msgpack_pack_float(&packer, 1);
		msgpack_pack_ext_with_body(&packer, "0123456789abcdef", (size_t)1 << i % 5, 3);
		msgpack_pack_ext_with_body(&packer, "0123456789abcdef", 15, -3);
		msgpack_pack_str_with_body(&packer, "0123456789abcdef", (size_t)i % 16);
	}
	at = at_page_end(buffer.data, buffer.size);
	ck_assert_int_eq(mt_unpack_skip(&at), 0);
	ck_assert_ptr_eq(at.pos, at.end);
	msgpack_sbuffer_destroy(&buffer);
}
END_TEST

START_TEST(depth_is_no_matter)
{
	size_t len = 8000000;
	char *bytes = malloc(len);
	struct mt_unpack at;

	ck_assert_ptr_nonnull(bytes);
	memset(bytes, 0x91, len);
	at = at_page_end(bytes, len);
	ck_assert_int_eq(mt_unpack_skip(&at), -EBADMSG);
	bytes[len - 1] = 0x01;
	at = at_page_end(bytes, len);
	ck_assert_int_eq(mt_unpack_skip(&at), 0);
	ck_assert_ptr_eq(at.pos, at.end);
	free(bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unpack");
	TCase *tcase = tcase_create("unpack");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, integers_of_every_width);
	tcase_add_test(tcase, strings_of_every_width);
	tcase_add_test(tcase, a_string_has_no_nul);
	tcase_add_loop_test(tcase, lies_about_lengths, 0, sizeof(lies) / sizeof(lies[0]));
	tcase_add_test(tcase, skips_what_msgpack_c_packs);
	tcase_add_test(tcase, depth_is_no_matter);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
