/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * compressed_section.h - the content of an ELF section that has SHF_COMPRESSED
 *
 * Contract
 *   Input:     the section as it is in the file: an Elf64_Chdr and compressed bytes, of any
 *              content.
 *   Ownership: *ret is the caller's to free().
 *   Errors:    -EBADMSG: malformed, of an unknown kind, or larger than most; -ENOMEM.
 *   Bounds:    most, in bytes.
 */
#include <stddef.h>
#include <stdint.h>

int mt_compressed_section_read(const uint8_t *bytes, size_t len, size_t most, uint8_t **ret,
			       size_t *ret_len);
