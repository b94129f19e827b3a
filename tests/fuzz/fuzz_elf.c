/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_elf.c - no program file confuses the collector, read or told of
 *
 * An input is a file; if its first byte is 'Z', the rest is a compressed section.  What CFI
 * does with the content is fuzz_cfi's.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "collector/call_site.h"
#include "collector/compressed_section.h"
#include "collector/frame_pointer.h"
#include "collector/image.h"
#include "collector/watch.h"
#include "tests/cfi_bytes.h"
#include "tests/fuzz/fuzz.h"

#define SECTION_MAX (1024 * 1024)
/* Above the numbers that processes can have: of it there is only the file. */
#define TGID (1u << 23)

static int same(struct mt_cfi_section a, struct mt_cfi_section b)
{
	return a.len == b.len && a.vaddr == b.vaddr && (!a.len || !memcmp(a.bytes, b.bytes, a.len));
}

static void compare(const struct mt_image *a, const struct mt_image *b)
{
	const struct mt_cfi_sections *x = &a->cfi.sections, *y = &b->cfi.sections;

	fuzz_must(a->machine == b->machine && a->build_id_bytes == b->build_id_bytes);
	fuzz_must(a->build_id_bytes <= sizeof(a->build_id));
	fuzz_must(!memcmp(a->build_id, b->build_id, a->build_id_bytes));
	fuzz_must(a->code_len == b->code_len);
	for (size_t i = 0; i < a->code_len; i++) {
		fuzz_must(a->code[i].start <= a->code[i].end);
		fuzz_must(mt_image_is_code(b, a->code[i].start) ||
			  a->code[i].start == a->code[i].end);
	}
	fuzz_must(same(x->eh_frame_hdr, y->eh_frame_hdr) && same(x->eh_frame, y->eh_frame) &&
		  same(x->debug_frame, y->debug_frame) && x->got_vaddr == y->got_vaddr);
}

static int tell(void *ctx, uint32_t tgid, const char *what, const char *reason)
{
	static const char *const reasons[] = {
		"a 32-bit program",
		"another C library (musl)",
		"ended before it could be looked at",
		"statically linked",
	};
	int *told = ctx;
	int known = 0;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		known |= !strcmp(reason, reasons[i]);
	fuzz_must(known && tgid == TGID && !strcmp(what, "name") && !(*told)++);
	return 0;
}

static void execute(const char *path)
{
	struct mt_watch *watch;
	int told = 0;

	fuzz_must(mt_watch_new("shim", tell, &told, &watch) == 0);
	fuzz_must(mt_watch_exec(watch, TGID, path, "name", 1) == 0);
	fuzz_must(mt_watch_exit(watch, TGID) == 0 && told);
	mt_watch_free(watch);
}

/* Where code could be returned to: at the begin and the end of each segment. */
static void look_at_code(struct mt_image *image)
{
	struct mt_space_range range = { .end = UINT64_MAX, .image = image };
	uint8_t bytes[MT_CALL_SITE_BYTES];
	struct mt_space space;

	mt_space_init(&space);
	fuzz_must(mt_space_add(&space, &range) == 0);
	for (size_t i = 0; i < image->code_len && i < 8; i++) {
		for (uint64_t at = 0; at < 64; at++) {
			uint64_t vaddr = at % 2 ? image->code[i].end - at / 2
						: image->code[i].start + at / 2;
			ssize_t n = mt_image_read_before(image, vaddr, bytes, sizeof(bytes));

			fuzz_must(n <= (ssize_t)sizeof(bytes));
			(void)mt_frame_pointer_is_return(&space, vaddr);
		}
	}
	mt_space_done(&space);
}

static void read_file(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct mt_image *from_file, *from_memory;
	char path[32];
	int r;

	fuzz_must(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	r = mt_image_new_fd(fd, &from_file);
	fuzz_must(r == 0 || r == -EBADMSG);
	fuzz_must(mt_image_new_memory(bytes, len, &from_memory) == r);
	if (r == 0) {
		compare(from_file, from_memory);
		look_at_code(from_memory);
		mt_image_unref(from_file);
		mt_image_unref(from_memory);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	execute(path);
	close(fd);
}

static void read_compressed(const uint8_t *bytes, size_t len)
{
	uint8_t *content;
	size_t content_len = 0;
	int r = mt_compressed_section_read(bytes, len, SECTION_MAX, &content, &content_len);

	fuzz_must(r == 0 || r == -EBADMSG);
	if (r)
		return;
	fuzz_must(content_len && content_len <= SECTION_MAX);
	/* All of it is there. */
	fuzz_must(memchr(content, content[content_len - 1], content_len) != NULL);
	free(content);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct cfi_bytes section, file;
	struct elf_parts parts = {
		.debug_frame = &section,
		.with_sections = true,
		.compressed = true,
	};

	if (!len || bytes[0] != 'Z') {
		read_file(bytes, len);
		return 0;
	}
	read_compressed(bytes + 1, len - 1);
	if (len > SECTION_MAX / 2)
		return 0;
	section.len = 0;
	cfi_put_bytes(&section, bytes + 1, len - 1);
	elf_put(&file, &parts);
	read_file(file.bytes, file.len);
	return 0;
}

static void put_compressed(struct cfi_bytes *ret, uint32_t type, const struct cfi_bytes *content)
{
	Elf64_Chdr chdr = { .ch_type = type, .ch_size = content->len, .ch_addralign = 8 };
	char out[1024];
	size_t len;

	ret->len = 0;
	cfi_put_bytes(ret, "Z", 1);
	cfi_put_bytes(ret, &chdr, sizeof(chdr));
	if (type == ELFCOMPRESS_ZLIB) {
		cfi_put_zlib(ret, content->bytes, content->len);
		return;
	}
	len = ZSTD_compress(out, sizeof(out), content->bytes, content->len, 1);
	fuzz_must(!ZSTD_isError(len));
	cfi_put_bytes(ret, out, len);
}

/* An executable that names its interpreter, or none. */
static void put_program(struct cfi_bytes *ret, const char *interpreter)
{
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdrs[2];
		char interpreter[64];
	} file = {
		.ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		.phdrs = { { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = 4096 } },
	};

	if (interpreter) {
		file.phdrs[1] = (Elf64_Phdr){ .p_type = PT_INTERP,
					      .p_offset = sizeof(file) - sizeof(file.interpreter),
					      .p_filesz = sizeof(file.interpreter) };
		snprintf(file.interpreter, sizeof(file.interpreter), "%s", interpreter);
	}
	ret->len = 0;
	cfi_put_bytes(ret, &file, sizeof(file));
}

/* Code of calls in all their forms. */
static void put_calls(struct cfi_bytes *ret)
{
	static const uint8_t calls[] = { 0xe8, 1,    0,	   0,	 0,    0xff, 0xd0, 0xff, 0x55,
					 8,    0xff, 0x14, 0xd0, 0xff, 0x95, 1,	   2,	 3,
					 4,    0xff, 0x15, 1,	 2,    3,    4,	   0xff, 0x54,
					 0x24, 8,    0xff, 0x14, 0x25, 1,    2,	   3,	 4 };
	struct elf_parts parts = { .with_sections = true,
				   .text = calls,
				   .text_len = sizeof(calls) };

	elf_put(ret, &parts);
}

void fuzz_corpus(void)
{
	static struct cfi_bytes eh_frame, debug_frame, file;
	struct elf_parts parts = { .eh_frame = &eh_frame,
				   .debug_frame = &debug_frame,
				   .with_sections = true };
	static const char *const interpreters[] = { NULL, "/lib64/ld-linux-x86-64.so.2",
						    "/lib/ld-musl-x86_64.so.1" };
	static const uint32_t types[] = { ELFCOMPRESS_ZLIB, 2 };
	size_t cie;

	eh_frame.vaddr = ELF_EH_FRAME;
	cie = cfi_put_cie(&eh_frame, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&eh_frame, cie, 0x1b, 0x1000, 0x80, "\x41\x0e\x10", 3);
	cfi_put(&eh_frame, 4, 0);
	debug_frame.is_debug_frame = true;
	cie = cfi_put_cie(&debug_frame, "", 0, CFI_CALL, CFI_CALL_LEN);
	cfi_put_fde(&debug_frame, cie, 0, 0x1200, 0x80, "\x41\x0e\x20", 3);

	elf_put(&file, &parts);
	fuzz_try_around(file.bytes, file.len, 1);
	parts.symbols = SHT_SYMTAB;
	elf_put(&file, &parts);
	fuzz_try_around(file.bytes, file.len, 1);
	parts.symbols = 0;
	elf_put(&file, &parts);
	put_calls(&file);
	fuzz_try_around(file.bytes, file.len, 1);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		put_compressed(&file, types[i], &debug_frame);
		fuzz_try_around(file.bytes, file.len, 1);
	}
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		put_program(&file, interpreters[i]);
		fuzz_try_around(file.bytes, file.len, 1);
	}
}
