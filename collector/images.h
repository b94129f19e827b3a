/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * images.h - each file's image once, however many processes map it
 *
 * Contract
 *   Input:     a path, or a descriptor that stays the caller's.  A file is known as
 *              collector/file_id.h has it.
 *   Ownership: mt_images_get_*() gives a reference for mt_image_unref().  mt_images_free()
 *              takes NULL; images that are still referred to live on.
 *   Errors:    those of open(2), fstat(2) and mt_image_new_fd(); what could not be made is
 *              tried again at the next call.
 *   Threads:   one at a time.
 *   Bounds:    images that nobody else refers to are kept up to MT_IMAGES_IDLE_BYTES, the
 *              ones used last; those in use are bounded by what is mapped.
 */
#include "collector/image.h"

#define MT_IMAGES_IDLE_BYTES (64u * 1024 * 1024)

struct mt_images;

int mt_images_new(struct mt_images **ret);
void mt_images_free(struct mt_images *images);

int mt_images_get_fd(struct mt_images *images, int fd, struct mt_image **ret);
int mt_images_get_path(struct mt_images *images, const char *path, struct mt_image **ret);
