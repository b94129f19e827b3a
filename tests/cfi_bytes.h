/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * cfi_bytes.h - .eh_frame, .debug_frame and ELF files, put together by tests
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_BYTES_MAX (1024 * 1024)

struct cfi_bytes {
	size_t len;
	bool is_debug_frame;
	uint64_t vaddr; /* of bytes[0] */
	uint8_t bytes[CFI_BYTES_MAX];
};

void cfi_put(struct cfi_bytes *b, unsigned int width, uint64_t value);
void cfi_put_uleb(struct cfi_bytes *b, uint64_t value);
void cfi_put_bytes(struct cfi_bytes *b, const void *bytes, size_t len);

/* The same as a zlib stream of one stored block; len < 65536. */
void cfi_put_zlib(struct cfi_bytes *b, const void *bytes, size_t len);

/*
 * A CIE with these instructions: version 1, code alignment 1, data alignment -8.
 * augmentation: "", "zR" (encoding is used) or "zRS".  Returns its offset.
 */
size_t cfi_put_cie(struct cfi_bytes *b, const char *augmentation, uint8_t encoding,
		   const void *instructions, size_t len);

/* An FDE of such a CIE; encoding 0 (absolute) or 0x1b (relative, 4 bytes).  Returns its offset. */
size_t cfi_put_fde(struct cfi_bytes *b, size_t cie, uint8_t encoding, uint64_t start, uint64_t size,
		   const void *instructions, size_t len);

/* The length field of an entry that began at offset; fills up to a multiple of 8. */
void cfi_end_entry(struct cfi_bytes *b, size_t offset);

/* DW_CFA_def_cfa rsp + 8, DW_CFA_offset rip at cfa - 8: what every CIE has. */
#define CFI_CALL "\x0c\x07\x08\x90\x01"
#define CFI_CALL_LEN 5

/* A copy whose last byte is the last one before an unreadable page; the next call reuses it. */
uint8_t *cfi_at_page_end(const void *bytes, size_t len);

/*
 * A shared object with one executable segment, [0x1000, 0x3000), of which the file has text
 * and no more, a build-id, .eh_frame at 0x4000, .eh_frame_hdr (with a table if sorted is
 * set) and .debug_frame, as given; NULL: has none.  compressed: .debug_frame's bytes are an
 * Elf64_Chdr and what follows.
 */
struct elf_parts {
	const struct cfi_bytes *eh_frame, *debug_frame;
	const uint64_t *table; /* pairs of start and FDE offset */
	size_t table_len;      /* in pairs */
	bool with_sections, compressed;
	uint32_t symbols; /* SHT_SYMTAB or SHT_DYNSYM, of ELF_FUNCTION at ELF_TEXT, 0x80 bytes */
	const uint8_t *text;
	size_t text_len;
};

#define ELF_TEXT 0x1000
#define ELF_TEXT_END 0x3000
#define ELF_EH_FRAME 0x4000
#define ELF_FUNCTION "function_of_the_file"
#define ELF_BUILD_ID "0123456789abcdefghij"

void elf_put(struct cfi_bytes *ret, const struct elf_parts *parts);
