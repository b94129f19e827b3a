/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * vdso.h - the code that this kernel maps into each process, as an image
 *
 * Contract
 *   Ownership: *ret is a reference for mt_image_unref().
 *   Errors:    -ENOMEM.  A kernel without a vDSO, or one that is no image, is none: *ret is
 *              NULL then.
 */
#include "collector/image.h"

int mt_vdso_image(struct mt_image **ret);
