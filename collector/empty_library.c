/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * empty_library.c - see empty_library.h for the contract
 *
 * Invariants
 *   - Made of headers alone: the toolchain need not know of 32-bit programs.
 *   - Writable as a whole: before glibc 2.35 the loader writes into the dynamic section.
 *   - It says that its stack need not be executable, or all stacks of the process were.
 */
#include "collector/empty_library.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "base/err.h"

#define PAGE_BYTES 4096

struct library {
	Elf32_Ehdr header;
	Elf32_Phdr segments[3];
	Elf32_Dyn dynamic[6];
	Elf32_Sym symbols[1]; /* the one that is none */
	Elf32_Word hash[4];   /* a bucket, a chain, both empty */
	char strings[4];
};

#define AT(member) ((Elf32_Addr)offsetof(struct library, member))

static const struct library library = {
	.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
				 EV_CURRENT, ELFOSABI_SYSV },
		    .e_type = ET_DYN,
		    .e_machine = EM_386,
		    .e_version = EV_CURRENT,
		    .e_phoff = AT(segments),
		    .e_ehsize = sizeof(Elf32_Ehdr),
		    .e_phentsize = sizeof(Elf32_Phdr),
		    .e_phnum = 3,
		    .e_shentsize = sizeof(Elf32_Shdr) },
	.segments = { { .p_type = PT_LOAD,
			.p_filesz = sizeof(struct library),
			.p_memsz = sizeof(struct library),
			.p_flags = PF_R | PF_W,
			.p_align = PAGE_BYTES },
		      { .p_type = PT_DYNAMIC,
			.p_offset = AT(dynamic),
			.p_vaddr = AT(dynamic),
			.p_paddr = AT(dynamic),
			.p_filesz = sizeof(library.dynamic),
			.p_memsz = sizeof(library.dynamic),
			.p_flags = PF_R | PF_W,
			.p_align = sizeof(Elf32_Word) },
		      { .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16 } },
	.dynamic = { { .d_tag = DT_HASH, .d_un.d_ptr = AT(hash) },
		     { .d_tag = DT_STRTAB, .d_un.d_ptr = AT(strings) },
		     { .d_tag = DT_SYMTAB, .d_un.d_ptr = AT(symbols) },
		     { .d_tag = DT_STRSZ, .d_un.d_val = 1 },
		     { .d_tag = DT_SYMENT, .d_un.d_val = sizeof(Elf32_Sym) },
		     { .d_tag = DT_NULL } },
	.hash = { 1, 1, 0, 0 },
};

_Static_assert(sizeof(struct library) < PAGE_BYTES, "one page is mapped");

int mt_empty_library_write(int fd)
{
	ssize_t written = write(fd, &library, sizeof(library));

	if (written < 0)
		return mt_neg_errno();
	return written == sizeof(library) ? 0 : -ENOSPC;
}
