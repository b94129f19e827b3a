/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * image.c - see image.h for the contract
 *
 * Invariants
 *   - Every read goes through read_at(), which knows the file's size as it was when the
 *     reading began: what lies behind it, and what was cut off since, does not exist.
 *   - Memory is asked for only after the size was checked against the file's, so that
 *     headers that lie cost nothing.
 *   - Code comes from the very file that the rest was read from, or not at all.
 */
#include "collector/image.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/format.h"
#include "base/build_id.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "collector/compressed_section.h"
#include "collector/regular.h"

/* Of the notes and of the dynamic section, as far as they are read. */
#define HEAD_BYTES (64 * 1024)

struct source {
	int fd;		      /* or -1 */
	const uint8_t *bytes; /* if there is no descriptor */
	uint64_t size;
};

/* What is read of a file on the way to an image. */
struct reading {
	struct source source;
	Elf64_Ehdr ehdr;
	Elf64_Phdr *phdrs;
	Elf64_Shdr *shdrs; /* NULL: none that can be read */
	size_t shdr_len;
	char *names; /* of sections, with a NUL behind; NULL: none */
	size_t names_len;
};

/* len bytes, all of them or an error. */
static int read_at(const struct source *source, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;
	ssize_t n;

	if (offset > source->size || len > source->size - offset)
		return -EBADMSG;
	if (source->fd < 0) {
		memcpy(to, source->bytes + offset, len);
		return 0;
	}
	while (done < len) {
		n = pread(source->fd, (char *)to + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mt_neg_errno();
		if (!n)
			return -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

/* Allocates what it reads, with a zero byte behind. */
static int read_new(const struct source *source, uint64_t offset, uint64_t len, void **ret)
{
	mt_cleanup(mt_freep) char *bytes = NULL;
	int r;

	if (len > MT_IMAGE_SECTION_BYTES || offset > source->size || len > source->size - offset)
		return -EBADMSG;
	bytes = malloc(len + 1);
	if (!bytes)
		return -ENOMEM;
	r = read_at(source, offset, bytes, len);
	if (r < 0)
		return r;
	bytes[len] = 0;
	*ret = mt_take_ptr(bytes);
	return 0;
}

static int read_segments(struct reading *reading)
{
	Elf64_Ehdr *ehdr = &reading->ehdr;
	void *phdrs;
	int r;

	r = read_at(&reading->source, 0, ehdr, sizeof(*ehdr));
	if (r < 0)
		return r;
	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) || ehdr->e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr->e_ident[EI_DATA] != ELFDATA2LSB)
		return -EBADMSG;
	if (ehdr->e_phentsize != sizeof(Elf64_Phdr) || ehdr->e_phnum == PN_XNUM)
		return -EBADMSG;
	r = read_new(&reading->source, ehdr->e_phoff, (uint64_t)ehdr->e_phnum * sizeof(Elf64_Phdr),
		     &phdrs);
	if (r == 0)
		reading->phdrs = phdrs;
	return r;
}

/* Section headers are not needed to run a program: without them there are fewer sections. */
static int read_section_headers(struct reading *reading)
{
	const Elf64_Ehdr *ehdr = &reading->ehdr;
	const Elf64_Shdr *names;
	void *bytes;
	int r;

	if (!ehdr->e_shoff || !ehdr->e_shnum || ehdr->e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	r = read_new(&reading->source, ehdr->e_shoff, (uint64_t)ehdr->e_shnum * sizeof(Elf64_Shdr),
		     &bytes);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	reading->shdrs = bytes;
	reading->shdr_len = ehdr->e_shnum;
	if (ehdr->e_shstrndx >= ehdr->e_shnum)
		return 0;
	names = &reading->shdrs[ehdr->e_shstrndx];
	if (names->sh_type != SHT_STRTAB)
		return 0;
	r = read_new(&reading->source, names->sh_offset, names->sh_size, &bytes);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	reading->names = bytes;
	reading->names_len = names->sh_size;
	return 0;
}

static const Elf64_Phdr *find_segment(const struct reading *reading, uint32_t type)
{
	for (size_t i = 0; i < reading->ehdr.e_phnum; i++)
		if (reading->phdrs[i].p_type == type && reading->phdrs[i].p_filesz)
			return &reading->phdrs[i];
	return NULL;
}

static const Elf64_Shdr *find_section(const struct reading *reading, const char *name)
{
	for (size_t i = 0; reading->names && i < reading->shdr_len; i++) {
		const Elf64_Shdr *shdr = &reading->shdrs[i];

		if (shdr->sh_type != SHT_NOBITS && shdr->sh_name < reading->names_len &&
		    !strcmp(reading->names + shdr->sh_name, name))
			return shdr;
	}
	return NULL;
}

static int read_code(struct mt_image *image, const struct reading *reading)
{
	if (!reading->ehdr.e_phnum)
		return 0;
	image->code = calloc(reading->ehdr.e_phnum, sizeof(*image->code));
	if (!image->code)
		return -ENOMEM;
	for (size_t i = 0; i < reading->ehdr.e_phnum; i++) {
		const Elf64_Phdr *phdr = &reading->phdrs[i];

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) ||
		    phdr->p_vaddr + phdr->p_memsz < phdr->p_vaddr)
			continue;
		image->code[image->code_len++] = (struct mt_image_segment){
			.start = phdr->p_vaddr,
			.end = phdr->p_vaddr + phdr->p_memsz,
			.offset = phdr->p_offset,
			.file_bytes = phdr->p_filesz,
		};
	}
	image->bytes += reading->ehdr.e_phnum * sizeof(*image->code);
	return 0;
}

static int read_build_id(struct mt_image *image, const struct reading *reading)
{
	for (size_t i = 0; i < reading->ehdr.e_phnum; i++) {
		const Elf64_Phdr *phdr = &reading->phdrs[i];
		mt_cleanup(mt_freep) void *notes = NULL;
		uint64_t len = phdr->p_filesz < HEAD_BYTES ? phdr->p_filesz : HEAD_BYTES;
		const uint8_t *found;
		uint32_t bytes;
		int r;

		if (phdr->p_type != PT_NOTE)
			continue;
		r = read_new(&reading->source, phdr->p_offset, len, &notes);
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			continue;
		found = mt_build_id_find(notes, len, phdr->p_align, sizeof(image->build_id),
					 &bytes);
		if (!found)
			continue;
		memcpy(image->build_id, found, bytes);
		image->build_id_bytes = bytes;
		return 0;
	}
	return 0;
}

/* What .eh_frame's data-relative pointers are relative to; 0 if the file does not say. */
static int read_got_vaddr(const struct reading *reading, uint64_t *ret)
{
	const Elf64_Phdr *phdr = find_segment(reading, PT_DYNAMIC);
	mt_cleanup(mt_freep) void *bytes = NULL;
	const Elf64_Dyn *dynamic;
	uint64_t len;
	int r;

	*ret = 0;
	if (!phdr)
		return 0;
	len = phdr->p_filesz < HEAD_BYTES ? phdr->p_filesz : HEAD_BYTES;
	r = read_new(&reading->source, phdr->p_offset, len, &bytes);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	dynamic = bytes;
	for (size_t i = 0; i < len / sizeof(*dynamic) && dynamic[i].d_tag != DT_NULL; i++)
		if (dynamic[i].d_tag == DT_PLTGOT)
			*ret = dynamic[i].d_un.d_ptr;
	return 0;
}

/* A section's bytes at *ret_bytes, owned by the image; nothing where it can't be read. */
static int read_section(struct mt_image *image, const struct source *source, uint64_t offset,
			uint64_t len, uint64_t vaddr, uint8_t **ret_bytes,
			struct mt_cfi_section *ret)
{
	void *bytes;
	int r;

	if (!len)
		return 0;
	r = read_new(source, offset, len, &bytes);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	*ret_bytes = bytes;
	*ret = (struct mt_cfi_section){ .bytes = *ret_bytes, .len = len, .vaddr = vaddr };
	image->bytes += len;
	return 0;
}

static int read_debug_frame(struct mt_image *image, const struct reading *reading,
			    struct mt_cfi_section *ret)
{
	const Elf64_Shdr *shdr = find_section(reading, ".debug_frame");
	mt_cleanup(mt_freep) void *compressed = NULL;
	size_t len;
	int r;

	if (!shdr)
		return 0;
	if (!(shdr->sh_flags & SHF_COMPRESSED))
		return read_section(image, &reading->source, shdr->sh_offset, shdr->sh_size, 0,
				    &image->debug_frame, ret);
	r = read_new(&reading->source, shdr->sh_offset, shdr->sh_size, &compressed);
	if (r == 0)
		r = mt_compressed_section_read(compressed, shdr->sh_size, MT_IMAGE_SECTION_BYTES,
					       &image->debug_frame, &len);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	*ret = (struct mt_cfi_section){ .bytes = image->debug_frame, .len = len };
	image->bytes += len;
	return 0;
}

/* .eh_frame by the address that .eh_frame_hdr gives: up to the end of its segment, for want
 * of a length; there is a terminator. */
static int read_eh_frame_at(struct mt_image *image, const struct reading *reading, uint64_t vaddr,
			    struct mt_cfi_section *ret)
{
	for (size_t i = 0; i < reading->ehdr.e_phnum; i++) {
		const Elf64_Phdr *phdr = &reading->phdrs[i];
		uint64_t skip = vaddr - phdr->p_vaddr, len;

		if (phdr->p_type != PT_LOAD || skip >= phdr->p_filesz)
			continue;
		len = phdr->p_filesz - skip;
		return read_section(image, &reading->source, phdr->p_offset + skip,
				    len < MT_IMAGE_SECTION_BYTES ? len : MT_IMAGE_SECTION_BYTES,
				    vaddr, &image->eh_frame, ret);
	}
	return 0;
}

static int read_eh_frame(struct mt_image *image, const struct reading *reading,
			 struct mt_cfi_sections *sections)
{
	const Elf64_Phdr *phdr = find_segment(reading, PT_GNU_EH_FRAME);
	const Elf64_Shdr *shdr = find_section(reading, ".eh_frame");
	uint64_t vaddr;
	int r = 0;

	if (phdr)
		r = read_section(image, &reading->source, phdr->p_offset, phdr->p_filesz,
				 phdr->p_vaddr, &image->eh_frame_hdr, &sections->eh_frame_hdr);
	if (r < 0)
		return r;
	if (mt_cfi_eh_frame_vaddr(&sections->eh_frame_hdr, &vaddr) == 0 &&
	    (!shdr || shdr->sh_addr != vaddr))
		return read_eh_frame_at(image, reading, vaddr, &sections->eh_frame);
	if (!shdr)
		return 0;
	return read_section(image, &reading->source, shdr->sh_offset, shdr->sh_size, shdr->sh_addr,
			    &image->eh_frame, &sections->eh_frame);
}

static int read_unwind_information(struct mt_image *image, const struct reading *reading)
{
	struct mt_cfi_sections sections = { 0 };
	int r;

	if (reading->ehdr.e_machine != EM_X86_64)
		return 0;
	r = read_eh_frame(image, reading, &sections);
	if (r < 0)
		return r;
	r = read_debug_frame(image, reading, &sections.debug_frame);
	if (r < 0)
		return r;
	r = read_got_vaddr(reading, &sections.got_vaddr);
	if (r < 0)
		return r;
	r = mt_cfi_init(&image->cfi, &sections);
	if (r < 0)
		return r;
	image->bytes += (image->cfi.eh_index.len + image->cfi.debug_index.len) *
			sizeof(struct mt_cfi_entry);
	return 0;
}

/* The functions in the section of symbols of a type; none where they can not be read. */
static int read_symbol_section(const struct reading *reading, uint32_t type,
			       struct mt_symbol_table *ret)
{
	mt_cleanup(mt_freep) void *table = NULL, *strings = NULL;
	const Elf64_Shdr *shdr = NULL, *its_strings;
	int r;

	for (size_t i = 0; i < reading->shdr_len && !shdr; i++)
		if (reading->shdrs[i].sh_type == type)
			shdr = &reading->shdrs[i];
	if (!shdr || shdr->sh_entsize != sizeof(Elf64_Sym) || shdr->sh_link >= reading->shdr_len)
		return 0;
	its_strings = &reading->shdrs[shdr->sh_link];
	if (its_strings->sh_type != SHT_STRTAB)
		return 0;
	r = read_new(&reading->source, shdr->sh_offset, shdr->sh_size, &table);
	if (r == 0)
		r = read_new(&reading->source, its_strings->sh_offset, its_strings->sh_size,
			     &strings);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return mt_symbol_table_read(table, shdr->sh_size / sizeof(Elf64_Sym), strings,
				    its_strings->sh_size, ret);
}

static int read_symbols(const struct reading *reading, struct mt_symbol_table *ret)
{
	int r = read_symbol_section(reading, SHT_SYMTAB, ret);

	return r < 0 || ret->len ? r : read_symbol_section(reading, SHT_DYNSYM, ret);
}

static void reading_done(struct reading *reading)
{
	free(reading->phdrs);
	free(reading->shdrs);
	free(reading->names);
}

static int image_new(const struct source *source, bool with_symbols, struct mt_image **ret)
{
	mt_cleanup(reading_done) struct reading reading = { .source = *source };
	mt_cleanup(mt_image_unrefp) struct mt_image *image = NULL;
	int r;

	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->refs = 1;
	image->bytes = sizeof(*image);
	r = read_segments(&reading);
	if (r < 0)
		return r;
	image->machine = reading.ehdr.e_machine;
	r = read_section_headers(&reading);
	if (r < 0)
		return r;
	r = read_code(image, &reading);
	if (r < 0)
		return r;
	r = read_build_id(image, &reading);
	if (r < 0)
		return r;
	r = read_unwind_information(image, &reading);
	if (r == 0 && with_symbols)
		r = read_symbols(&reading, &image->symbols);
	if (r < 0)
		return r;
	image->bytes += image->symbols.len * sizeof(*image->symbols.symbols) +
			image->symbols.name_bytes;
	*ret = mt_take_ptr(image);
	return 0;
}

/* The path that fd was opened by, as far as it leads there. */
static int find_path(int fd, char **ret)
{
	char link[sizeof("/proc/self/fd/") + 11], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0 || path[0] != '/')
		return 0;
	*ret = strndup(path, (size_t)len);
	return *ret ? 0 : -ENOMEM;
}

int mt_image_new_fd(int fd, struct mt_image **ret)
{
	mt_cleanup(mt_image_unrefp) struct mt_image *image = NULL;
	mt_cleanup(mt_freep) char *path = NULL;
	struct mt_file_id file;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return mt_neg_errno();
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	file = mt_file_id_of(&st);
	r = find_path(fd, &path);
	if (r == 0)
		r = image_new(&(struct source){ .fd = fd, .size = (uint64_t)st.st_size },
			      !mt_file_id_stays(&file, path), &image);
	if (r < 0)
		return r;
	image->file = file;
	image->path = mt_take_ptr(path);
	*ret = mt_take_ptr(image);
	return 0;
}

int mt_image_new_memory(const void *bytes, size_t len, struct mt_image **ret)
{
	mt_cleanup(mt_image_unrefp) struct mt_image *image = NULL;
	int r = image_new(&(struct source){ .fd = -1, .bytes = bytes, .size = len }, false, &image);

	if (r < 0)
		return r;
	image->copy = malloc(len);
	if (!image->copy)
		return -ENOMEM;
	memcpy(image->copy, bytes, len);
	image->copy_len = len;
	image->bytes += len;
	*ret = mt_take_ptr(image);
	return 0;
}

struct mt_image *mt_image_ref(struct mt_image *image)
{
	atomic_fetch_add_explicit(&image->refs, 1, memory_order_relaxed);
	return image;
}

void mt_image_unref(struct mt_image *image)
{
	if (!image || atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) > 1)
		return;
	mt_cfi_done(&image->cfi);
	free(image->eh_frame_hdr);
	free(image->eh_frame);
	free(image->debug_frame);
	mt_symbol_table_done(&image->symbols);
	free(image->code);
	free(image->path);
	free(image->copy);
	free(image);
}

bool mt_image_is_code(const struct mt_image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->code_len; i++)
		if (vaddr >= image->code[i].start && vaddr < image->code[i].end)
			return true;
	return false;
}

/* The image's file, to be read from; fails where that is not there as it was. */
static int open_again(const struct mt_image *image, struct source *ret)
{
	mt_cleanup(mt_closep) int fd = -1;
	struct mt_file_id now;
	struct stat st;

	if (!image->path)
		return -ENOENT;
	fd = mt_regular_open(image->path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return mt_neg_errno();
	now = mt_file_id_of(&st);
	if (!mt_file_id_same(&now, &image->file))
		return -ESTALE;
	ret->size = (uint64_t)st.st_size;
	ret->fd = mt_take_fd(&fd);
	return 0;
}

static int read_again(const struct mt_image *image, uint64_t offset, uint8_t *to, size_t len)
{
	struct source source = { .fd = -1 };
	int r = open_again(image, &source);

	if (r < 0)
		return r;
	r = read_at(&source, offset, to, len);
	close(source.fd);
	return r;
}

int mt_image_read_symbols(const struct mt_image *image, struct mt_symbol_table *ret)
{
	mt_cleanup(reading_done) struct reading reading = { .source.fd = -1 };
	struct mt_symbol_table found = { 0 };
	int r = open_again(image, &reading.source);

	if (r == 0)
		r = read_segments(&reading);
	if (r == 0)
		r = read_section_headers(&reading);
	if (r == 0)
		r = read_symbols(&reading, &found);
	mt_closep(&reading.source.fd);
	if (r == -ENOMEM)
		return r;
	*ret = found;
	return 0;
}

ssize_t mt_image_read_before(const struct mt_image *image, uint64_t vaddr, uint8_t *ret, size_t len)
{
	const struct source copy = { .fd = -1, .bytes = image->copy, .size = image->copy_len };

	for (size_t i = 0; i < image->code_len; i++) {
		const struct mt_image_segment *code = &image->code[i];
		uint64_t offset;
		int r;

		if (vaddr <= code->start || vaddr > code->end)
			continue;
		if (vaddr - code->start > code->file_bytes)
			return -ENOENT;
		if (len > vaddr - code->start)
			len = vaddr - code->start;
		offset = code->offset + (vaddr - code->start) - len;
		r = image->copy ? read_at(&copy, offset, ret, len)
				: read_again(image, offset, ret, len);
		return r < 0 ? r : (ssize_t)len;
	}
	return -ENOENT;
}
