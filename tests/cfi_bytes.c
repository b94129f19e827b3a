/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi_bytes.c - see cfi_bytes.h
 */
#include "tests/cfi_bytes.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

void cfi_put_bytes(struct cfi_bytes *b, const void *bytes, size_t len)
{
	if (len > sizeof(b->bytes) - b->len)
		abort();
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

void cfi_put(struct cfi_bytes *b, unsigned int width, uint64_t value)
{
	cfi_put_bytes(b, &value, width);
}

void cfi_put_uleb(struct cfi_bytes *b, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		cfi_put(b, 1, (value & 0x7f) | 0x80);
	cfi_put(b, 1, value);
}

static uint32_t adler32(const uint8_t *bytes, size_t len)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < len; i++) {
		a = (a + bytes[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

void cfi_put_zlib(struct cfi_bytes *b, const void *bytes, size_t len)
{
	cfi_put_bytes(b, "\x78\x01\x01", 3);
	cfi_put(b, 2, len);
	cfi_put(b, 2, ~len);
	cfi_put_bytes(b, bytes, len);
	cfi_put(b, 4, __builtin_bswap32(adler32(bytes, len)));
}

void cfi_end_entry(struct cfi_bytes *b, size_t offset)
{
	uint32_t len;

	while (b->len % 8)
		cfi_put(b, 1, 0);
	len = (uint32_t)(b->len - offset - 4);
	memcpy(b->bytes + offset, &len, 4);
}

size_t cfi_put_cie(struct cfi_bytes *b, const char *augmentation, uint8_t encoding,
		   const void *instructions, size_t len)
{
	size_t offset = b->len;

	cfi_put(b, 4, 0);
	cfi_put(b, 4, b->is_debug_frame ? 0xffffffff : 0);
	cfi_put(b, 1, 1);
	cfi_put_bytes(b, augmentation, strlen(augmentation) + 1);
	cfi_put_bytes(b, "\x01\x78\x10", 3);
	if (*augmentation) {
		cfi_put(b, 1, 1);
		cfi_put(b, 1, encoding);
	}
	cfi_put_bytes(b, instructions, len);
	cfi_end_entry(b, offset);
	return offset;
}

size_t cfi_put_fde(struct cfi_bytes *b, size_t cie, uint8_t encoding, uint64_t start, uint64_t size,
		   const void *instructions, size_t len)
{
	size_t offset = b->len;

	cfi_put(b, 4, 0);
	cfi_put(b, 4, b->is_debug_frame ? cie : b->len - cie);
	if (encoding) {
		cfi_put(b, 4, start - (b->vaddr + b->len));
		cfi_put(b, 4, size);
		cfi_put(b, 1, 0);
	} else {
		cfi_put(b, 8, start);
		cfi_put(b, 8, size);
	}
	cfi_put_bytes(b, instructions, len);
	cfi_end_entry(b, offset);
	return offset;
}

uint8_t *cfi_at_page_end(const void *bytes, size_t len)
{
	static uint8_t *area;

	if (!area) {
		area = mmap(NULL, CFI_BYTES_MAX + PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (area == MAP_FAILED || mprotect(area + CFI_BYTES_MAX, PAGE, PROT_NONE))
			abort();
	}
	if (len > CFI_BYTES_MAX)
		abort();
	memcpy(area + CFI_BYTES_MAX - len, bytes, len);
	return area + CFI_BYTES_MAX - len;
}

enum section {
	NULL_SECTION,
	EH_FRAME,
	DEBUG_FRAME,
	NAMES,
	SYMBOLS,
	STRINGS,
	SECTIONS,
};

static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
static const char strings[] = "\0" ELF_FUNCTION;

enum segment {
	TEXT,
	DATA, /* .eh_frame and what follows it */
	EH_FRAME_HDR,
	NOTE,
	DYNAMIC,
	SEGMENTS,
};

struct file_head {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[SEGMENTS];
	Elf64_Shdr shdrs[SECTIONS];
	Elf64_Nhdr nhdr;
	char note[24]; /* "GNU\0" and the build-id */
	Elf64_Dyn dynamic[2];
};

static void put_headers(struct file_head *head)
{
	head->ehdr = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(struct file_head, phdrs),
		.e_ehsize = sizeof(head->ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = SEGMENTS,
	};
	head->phdrs[TEXT] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_vaddr = ELF_TEXT,
		.p_memsz = ELF_TEXT_END - ELF_TEXT,
	};
	head->phdrs[NOTE] = (Elf64_Phdr){
		.p_type = PT_NOTE,
		.p_offset = offsetof(struct file_head, nhdr),
		.p_filesz = sizeof(head->nhdr) + sizeof(head->note),
		.p_align = 4,
	};
	head->nhdr = (Elf64_Nhdr){ 4, 20, NT_GNU_BUILD_ID };
	memcpy(head->note, "GNU\0" ELF_BUILD_ID, 24);
	head->phdrs[DYNAMIC] = (Elf64_Phdr){
		.p_type = PT_DYNAMIC,
		.p_offset = offsetof(struct file_head, dynamic),
		.p_filesz = sizeof(head->dynamic),
	};
	head->dynamic[0] = (Elf64_Dyn){ .d_tag = DT_PLTGOT, .d_un.d_ptr = 0x5000 };
}

static void put_eh_frame_hdr(struct cfi_bytes *ret, struct file_head *head,
			     const struct elf_parts *parts)
{
	uint64_t vaddr = ELF_EH_FRAME + ret->len - head->phdrs[DATA].p_offset;

	head->phdrs[EH_FRAME_HDR] = (Elf64_Phdr){
		.p_type = PT_GNU_EH_FRAME,
		.p_offset = ret->len,
		.p_vaddr = vaddr,
		.p_filesz = 12 + 8 * parts->table_len,
	};
	cfi_put_bytes(ret, parts->table ? "\x01\x1b\x03\x3b" : "\x01\x1b\xff\xff", 4);
	cfi_put(ret, 4, ELF_EH_FRAME - (vaddr + 4));
	cfi_put(ret, 4, parts->table_len);
	for (size_t i = 0; i < parts->table_len; i++) {
		cfi_put(ret, 4, parts->table[2 * i] - vaddr);
		cfi_put(ret, 4, ELF_EH_FRAME + parts->table[2 * i + 1] - vaddr);
	}
}

/* Not a function, and one. */
static void put_symbols(struct cfi_bytes *ret, struct file_head *head, uint32_t type)
{
	const Elf64_Sym syms[] = {
		{ 0 },
		{ .st_name = 1, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), .st_shndx = 1 },
		{ .st_name = 1,
		  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		  .st_shndx = 1,
		  .st_value = ELF_TEXT,
		  .st_size = 0x80 },
	};

	head->shdrs[SYMBOLS] = (Elf64_Shdr){
		.sh_type = type,
		.sh_link = STRINGS,
		.sh_entsize = sizeof(syms[0]),
		.sh_offset = ret->len,
		.sh_size = sizeof(syms),
	};
	cfi_put_bytes(ret, syms, sizeof(syms));
	head->shdrs[STRINGS] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = ret->len,
		.sh_size = sizeof(strings),
	};
	cfi_put_bytes(ret, strings, sizeof(strings));
}

void elf_put(struct cfi_bytes *ret, const struct elf_parts *parts)
{
	struct file_head head = { 0 };

	put_headers(&head);
	ret->len = sizeof(head);
	if (parts->text) {
		head.phdrs[TEXT].p_offset = ret->len;
		head.phdrs[TEXT].p_filesz = parts->text_len;
		cfi_put_bytes(ret, parts->text, parts->text_len);
	}
	if (parts->eh_frame) {
		head.phdrs[DATA] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R,
			.p_offset = ret->len,
			.p_vaddr = ELF_EH_FRAME,
		};
		head.shdrs[EH_FRAME] = (Elf64_Shdr){
			.sh_name = 1,
			.sh_type = SHT_PROGBITS,
			.sh_addr = ELF_EH_FRAME,
			.sh_offset = ret->len,
			.sh_size = parts->eh_frame->len,
		};
		cfi_put_bytes(ret, parts->eh_frame->bytes, parts->eh_frame->len);
		put_eh_frame_hdr(ret, &head, parts);
		head.phdrs[DATA].p_filesz = ret->len - head.phdrs[DATA].p_offset;
		head.phdrs[DATA].p_memsz = head.phdrs[DATA].p_filesz;
	}
	if (parts->debug_frame) {
		head.shdrs[DEBUG_FRAME] = (Elf64_Shdr){
			.sh_name = 11,
			.sh_type = SHT_PROGBITS,
			.sh_flags = parts->compressed ? SHF_COMPRESSED : 0,
			.sh_offset = ret->len,
			.sh_size = parts->debug_frame->len,
		};
		cfi_put_bytes(ret, parts->debug_frame->bytes, parts->debug_frame->len);
	}
	head.shdrs[NAMES] = (Elf64_Shdr){
		.sh_name = 24,
		.sh_type = SHT_STRTAB,
		.sh_offset = ret->len,
		.sh_size = sizeof(names),
	};
	cfi_put_bytes(ret, names, sizeof(names));
	if (parts->symbols)
		put_symbols(ret, &head, parts->symbols);
	if (parts->with_sections) {
		head.ehdr.e_shoff = offsetof(struct file_head, shdrs);
		head.ehdr.e_shentsize = sizeof(Elf64_Shdr);
		head.ehdr.e_shnum = SECTIONS;
		head.ehdr.e_shstrndx = NAMES;
	}
	memcpy(ret->bytes, &head, sizeof(head));
}
