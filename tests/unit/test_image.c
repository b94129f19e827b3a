/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_image.c - collector/image.h on whole, cut and damaged files; collector/images.h
 */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "artifact/format.h"
#include "collector/images.h"
#include "tests/cfi_bytes.h"

static struct cfi_bytes eh_frame, debug_frame, compressed, file;
static uint64_t table[4];
static struct mt_image *image;

/* Functions at 0x1000 and 0x1100 in .eh_frame, at 0x1200 in .debug_frame. */
static void setup(void)
{
	size_t cie;

	eh_frame = (struct cfi_bytes){ .vaddr = ELF_EH_FRAME };
	cie = cfi_put_cie(&eh_frame, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	table[0] = 0x1000;
	table[1] = cfi_put_fde(&eh_frame, cie, 0x1b, 0x1000, 0x80, "\x41\x0e\x10", 3);
	table[2] = 0x1100;
	table[3] = cfi_put_fde(&eh_frame, cie, 0x1b, 0x1100, 0x80, "\x41\x0e\x18", 3);
	cfi_put(&eh_frame, 4, 0);
	debug_frame = (struct cfi_bytes){ .is_debug_frame = true };
	cie = cfi_put_cie(&debug_frame, "", 0, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&debug_frame, cie, 0, 0x1200, 0x80, "\x41\x0e\x20", 3);
	image = NULL;
}

static void teardown(void)
{
	mt_image_unref(image);
}

static void put_file(bool with_table, bool with_sections, const struct cfi_bytes *debug)
{
	struct elf_parts parts = {
		.eh_frame = &eh_frame,
		.debug_frame = debug,
		.table = with_table ? table : NULL,
		.table_len = with_table ? 2 : 0,
		.with_sections = with_sections,
		.compressed = debug == &compressed,
	};

	elf_put(&file, &parts);
}

static int open_memory(size_t len)
{
	mt_image_unref(image);
	image = NULL;
	return mt_image_new_memory(cfi_at_page_end(file.bytes, len), len, &image);
}

static int file_fd(size_t len)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, file.bytes, len), (ssize_t)len);
	return fd;
}

/* The CFA's offset from rsp at vaddr, or a negative errno. */
static int64_t cfa_at(uint64_t vaddr)
{
	struct mt_cfi_row row;
	int r = mt_cfi_find(&image->cfi, vaddr, &row);

	return r < 0 ? r : row.cfa.offset;
}

static void expect_rows(bool with_debug_frame)
{
	ck_assert_int_eq(cfa_at(0x1000), 8);
	ck_assert_int_eq(cfa_at(0x107f), 16);
	ck_assert_int_eq(cfa_at(0x1080), -ENOENT);
	ck_assert_int_eq(cfa_at(0x1101), 24);
	ck_assert_int_eq(cfa_at(0x1201), with_debug_frame ? 32 : -ENOENT);
}

START_TEST(whole_file)
{
	int fd;

	put_file(true, true, &debug_frame);
	ck_assert_int_eq(open_memory(file.len), 0);
	ck_assert_uint_eq(image->machine, EM_X86_64);
	ck_assert_uint_eq(image->build_id_bytes, 20);
	ck_assert_mem_eq(image->build_id, ELF_BUILD_ID, 20);
	ck_assert_uint_eq(image->cfi.table.len, 2);
	ck_assert_uint_eq(image->cfi.sections.got_vaddr, 0x5000);
	ck_assert(mt_image_is_code(image, ELF_TEXT));
	ck_assert(!mt_image_is_code(image, ELF_TEXT_END));
	ck_assert_uint_gt(image->bytes, eh_frame.len + debug_frame.len);
	expect_rows(true);

	mt_image_unref(image);
	image = NULL;
	fd = file_fd(file.len);
	ck_assert_int_eq(mt_image_new_fd(fd, &image), 0);
	/* What becomes of the file does not matter any more. */
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	close(fd);
	expect_rows(true);
}
END_TEST

START_TEST(with_less)
{
	put_file(false, true, &debug_frame);
	ck_assert_int_eq(open_memory(file.len), 0);
	ck_assert_uint_eq(image->cfi.table.len, 0);
	expect_rows(true);

	/* Without section headers .eh_frame is found through .eh_frame_hdr. */
	put_file(true, false, &debug_frame);
	ck_assert_int_eq(open_memory(file.len), 0);
	expect_rows(false);
	put_file(false, false, NULL);
	ck_assert_int_eq(open_memory(file.len), 0);
	expect_rows(false);
}
END_TEST

static void put_chdr(uint32_t type, uint64_t size)
{
	Elf64_Chdr chdr = { .ch_type = type, .ch_size = size, .ch_addralign = 8 };

	compressed.len = 0;
	cfi_put_bytes(&compressed, &chdr, sizeof(chdr));
}

static void put_zlib(uint64_t size)
{
	put_chdr(ELFCOMPRESS_ZLIB, size);
	cfi_put_zlib(&compressed, debug_frame.bytes, debug_frame.len);
}

static void put_zstd(uint64_t size)
{
	char out[1024];
	size_t len = ZSTD_compress(out, sizeof(out), debug_frame.bytes, debug_frame.len, 1);

	ck_assert(!ZSTD_isError(len));
	put_chdr(2, size);
	cfi_put_bytes(&compressed, out, len);
}

START_TEST(compressed_debug_frame)
{
	put_zlib(debug_frame.len);
	put_file(true, true, &compressed);
	ck_assert_int_eq(open_memory(file.len), 0);
	expect_rows(true);
	put_zstd(debug_frame.len);
	put_file(true, true, &compressed);
	ck_assert_int_eq(open_memory(file.len), 0);
	expect_rows(true);
}
END_TEST

START_TEST(damaged_compression)
{
	static const uint64_t sizes[] = { 0,	     1, 16, 0x1000, MT_IMAGE_SECTION_BYTES + 1ULL,
					  UINT64_MAX };

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (i % 2)
			put_zlib(sizes[i / 2]);
		else
			put_zstd(sizes[i / 2]);
		put_file(true, true, &compressed);
		ck_assert_int_eq(open_memory(file.len), 0);
		expect_rows(false);
	}
	put_chdr(7, 64);
	put_file(true, true, &compressed);
	ck_assert_int_eq(open_memory(file.len), 0);
	expect_rows(false);
	put_zlib(debug_frame.len);
	for (size_t len = 0; len < compressed.len; len++) {
		compressed.len = len;
		put_file(true, true, &compressed);
		ck_assert_int_eq(open_memory(file.len), 0);
		expect_rows(false);
		put_zlib(debug_frame.len);
	}
}
END_TEST

START_TEST(not_images)
{
	int fds[2];

	put_file(true, true, NULL);
	ck_assert_int_eq(open_memory(0), -EBADMSG);
	file.bytes[EI_CLASS] = ELFCLASS32;
	ck_assert_int_eq(open_memory(file.len), -EBADMSG);
	file.bytes[EI_CLASS] = ELFCLASS64;
	file.bytes[EI_DATA] = ELFDATA2MSB;
	ck_assert_int_eq(open_memory(file.len), -EBADMSG);
	file.bytes[EI_DATA] = ELFDATA2LSB;
	file.bytes[0] = '#';
	ck_assert_int_eq(open_memory(file.len), -EBADMSG);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(mt_image_new_fd(fds[0], &image), -EINVAL);
	close(fds[0]);
	close(fds[1]);
	ck_assert_int_eq(mt_image_new_fd(-1, &image), -EBADF);
}
END_TEST

/* An image, but not one whose rows are understood. */
START_TEST(other_machine)
{
	put_file(true, true, &debug_frame);
	((Elf64_Ehdr *)file.bytes)->e_machine = EM_AARCH64;
	ck_assert_int_eq(open_memory(file.len), 0);
	ck_assert_uint_eq(image->machine, EM_AARCH64);
	ck_assert_uint_eq(image->build_id_bytes, 20);
	ck_assert_int_eq(cfa_at(0x1000), -ENOENT);
}
END_TEST

/* Bytes of code, from memory or from the file as long as it is there. */
START_TEST(code)
{
	static const uint8_t text[] = "0123456789";
	struct elf_parts parts = { .text = text, .text_len = sizeof(text) - 1 };
	char path[] = "image-XXXXXX";
	int fd = mkstemp(path);
	uint8_t bytes[8];

	elf_put(&file, &parts);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, file.bytes, file.len), (ssize_t)file.len);
	for (int i = 0; i < 2; i++) {
		mt_image_unref(image);
		image = NULL;
		ck_assert_int_eq(i ? mt_image_new_fd(fd, &image) : open_memory(file.len), 0);
		ck_assert_int_eq(mt_image_read_before(image, ELF_TEXT + 10, bytes, 7), 7);
		ck_assert_mem_eq(bytes, "3456789", 7);
		ck_assert_int_eq(mt_image_read_before(image, ELF_TEXT + 2, bytes, 7), 2);
		ck_assert_mem_eq(bytes, "01", 2);
		ck_assert_int_lt(mt_image_read_before(image, ELF_TEXT, bytes, 7), 0);
		ck_assert_int_lt(mt_image_read_before(image, ELF_TEXT + 11, bytes, 7), 0);
		ck_assert_int_lt(mt_image_read_before(image, ELF_TEXT_END + 1, bytes, 7), 0);
		ck_assert_int_lt(mt_image_read_before(image, 0, bytes, 7), 0);
	}
	/* Written to, replaced, gone. */
	ck_assert_int_eq(write(fd, "x", 1), 1);
	ck_assert_int_eq(mt_image_read_before(image, ELF_TEXT + 10, bytes, 7), -ESTALE);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mt_image_read_before(image, ELF_TEXT + 10, bytes, 7), -ENOENT);
	close(fd);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	ck_assert_int_eq(write(fd, file.bytes, file.len), (ssize_t)file.len);
	ck_assert_int_eq(mt_image_read_before(image, ELF_TEXT + 10, bytes, 7), -ESTALE);
	close(fd);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* Headers that say where code is not. */
START_TEST(code_elsewhere)
{
	struct elf_parts parts = { .text = (const uint8_t *)"0123456789", .text_len = 10 };
	uint8_t bytes[8];
	Elf64_Phdr *phdr;

	for (int i = 0; i < 3; i++) {
		elf_put(&file, &parts);
		phdr = (Elf64_Phdr *)(file.bytes + sizeof(Elf64_Ehdr));
		phdr->p_offset = (uint64_t[]){ file.len, file.len - 3, UINT64_MAX - 2 }[i];
		ck_assert_int_eq(open_memory(file.len), 0);
		ck_assert_int_eq(mt_image_read_before(image, ELF_TEXT + 7, bytes, 7), -EBADMSG);
		ck_assert_int_eq(mt_image_read_before(image, ELF_TEXT + 2, bytes, 7),
				 i == 1 ? 2 : -EBADMSG);
	}
}
END_TEST

static void look_around(void)
{
	uint8_t bytes[7];

	for (uint64_t vaddr = 0xff0; vaddr < 0x1300; vaddr += 8)
		cfa_at(vaddr);
	mt_image_is_code(image, 0x1000);
	mt_image_read_before(image, 0x1010, bytes, sizeof(bytes));
}

START_TEST(every_truncation)
{
	put_zlib(debug_frame.len);
	put_file(_i & 1, _i & 2, _i & 4 ? &compressed : &debug_frame);
	for (size_t len = 0; len < file.len; len++) {
		int r = open_memory(len), fd;

		ck_assert(r == 0 || r == -EBADMSG);
		if (r == 0)
			look_around();
		mt_image_unref(image);
		image = NULL;
		fd = file_fd(len);
		ck_assert_int_eq(mt_image_new_fd(fd, &image), r);
		close(fd);
	}
}
END_TEST

/* Each byte of the file as others. */
START_TEST(every_damage)
{
	static const uint8_t masks[] = { 0xff, 0x80, 0x01, 0x10 };

	put_file(_i & 1, _i & 2, &debug_frame);
	for (size_t at = 0; at < file.len; at++) {
		for (size_t i = 0; i < sizeof(masks); i++) {
			file.bytes[at] ^= masks[i];
			if (open_memory(file.len) == 0)
				look_around();
			file.bytes[at] ^= masks[i];
		}
	}
}
END_TEST

static void put_symbols(uint32_t type)
{
	struct elf_parts parts = { .with_sections = true, .symbols = type };

	elf_put(&file, &parts);
}

static void expect_function(const struct mt_symbol_table *found)
{
	ck_assert_uint_eq(found->len, 1);
	ck_assert_str_eq(found->symbols[0].name, ELF_FUNCTION);
	ck_assert_uint_eq(found->symbols[0].offset, ELF_TEXT);
}

/* Of a file without a name they are there, of others they are read when they are asked for. */
START_TEST(symbols)
{
	char name[] = "image-XXXXXX";
	struct mt_symbol_table found = { 0 };
	int fd;

	put_symbols(_i ? SHT_DYNSYM : SHT_SYMTAB);
	fd = file_fd(file.len);
	ck_assert_int_eq(mt_image_new_fd(fd, &image), 0);
	close(fd);
	expect_function(&image->symbols);
	ck_assert_int_eq(open_memory(file.len), 0);
	ck_assert_uint_eq(image->symbols.len, 0);

	mt_image_unref(image);
	image = NULL;
	fd = mkstemp(name);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, file.bytes, file.len), (ssize_t)file.len);
	ck_assert_int_eq(mt_image_new_fd(fd, &image), 0);
	ck_assert_uint_eq(image->symbols.len, 0);
	ck_assert_int_eq(mt_image_read_symbols(image, &found), 0);
	expect_function(&found);
	mt_symbol_table_done(&found);
	found = (struct mt_symbol_table){ 0 };
	ck_assert_int_eq(write(fd, "", 1), 1);
	ck_assert_int_eq(mt_image_read_symbols(image, &found), 0);
	ck_assert_uint_eq(found.len, 0);
	close(fd);
	ck_assert_int_eq(unlink(name), 0);
}
END_TEST

START_TEST(kept_images)
{
	struct mt_images *images;
	struct mt_image *again;
	char path[64];
	int fd;

	ck_assert_int_eq(mt_images_new(&images), 0);
	put_file(true, true, NULL);
	fd = file_fd(file.len);
	ck_assert_int_eq(mt_images_get_fd(images, fd, &image), 0);
	ck_assert_int_eq(mt_images_get_fd(images, fd, &again), 0);
	ck_assert_ptr_eq(image, again);
	mt_image_unref(again);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_int_eq(mt_images_get_path(images, path, &again), 0);
	ck_assert_ptr_eq(image, again);
	mt_image_unref(again);
	ck_assert_uint_eq(image->refs, 2);

	/* Written to: another file. */
	ck_assert_int_eq(write(fd, "", 1), 1);
	ck_assert_int_eq(mt_images_get_fd(images, fd, &again), 0);
	ck_assert_ptr_ne(image, again);
	ck_assert_uint_eq(again->refs, 2);
	ck_assert_uint_eq(image->refs, 2);
	mt_image_unref(again);
	close(fd);

	ck_assert_int_eq(mt_images_get_path(images, "/proc/nonexistent", &again), -ENOENT);
	ck_assert_int_eq(mt_images_get_path(images, "/", &again), -EINVAL);
	mt_images_free(images);
	expect_rows(false);
}
END_TEST

/* A file whose image, or none, is found by its number: the descriptor can not be read. */
static int unreadable_fd(int fd)
{
	char path[64];
	int path_fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	ck_assert_int_ge(path_fd, 0);
	return path_fd;
}

static bool is_kept(struct mt_images *images, int path_fd)
{
	struct mt_image *found;
	int r = mt_images_get_fd(images, path_fd, &found);

	ck_assert(r == 0 || r == -EBADF);
	if (r == 0)
		mt_image_unref(found);
	return r == 0;
}

/* Those that nobody uses go when they are too many, the oldest first. */
START_TEST(idle_images)
{
	enum { LARGE = CFI_BYTES_MAX - 4096, COUNT = MT_IMAGES_IDLE_BYTES / LARGE + 8 };
	struct mt_images *images;
	struct mt_image *other;
	int path_fds[COUNT], oldest = 0, fd;

	ck_assert_int_eq(mt_images_new(&images), 0);
	memset(eh_frame.bytes + eh_frame.len, 0, LARGE - eh_frame.len);
	eh_frame.len = LARGE;
	put_file(true, true, NULL);
	fd = file_fd(file.len);
	ck_assert_int_eq(mt_images_get_fd(images, fd, &image), 0);
	close(fd);
	for (int i = 0; i < COUNT; i++) {
		fd = file_fd(file.len);
		ck_assert_int_eq(mt_images_get_fd(images, fd, &other), 0);
		mt_image_unref(other);
		path_fds[i] = unreadable_fd(fd);
		close(fd);
	}
	while (oldest < COUNT && !is_kept(images, path_fds[oldest]))
		oldest++;
	ck_assert_int_gt(oldest, 1);
	ck_assert_int_lt(oldest, 13);
	for (int i = 0; i < COUNT; i++) {
		ck_assert_int_eq(is_kept(images, path_fds[i]), i >= oldest);
		close(path_fds[i]);
	}
	/* The one in use is still there. */
	ck_assert_uint_eq(image->refs, 2);
	mt_images_free(images);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("image");
	TCase *tcase = tcase_create("image");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, whole_file);
	tcase_add_test(tcase, with_less);
	tcase_add_test(tcase, compressed_debug_frame);
	tcase_add_test(tcase, damaged_compression);
	tcase_add_test(tcase, not_images);
	tcase_add_test(tcase, other_machine);
	tcase_add_test(tcase, code);
	tcase_add_test(tcase, code_elsewhere);
	tcase_add_loop_test(tcase, every_truncation, 0, 8);
	tcase_add_loop_test(tcase, every_damage, 0, 4);
	tcase_add_loop_test(tcase, symbols, 0, 2);
	tcase_add_test(tcase, kept_images);
	tcase_add_test(tcase, idle_images);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
