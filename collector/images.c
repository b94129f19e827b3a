/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * images.c - see images.h for the contract
 *
 * Invariants
 *   - The array is in the order of use, the last used at its end: what is dropped first
 *     stands first.  It has as many elements as there are files mapped and kept, a few
 *     hundred: a scan is cheap beside fstat(2).
 *   - An image whose only reference is ours can not be found by anybody else: the count
 *     can be trusted when it says 1.
 */
#include "collector/images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/regular.h"

struct kept {
	struct mt_file_id file;
	struct mt_image *image;
};

struct mt_images {
	struct kept *kept;
	size_t len, capacity;
};

int mt_images_new(struct mt_images **ret)
{
	struct mt_images *images = calloc(1, sizeof(*images));

	if (!images)
		return -ENOMEM;
	*ret = images;
	return 0;
}

void mt_images_free(struct mt_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->len; i++)
		mt_image_unref(images->kept[i].image);
	free(images->kept);
	free(images);
}

static bool is_idle(const struct kept *kept)
{
	return atomic_load_explicit(&kept->image->refs, memory_order_acquire) == 1;
}

static void take_out(struct mt_images *images, size_t i)
{
	images->len--;
	memmove(&images->kept[i], &images->kept[i + 1], (images->len - i) * sizeof(*images->kept));
}

static void drop_idle(struct mt_images *images)
{
	size_t idle_bytes = 0;

	for (size_t i = images->len; i-- > 0;) {
		struct mt_image *image = images->kept[i].image;

		if (!is_idle(&images->kept[i]))
			continue;
		idle_bytes += image->bytes;
		if (idle_bytes <= MT_IMAGES_IDLE_BYTES)
			continue;
		idle_bytes -= image->bytes;
		mt_image_unref(image);
		take_out(images, i);
	}
}

static int append(struct mt_images *images, struct kept kept)
{
	struct kept *larger;
	size_t capacity;

	if (images->len == images->capacity) {
		capacity = images->capacity ? 2 * images->capacity : 32;
		larger = reallocarray(images->kept, capacity, sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		images->kept = larger;
		images->capacity = capacity;
	}
	images->kept[images->len++] = kept;
	return 0;
}

int mt_images_get_fd(struct mt_images *images, int fd, struct mt_image **ret)
{
	mt_cleanup(mt_image_unrefp) struct mt_image *image = NULL;
	struct mt_file_id file;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return mt_neg_errno();
	file = mt_file_id_of(&st);
	for (size_t i = 0; i < images->len; i++) {
		struct kept kept = images->kept[i];

		if (!mt_file_id_same(&kept.file, &file))
			continue;
		take_out(images, i);
		images->kept[images->len++] = kept;
		*ret = mt_image_ref(kept.image);
		return 0;
	}
	r = mt_image_new_fd(fd, &image);
	if (r < 0)
		return r;
	r = append(images, (struct kept){ .file = file, .image = image });
	if (r < 0)
		return r;
	*ret = mt_image_ref(mt_take_ptr(image));
	drop_idle(images);
	return 0;
}

int mt_images_get_path(struct mt_images *images, const char *path, struct mt_image **ret)
{
	mt_cleanup(mt_closep) int fd = mt_regular_open(path);

	if (fd < 0)
		return fd;
	return mt_images_get_fd(images, fd, ret);
}
