/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * debug_file.h - where a module's separate debug information is
 *
 * The find_debuginfo callback of libdwfl.  Looked at, in this order: the build-id directory
 * (/usr/lib/debug/.build-id), then, for the name in .gnu_debuglink, the module's own folder,
 * .debug in it, and the same folder below /usr/lib/debug.  A file found by name is taken if
 * its build-id is the module's, or, for a module without one, its checksum that in
 * .gnu_debuglink.
 *
 * With DEBUGINFOD_URLS set libdwfl's own callback is used, which also asks those servers.
 * Without, that one would load the library for it (and curl) only to find no server.
 *
 * Contract
 *   Ownership: *ret_name is malloc'ed; libdwfl frees it, and closes the descriptor.
 *   Errors:    -1: none found.
 */
#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

int mt_debug_file_find(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		       const char *file, const char *link, GElf_Word crc, char **ret_name);

/* The build-id directory's file for a build-id, as of the next. */
int mt_debug_file_open_build_id(const uint8_t *build_id, size_t build_id_bytes);

/*
 * Opens a regular file for reading, in a form that libelf can read (report/zstd_sections.h).
 * Nothing else is opened, let alone waited for: -ENOEXEC.  Other errors: as of open(2).
 */
int mt_debug_file_open(const char *path);
