/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_build_id.c - the build-id is found where its notes have it, and nowhere else
 *
 * Notes are in an allocation of their exact size.
 */
#include "base/build_id.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES 20

static const char id[] = "0123456789abcdefghijk";

struct notes {
	uint8_t bytes[256];
	size_t len;
};

static void put(struct notes *notes, const void *bytes, size_t len)
{
	memcpy(notes->bytes + notes->len, bytes, len);
	notes->len += len;
}

static void put_note(struct notes *notes, const char *name, uint32_t type, uint32_t desc_bytes,
		     size_t align)
{
	const struct mt_note head = { (uint32_t)strlen(name) + 1, desc_bytes, type };

	put(notes, &head, sizeof(head));
	put(notes, name, strlen(name) + 1);
	notes->len += -notes->len % align;
	put(notes, id, desc_bytes);
	notes->len += -notes->len % align;
}

/* Its place behind the notes' begin; -1: not found. */
static int find(const struct notes *notes, size_t len, uint64_t align, uint32_t *ret_bytes)
{
	uint8_t *copy = malloc(len ? len : 1);
	const uint8_t *found;
	int at;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, notes->bytes, len);
	found = mt_build_id_find(copy, len, align, MAX_BYTES, ret_bytes);
	at = found ? (int)(found - copy) : -1;
	free(copy);
	return at;
}

static const size_t aligns[] = { 4, 8 };

/* Behind notes whose name and content both have to be padded, or neither. */
START_TEST(found)
{
	size_t align = aligns[_i];
	struct notes notes = { .len = 0 };
	uint32_t bytes = 0;
	size_t before;

	put_note(&notes, "GNU", NT_GNU_ABI_TAG, 16, align);
	put_note(&notes, "a name", NT_GNU_BUILD_ID, 5, align);
	put_note(&notes, "GNU", NT_GNU_PROPERTY_TYPE_0, 13, align);
	before = notes.len;
	put_note(&notes, "GNU", NT_GNU_BUILD_ID, 20, align);
	ck_assert_int_eq(find(&notes, notes.len, align, &bytes), (int)before + 16);
	ck_assert_uint_eq(bytes, 20);
	/* What an object aligns by is one of two. */
	ck_assert_int_eq(find(&notes, notes.len, align == 8 ? 8 : 0, &bytes), (int)before + 16);
}
END_TEST

/* The padding behind the last note is not looked at, its content is. */
START_TEST(cut)
{
	size_t align = aligns[_i];
	struct notes notes = { .len = 0 };
	uint32_t bytes = 0;

	put_note(&notes, "GNU", NT_GNU_BUILD_ID, 13, align);
	for (size_t len = 0; len <= notes.len; len++)
		ck_assert_int_eq(find(&notes, len, align, &bytes), len < 16 + 13 ? -1 : 16);
	ck_assert_uint_eq(bytes, 13);
}
END_TEST

START_TEST(none)
{
	struct notes notes = { .len = 0 };
	uint32_t bytes = 77, huge = ~0U;

	put_note(&notes, "GNV", NT_GNU_BUILD_ID, 20, 4);
	put_note(&notes, "GNU", NT_GNU_ABI_TAG, 20, 4);
	put_note(&notes, "GNU", NT_GNU_BUILD_ID, 0, 4);
	put_note(&notes, "GNU", NT_GNU_BUILD_ID, MAX_BYTES + 1, 4);
	ck_assert_int_eq(find(&notes, notes.len, 4, &bytes), -1);
	for (size_t field = 0; field < 2; field++) {
		memcpy(notes.bytes + sizeof(huge) * field, &huge, sizeof(huge));
		ck_assert_int_eq(find(&notes, notes.len, 4, &bytes), -1);
	}
	ck_assert_uint_eq(bytes, 77);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("build_id");
	TCase *tcase = tcase_create("build_id");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, found, 0, sizeof(aligns) / sizeof(aligns[0]));
	tcase_add_loop_test(tcase, cut, 0, sizeof(aligns) / sizeof(aligns[0]));
	tcase_add_test(tcase, none);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
