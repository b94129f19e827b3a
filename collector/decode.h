/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * decode.h - a slot's stack records, wire/stack_record.h, to windows
 *
 * Contract
 *   Input:     bytes that the target may have written: nothing in them is trusted, and they
 *              may even change while they are read.  Records of one slot, which the caller
 *              found by mt_decode_head(), in the order in which they were sent.  What lies
 *              behind the length that the head tells is not looked at.
 *   Ownership: mt_decoder_new() gives an object for mt_decoder_free(), which takes NULL.
 *              A window's words are the decoder's, until its next record.
 *   Errors:    -EBADMSG: not a record of this budget, or its head is damaged;
 *              -ESTALE: against another reference than the decoder has;
 *              -EILSEQ: the window does not hash to the record's digest;
 *              -ENOMEM, for RAW.
 *              Nothing is returned with an error.  -ESTALE, a damaged head, and all errors
 *              of RAW leave the reference as it was.  The others may void it: every delta is
 *              -ESTALE then, until a key frame comes, for which the caller asks by
 *              mt_reference.resync_asked.
 *   Threads:   one at a time for each decoder.
 *   Bounds:    two windows of the budget, the second when it is needed, and 1.4 KiB.
 */
#include <stddef.h>
#include <stdint.h>

#include "collector/window.h"
#include "wire/stack_record.h"

struct mt_decoder;

/* budget_bytes: a power of two, 4 to 64 KiB, or -EINVAL. */
int mt_decoder_new(uint32_t budget_bytes, struct mt_decoder **ret);
void mt_decoder_free(struct mt_decoder *decoder);

/*
 * Copies a record's head and verifies all that does not depend on what came before: the record
 * is within len and of this budget, slot, seq and the rest are what was sent, entry is one
 * that the digest can have.  -EBADMSG, or 0; mask[1] is 0 where the head does not have it.
 */
int mt_decode_head(uint32_t budget_bytes, const void *bytes, size_t len,
		   struct mt_stack_record *ret);

/* Decodes and verifies the rest of a record whose head mt_decode_head() gave; of the head's
 * bytes nothing is read again. */
int mt_decode_window(struct mt_decoder *decoder, const struct mt_stack_record *head,
		     const void *bytes, struct mt_window *ret);

/* Decodes and verifies one record. */
int mt_decode_record(struct mt_decoder *decoder, const void *bytes, size_t len,
		     struct mt_window *ret);

static inline void mt_decoder_freep(struct mt_decoder **decoder)
{
	mt_decoder_free(*decoder);
}
