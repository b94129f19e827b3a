/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * debug_file.c - see debug_file.h
 */
#include "report/debug_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "report/zstd_sections.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"

int mt_debug_file_open(const char *path)
{
	mt_cleanup(mt_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return mt_neg_errno();
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	return mt_zstd_sections_expand(mt_take_fd(&fd));
}

int mt_debug_file_open_build_id(const uint8_t *build_id, size_t build_id_bytes)
{
	char path[sizeof(DEBUG_DIRECTORY "/.build-id/xx/.debug") + 2 * 64];
	size_t len;

	if (build_id_bytes < 2 || build_id_bytes > 64)
		return -ENOENT;
	len = (size_t)snprintf(path, sizeof(path), DEBUG_DIRECTORY "/.build-id/%02x/", build_id[0]);
	for (size_t i = 1; i < build_id_bytes; i++)
		len += (size_t)snprintf(path + len, sizeof(path) - len, "%02x", build_id[i]);
	snprintf(path + len, sizeof(path) - len, ".debug");
	return mt_debug_file_open(path);
}

/* The checksum of .gnu_debuglink: CRC-32 of ISO 3309, as zlib's. */
static int checksum(int fd, uint32_t *ret)
{
	uint32_t table[256], crc = UINT32_MAX;
	unsigned char bytes[16384];
	off_t at = 0;
	ssize_t n;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
	}
	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
		at += n;
	}
	if (n < 0)
		return mt_neg_errno();
	*ret = ~crc;
	return 0;
}

static int same_build_id(int fd, const unsigned char *build_id, int build_id_bytes)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *found;
	ssize_t len = elf ? dwelf_elf_gnu_build_id(elf, &found) : -1;
	int same = len == build_id_bytes && !memcmp(found, build_id, (size_t)len);

	elf_end(elf);
	return same;
}

static int belongs(Dwfl_Module *module, int fd, GElf_Word crc)
{
	const unsigned char *build_id;
	GElf_Addr vaddr;
	int bytes = dwfl_module_build_id(module, &build_id, &vaddr);
	uint32_t found;

	if (bytes > 0)
		return same_build_id(fd, build_id, bytes);
	return !checksum(fd, &found) && found == crc;
}

/* Takes path. */
static int try_path(Dwfl_Module *module, char *path, GElf_Word crc, char **ret_name)
{
	mt_cleanup(mt_freep) char *own = path;
	mt_cleanup(mt_closep) int fd = own ? mt_debug_file_open(own) : -1;

	if (fd < 0 || !belongs(module, fd, crc))
		return -1;
	*ret_name = mt_take_ptr(own);
	return mt_take_fd(&fd);
}

static char *join(const char *a, const char *b, const char *c, const char *d)
{
	char *path;

	return asprintf(&path, "%s%s%s%s", a, b, c, d) < 0 ? NULL : path;
}

static int find_by_name(Dwfl_Module *module, const char *file, const char *link, GElf_Word crc,
			char **ret_name)
{
	mt_cleanup(mt_freep) char *real = realpath(file, NULL);
	const char *folder = real ? dirname(real) : NULL;
	int fd;

	if (!folder)
		return -1;
	fd = try_path(module, join(folder, "/", link, ""), crc, ret_name);
	if (fd < 0)
		fd = try_path(module, join(folder, "/.debug/", link, ""), crc, ret_name);
	if (fd < 0)
		fd = try_path(module, join(DEBUG_DIRECTORY, folder, "/", link), crc, ret_name);
	return fd;
}

int mt_debug_file_find(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		       const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	const unsigned char *build_id;
	GElf_Addr vaddr;
	int bytes, fd;

	if (servers && servers[0])
		return dwfl_standard_find_debuginfo(module, userdata, name, base, file, link, crc,
						    ret_name);
	/* No checksum: it is the file that dwz made.  libdw looks for that by name itself. */
	if (link && !crc)
		return dwfl_build_id_find_debuginfo(module, userdata, name, base, file, link, crc,
						    ret_name);
	bytes = dwfl_module_build_id(module, &build_id, &vaddr);
	fd = bytes > 0 ? mt_debug_file_open_build_id(build_id, (size_t)bytes) : -1;
	if (fd >= 0 && belongs(module, fd, crc))
		return fd;
	if (fd >= 0)
		close(fd);
	return file && link ? find_by_name(module, file, link, crc, ret_name) : -1;
}
