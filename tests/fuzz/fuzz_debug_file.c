/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_debug_file.c - no file, and no debug information in it, keeps a report from its end
 *
 * An input is the file of a module.  The good ones are libraries that the build makes.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "report/symbolize.h"
#include "tests/fuzz/fuzz.h"
#include "tests/sample_artifact.h"

#define CODE 0x1000
#define ADDRESSES 96

static const uint64_t edges[] = { 0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX };

#define EDGES (sizeof(edges) / sizeof(edges[0]))

static void check(const struct mt_frames *frames)
{
	size_t bytes = 0;

	fuzz_must(frames->len >= 1);
	for (size_t i = 0; i < frames->len; i++) {
		const struct mt_frame *frame = &frames->frames[i];

		fuzz_must(frame->inlined == (i + 1 < frames->len));
		bytes += frame->function ? strlen(frame->function) : 0;
		bytes += frame->file ? strlen(frame->file) : 0;
	}
	fuzz_must(bytes < SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct mt_run_node nodes[MT_NODE_FIRST + ADDRESSES + EDGES];
	int fd = artifact_fd(bytes, len);
	char path[32];
	struct mt_run_module module = { .path = path };
	struct mt_run run = { .modules = &module,
			      .modules_len = 1,
			      .nodes = nodes,
			      .nodes_len = sizeof(nodes) / sizeof(nodes[0]) };
	struct mt_symbolizer *symbolizer;
	const struct mt_frames *frames;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (uint32_t i = 0; i < ADDRESSES + EDGES; i++)
		nodes[MT_NODE_FIRST + i] = (struct mt_run_node){
			.offset = i < ADDRESSES ? CODE + 7 * i : edges[i - ADDRESSES],
			.exact = i % 2,
		};
	fuzz_must(mt_symbolizer_new(&run, &symbolizer) == 0);
	for (uint32_t i = MT_NODE_FIRST; i < run.nodes_len; i++) {
		fuzz_must(mt_symbolizer_node(symbolizer, i, &frames) == 0);
		check(frames);
	}
	fuzz_must(mt_symbolizer_used(symbolizer, 0));
	mt_symbolizer_free(symbolizer);
	close(fd);
	return 0;
}

/* A library beside this program. */
static struct artifact_bytes read_library(const char *name)
{
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	struct artifact_bytes ret = { NULL, 0 };
	char path[4096], block[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);
	size_t n;

	fuzz_must(len > 0);
	path[len] = '\0';
	strcpy(strrchr(path, '/') + 1, name);
	file = fopen(path, "re");
	if (!file) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	while ((n = fread(block, 1, sizeof(block), file)) > 0)
		artifact_append(&ret, block, n);
	return ret;
}

/*
 * A unit of blocks whose sibling is their first child: one more doubles the ways through.
 */
static void try_doubling(void)
{
	enum { ABBREV = 1, INFO, NAMES, SECTIONS, BLOCKS = 200 };
	static const char names[] = "\0.debug_abbrev\0.debug_info\0.shstrtab";
	static const uint8_t abbrev[] = {
		1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, /* unit: children, low_pc, high_pc */
		2, 0x0b, 1, 0x01, 0x13, 0,    0,	  /* block: children, sibling */
		0,
	};
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr;
		Elf64_Shdr shdrs[SECTIONS];
		char names[sizeof(names)];
		uint8_t abbrev[sizeof(abbrev)];
		uint8_t info[11 + 13 + 5 * BLOCKS];
	} __attribute__((packed)) file = {
		.ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = SECTIONS,
			  .e_shstrndx = NAMES },
		.phdr = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_filesz = sizeof(file),
			  .p_memsz = 2 * CODE,
			  .p_align = 4096 },
	};
	uint8_t *at = file.info + 11 + 13;

	file.shdrs[ABBREV] = (Elf64_Shdr){ .sh_name = 1,
					   .sh_type = SHT_PROGBITS,
					   .sh_offset = (uint64_t)(file.abbrev - (uint8_t *)&file),
					   .sh_size = sizeof(abbrev) };
	file.shdrs[INFO] = (Elf64_Shdr){ .sh_name = 15,
					 .sh_type = SHT_PROGBITS,
					 .sh_offset = (uint64_t)(file.info - (uint8_t *)&file),
					 .sh_size = sizeof(file.info) };
	file.shdrs[NAMES] = (Elf64_Shdr){ .sh_name = 27,
					  .sh_type = SHT_STRTAB,
					  .sh_offset = (uint64_t)((uint8_t *)file.names -
								  (uint8_t *)&file),
					  .sh_size = sizeof(names) };
	memcpy(file.names, names, sizeof(names));
	memcpy(file.abbrev, abbrev, sizeof(abbrev));
	/* Version 4, the abbreviations at 0, addresses of 8 bytes; the unit: all of the code. */
	memcpy(file.info, &(uint32_t){ sizeof(file.info) - 4 }, 4);
	memcpy(file.info + 4, "\4\0\0\0\0\0\x8\1", 8);
	memcpy(file.info + 12, &(uint64_t){ CODE }, 8);
	memcpy(file.info + 20, &(uint32_t){ 0x1000 }, 4);
	for (int i = 0; i < BLOCKS; i++, at += 5) {
		at[0] = 2;
		memcpy(at + 1, &(uint32_t){ (uint32_t)(at + 5 - file.info) }, 4);
	}
	fuzz_try((const uint8_t *)&file, sizeof(file));
}

static size_t header_at(const struct artifact_bytes *file, size_t index)
{
	Elf64_Ehdr ehdr;

	memcpy(&ehdr, file->bytes, sizeof(ehdr));
	return index < ehdr.e_shnum ? ehdr.e_shoff + index * sizeof(Elf64_Shdr) : 0;
}

/* Sections that are not in memory, compressed with zstd, which not every objcopy can do. */
static void compress(struct artifact_bytes *file)
{
	static uint8_t out[65536];
	size_t at;

	for (size_t i = 1; (at = header_at(file, i)); i++) {
		Elf64_Chdr chdr = { .ch_type = 2, .ch_addralign = 1 };
		Elf64_Shdr shdr;
		size_t len;

		memcpy(&shdr, file->bytes + at, sizeof(shdr));
		if (shdr.sh_type != SHT_PROGBITS || shdr.sh_flags || !shdr.sh_size)
			continue;
		len = ZSTD_compress(out, sizeof(out), file->bytes + shdr.sh_offset, shdr.sh_size,
				    1);
		fuzz_must(!ZSTD_isError(len));
		chdr.ch_size = shdr.sh_size;
		shdr.sh_flags = SHF_COMPRESSED;
		while (file->len % 8)
			artifact_append(file, "", 1);
		shdr.sh_offset = file->len;
		shdr.sh_size = sizeof(chdr) + len;
		artifact_append(file, &chdr, sizeof(chdr));
		artifact_append(file, out, len);
		memcpy(file->bytes + at, &shdr, sizeof(shdr));
	}
}

static void try_library(const char *name, int compressed, size_t step)
{
	struct artifact_bytes file = read_library(name);

	if (compressed)
		compress(&file);
	fuzz_try_around(file.bytes, file.len, step);
	fuzz_try_mixed(file.bytes, file.len, 500);
	free(file.bytes);
}

void fuzz_corpus(void)
{
	try_doubling();
	try_library("debugged_4.so", 0, 19);
	try_library("debugged_5.so", 0, 19);
	try_library("debugged_5.so", 1, 37);
	try_library("debugged_z.so", 0, 37);
}
