/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * compressed_section.c - see compressed_section.h for the contract
 *
 * Invariants
 *   - libelf, which inflates, never sees the file's own headers: it is given an image made
 *     here, whose only section is the one in question.
 */
#include "collector/compressed_section.h"

#include <elf.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/cleanup.h"

/* gABI's number, which glibc's elf.h has from 2.37 on. */
#define COMPRESSED_BY_ZSTD 2

struct wrapped {
	Elf64_Ehdr ehdr;
	Elf64_Shdr shdrs[2]; /* the first is the null section */
	uint8_t section[];
};

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}

static struct wrapped *wrap(const uint8_t *bytes, size_t len)
{
	struct wrapped *image = calloc(1, sizeof(*image) + len);

	if (!image)
		return NULL;
	image->ehdr = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(image->ehdr),
		.e_shoff = offsetof(struct wrapped, shdrs),
		.e_shentsize = sizeof(image->shdrs[0]),
		.e_shnum = 2,
	};
	image->shdrs[1] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_COMPRESSED,
		.sh_offset = sizeof(*image),
		.sh_size = len,
		.sh_addralign = 8,
	};
	memcpy(image->section, bytes, len);
	return image;
}

static int copy_out(const void *from, size_t len, uint8_t **ret)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, len);
	*ret = copy;
	return 0;
}

static int read_zlib(const uint8_t *bytes, size_t len, uint64_t size, uint8_t **ret)
{
	mt_cleanup(mt_freep) struct wrapped *image = wrap(bytes, len);
	mt_cleanup(elf_endp) Elf *elf = NULL;
	Elf_Scn *section;
	Elf_Data *data;

	if (!image)
		return -ENOMEM;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -EBADMSG;
	elf = elf_memory((char *)image, sizeof(*image) + len);
	section = elf_getscn(elf, 1);
	if (!section || elf_compress(section, 0, 0) < 0)
		return -EBADMSG;
	data = elf_getdata(section, NULL);
	if (!data || !data->d_buf || data->d_size != size)
		return -EBADMSG;
	return copy_out(data->d_buf, data->d_size, ret);
}

static int read_zstd(const uint8_t *bytes, size_t len, uint64_t size, uint8_t **ret)
{
	mt_cleanup(mt_freep) uint8_t *content = malloc(size);

	if (!content)
		return -ENOMEM;
	if (ZSTD_decompress(content, size, bytes, len) != size)
		return -EBADMSG;
	*ret = mt_take_ptr(content);
	return 0;
}

int mt_compressed_section_read(const uint8_t *bytes, size_t len, size_t most, uint8_t **ret,
			       size_t *ret_len)
{
	Elf64_Chdr chdr;
	int r;

	if (len < sizeof(chdr))
		return -EBADMSG;
	memcpy(&chdr, bytes, sizeof(chdr));
	if (!chdr.ch_size || chdr.ch_size > most)
		return -EBADMSG;
	switch (chdr.ch_type) {
	case ELFCOMPRESS_ZLIB:
		r = read_zlib(bytes, len, chdr.ch_size, ret);
		break;
	case COMPRESSED_BY_ZSTD:
		r = read_zstd(bytes + sizeof(chdr), len - sizeof(chdr), chdr.ch_size, ret);
		break;
	default:
		return -EBADMSG;
	}
	if (r < 0)
		return r;
	*ret_len = chdr.ch_size;
	return 0;
}
