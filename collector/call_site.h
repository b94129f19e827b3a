/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * call_site.h - does a call instruction of x86-64 end here?
 *
 * Contract
 *   Input:     the bytes of code that end at the address in question, the last ones of
 *              them, MT_CALL_SITE_BYTES if there are as many; any bytes.
 *   Bounds:    none is read but those.
 *
 * Code can not be decoded backwards, so what is found is an end that a call could have: of
 * bytes that mean something else, some have one by chance.  Prefixes come before what is
 * looked at, and are of no matter.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_CALL_SITE_BYTES 7

/* call *%reg, call *mem: ff /2 */
bool mt_call_site_indirect(const uint8_t *bytes, size_t len);

/* call rel32: e8; *ret is how far behind the address it goes. */
bool mt_call_site_direct(const uint8_t *bytes, size_t len, int32_t *ret);
