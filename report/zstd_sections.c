/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * zstd_sections.c - see zstd_sections.h
 *
 * Invariants
 *   The copy is the file with something appended: only the headers of the sections that were
 *   expanded differ, and each of these is written when its content is there.
 */
#include "report/zstd_sections.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/err.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

static void end_elf(Elf **elf)
{
	elf_end(*elf);
}

static void free_context(ZSTD_DCtx **context)
{
	ZSTD_freeDCtx(*context);
}

static int is_zstd(Elf_Scn *section)
{
	GElf_Shdr shdr;
	GElf_Chdr chdr;

	return gelf_getshdr(section, &shdr) && shdr.sh_flags & SHF_COMPRESSED &&
	       gelf_getchdr(section, &chdr) && chdr.ch_type == ELFCOMPRESS_ZSTD;
}

/* Whether the file has such sections and libelf can not expand them itself. */
static int needs_us(Elf *elf)
{
	const char *ident = elf_getident(elf, NULL);
	Elf_Scn *section = NULL;

	if (elf_kind(elf) != ELF_K_ELF || ident[EI_CLASS] != ELFCLASS64 ||
	    ident[EI_DATA] != ELFDATA2LSB)
		return 0;
	while ((section = elf_nextscn(elf, section)))
		if (is_zstd(section))
			return elf_compress(section, 0, 0) < 0;
	return 0;
}

static int write_all(int fd, const void *bytes, size_t len, uint64_t at)
{
	while (len) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)at);

		if (n < 0)
			return mt_neg_errno();
		bytes = (const char *)bytes + n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Returns how many bytes came out, or negative errno. */
static int64_t expand(ZSTD_DCtx *context, int fd, uint64_t at, const void *bytes, size_t len,
		      uint64_t limit)
{
	ZSTD_inBuffer in = { .src = bytes, .size = len };
	char out_bytes[65536];
	uint64_t done = 0;
	size_t left;

	ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
	do {
		ZSTD_outBuffer out = { .dst = out_bytes, .size = sizeof(out_bytes) };
		size_t before = in.pos;
		int err;

		left = ZSTD_decompressStream(context, &out, &in);
		if (ZSTD_isError(left) || out.pos > limit - done || (!out.pos && in.pos == before))
			return -EBADMSG;
		err = write_all(fd, out.dst, out.pos, at + done);
		if (err)
			return err;
		done += out.pos;
	} while (left || in.pos < in.size);
	return (int64_t)done;
}

/* Puts the section's content at *end, and moves that. */
static int expand_section(ZSTD_DCtx *context, int fd, Elf_Scn *section, uint64_t shdr_at,
			  uint64_t *end, uint64_t limit)
{
	Elf_Data *raw = elf_rawdata(section, NULL);
	Elf64_Chdr chdr;
	Elf64_Shdr *found = elf64_getshdr(section), shdr;
	int64_t len;

	if (!raw || !raw->d_buf || raw->d_size < sizeof(chdr) || !found)
		return -EBADMSG;
	memcpy(&chdr, raw->d_buf, sizeof(chdr));
	len = expand(context, fd, *end, (const char *)raw->d_buf + sizeof(chdr),
		     raw->d_size - sizeof(chdr), limit);
	if (len < 0)
		return (int)len;
	shdr = *found;
	shdr.sh_flags &= ~(Elf64_Xword)SHF_COMPRESSED;
	shdr.sh_offset = *end;
	shdr.sh_size = (Elf64_Xword)len;
	shdr.sh_addralign = chdr.ch_addralign;
	*end = (*end + (uint64_t)len + 15) & ~15ULL;
	return write_all(fd, &shdr, sizeof(shdr), shdr_at);
}

static int copy(Elf *elf)
{
	mt_cleanup(free_context) ZSTD_DCtx *context = ZSTD_createDCtx();
	mt_cleanup(mt_closep) int fd = memfd_create("memtrack-report", MFD_CLOEXEC);
	const Elf64_Ehdr *ehdr = elf64_getehdr(elf);
	Elf_Scn *section = NULL;
	uint64_t end, limit;
	size_t len;
	const char *bytes = elf_rawfile(elf, &len);
	int err;

	if (fd < 0)
		return mt_neg_errno();
	if (!context || !bytes || !ehdr)
		return -ENOMEM;
	err = write_all(fd, bytes, len, 0);
	end = ((uint64_t)len + 15) & ~15ULL;
	limit = end + MT_ZSTD_SECTIONS_MAX;
	while (!err && (section = elf_nextscn(elf, section))) {
		uint64_t shdr_at = ehdr->e_shoff + elf_ndxscn(section) * sizeof(Elf64_Shdr);

		if (!is_zstd(section))
			continue;
		err = expand_section(context, fd, section, shdr_at, &end,
				     end < limit ? limit - end : 0);
		if (err == -EBADMSG)
			err = 0;
	}
	return err ? err : mt_take_fd(&fd);
}

int mt_zstd_sections_expand(int fd)
{
	mt_cleanup(mt_closep) int own = fd;
	mt_cleanup(end_elf) Elf *elf = NULL;

	elf_version(EV_CURRENT);
	elf = elf_begin(own, ELF_C_READ_MMAP, NULL);
	if (!elf || !needs_us(elf))
		return mt_take_fd(&own);
	return copy(elf);
}
