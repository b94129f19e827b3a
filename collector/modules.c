/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * modules.c - see modules.h for the contract
 *
 * Invariants
 *   - A module's id is its index in known[]; it is put when it gets its id.  table[] has the
 *     ids by hash, at most half of its places are taken.
 *   - The image is looked for anew for each process, by paths that only that process
 *     makes true; the cache below knows files by device and inode, so that finding the
 *     same file again costs an open.
 *   - A module's functions are those of the first file that is found for it: others have its
 *     build-id, or there is none to tell them by.
 */
#include "collector/modules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/weight.h"
#include "base/build_id.h"
#include "base/cleanup.h"
#include "collector/images.h"
#include "collector/mappings.h"
#include "collector/proc_state.h"
#include "collector/vdso.h"
#include "wire/ring.h"

/* Of a process: more than the kernel lets it map.  Of a run: no run has come near. */
#define SPACE_RANGES_MAX 65536
#define MODULES_MAX (1u << 20)

struct known {
	char *path;
	uint8_t build_id[20];
	uint32_t build_id_bytes;
	uint32_t hash;
	bool named; /* its functions were put, or will be found in its file */
};

struct mt_modules {
	struct mt_encode *encode;
	struct mt_images *images;
	struct mt_mappings *mappings;
	struct mt_image *vdso; /* ours: the kernel gives every process the same */
	struct known *known;
	uint32_t n, room;
	uint32_t *table;    /* id + 1, at hash or behind; 0: free */
	uint32_t table_len; /* a power of two */
	uint64_t missing;
	size_t symbols_weight; /* of all that were put */
};

static void modules_freep(struct mt_modules **modules)
{
	mt_modules_free(*modules);
}

int mt_modules_new(struct mt_encode *encode, struct mt_modules **ret)
{
	mt_cleanup(modules_freep) struct mt_modules *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->encode = encode;
	r = mt_images_new(&m->images);
	if (r == 0)
		r = mt_mappings_new(m->images, &m->mappings);
	if (r == 0)
		r = mt_vdso_image(&m->vdso);
	if (r < 0)
		return r;
	*ret = mt_take_ptr(m);
	return 0;
}

void mt_modules_free(struct mt_modules *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		free(m->known[i].path);
	free(m->known);
	free(m->table);
	mt_image_unref(m->vdso);
	mt_mappings_free(m->mappings);
	mt_images_free(m->images);
	free(m);
}

int mt_modules_arrive(struct mt_modules *m, uint32_t tgid)
{
	return mt_mappings_take(m->mappings, tgid);
}

uint64_t mt_modules_missing(const struct mt_modules *m)
{
	return m->missing;
}

static bool is_build_id(const struct mt_module_record *head, const struct mt_image *image)
{
	/* The process has none in memory, or one that a record has no room for. */
	if (!head->build_id_bytes)
		return true;
	return mt_build_id_equal(head->build_id, head->build_id_bytes, image->build_id,
				 image->build_id_bytes);
}

/* The image in the file at path, if it is the record's. */
static int try_path(struct mt_modules *m, const char *path, const struct mt_module_record *head,
		    struct mt_image **ret)
{
	struct mt_image *image;
	int r = mt_images_get_path(m->images, path, &image);

	if (r < 0)
		return r;
	if (!is_build_id(head, image)) {
		mt_image_unref(image);
		return -ENOENT;
	}
	*ret = image;
	return 0;
}

/* As it was mapped when the process shook hands. */
static bool try_start(struct mt_modules *m, uint32_t tgid, const struct mt_module_record *head,
		      struct mt_image **ret)
{
	struct mt_image *image = mt_mappings_find(m->mappings, tgid, head->start, head->end);

	if (!image || !is_build_id(head, image))
		return false;
	*ret = mt_image_ref(image);
	return true;
}

/* Through the process's mapping: the very file, wherever it was, deleted or not. */
static int try_mapping(struct mt_modules *m, uint32_t tgid, const struct mt_module_record *head,
		       struct mt_image **ret)
{
	mt_cleanup(mt_fclosep) FILE *file = mt_proc_open(tgid, "maps");
	mt_cleanup(mt_freep) char *line = NULL;
	uint64_t start, end, inode;
	size_t room = 0;
	char path[96];

	while (file && getline(&line, &room, file) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %" SCNu64, &start, &end,
			   &inode) != 3 ||
		    !inode || start < head->start || start >= head->end)
			continue;
		snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, tgid, start,
			 end);
		return try_path(m, path, head, ret);
	}
	return -ENOENT;
}

/* The file that has the path now, which without a build-id has to be the one that had it. */
static int try_name(struct mt_modules *m, const char *path, const struct mt_module_record *head,
		    struct mt_image **ret)
{
	struct mt_image *image;
	int r = try_path(m, path, head, &image);

	if (r < 0)
		return r;
	if (!head->build_id_bytes && head->ino &&
	    (image->file.dev != head->dev || image->file.ino != head->ino)) {
		mt_image_unref(image);
		return -ENOENT;
	}
	*ret = image;
	return 0;
}

static int find_image(struct mt_modules *m, uint32_t tgid, const struct mt_module_record *head,
		      const char *path, struct mt_image **ret)
{
	mt_cleanup(mt_freep) char *below_root = NULL;
	int r;

	if (head->flags & MT_MODULE_VDSO) {
		*ret = m->vdso ? mt_image_ref(m->vdso) : NULL;
		return 0;
	}
	if (try_start(m, tgid, head, ret))
		return 0;
	r = try_mapping(m, tgid, head, ret);
	if (r != 0 && r != -ENOMEM) {
		if (asprintf(&below_root, "/proc/%u/root%s", tgid, path) < 0)
			return -ENOMEM;
		r = try_name(m, below_root, head, ret);
	}
	if (r != 0 && r != -ENOMEM)
		r = try_name(m, path, head, ret);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		m->missing++;
		*ret = NULL;
	}
	return 0;
}

static uint32_t hash_of(const struct mt_module_record *head, const char *path)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (uint32_t i = 0; i < head->build_id_bytes; i++)
		hash = (hash ^ head->build_id[i]) * 0x100000001b3ULL;
	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 0x100000001b3ULL;
	return (uint32_t)(hash ^ hash >> 32);
}

/* Room for one module more. */
static int reserve(struct mt_modules *m)
{
	uint32_t room = m->room ? 2 * m->room : 64, at;
	struct known *known;
	uint32_t *table;

	if (m->n < m->room)
		return 0;
	known = reallocarray(m->known, room, sizeof(*known));
	if (!known)
		return -ENOMEM;
	m->known = known;
	table = calloc(2 * (size_t)room, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(m->table);
	m->table = table;
	m->table_len = 2 * room;
	m->room = room;
	for (uint32_t i = 0; i < m->n; i++) {
		for (at = known[i].hash & (2 * room - 1); table[at];)
			at = (at + 1) & (2 * room - 1);
		table[at] = i + 1;
	}
	return 0;
}

/* Where the module's id is in the table, or is to be put. */
static uint32_t *look_up(const struct mt_modules *m, const struct mt_module_record *head,
			 const char *path, uint32_t hash)
{
	uint32_t at = hash & (m->table_len - 1);

	for (; m->table[at]; at = (at + 1) & (m->table_len - 1)) {
		const struct known *known = &m->known[m->table[at] - 1];

		if (known->hash == hash &&
		    mt_build_id_equal(known->build_id, known->build_id_bytes, head->build_id,
				      head->build_id_bytes) &&
		    !strcmp(known->path, path))
			break;
	}
	return &m->table[at];
}

static int get_id(struct mt_modules *m, const struct mt_module_record *head, const char *path,
		  uint32_t *ret)
{
	uint32_t hash = hash_of(head, path), *entry;
	struct mt_module module;
	struct known *known;
	int r = reserve(m);

	if (r < 0)
		return r;
	entry = look_up(m, head, path, hash);
	if (*entry) {
		*ret = *entry - 1;
		return 0;
	}
	if (m->n == MODULES_MAX)
		return -EBADMSG;
	known = &m->known[m->n];
	*known = (struct known){
		.path = strdup(path),
		.build_id_bytes = head->build_id_bytes,
		.hash = hash,
	};
	if (!known->path)
		return -ENOMEM;
	memcpy(known->build_id, head->build_id, sizeof(known->build_id));
	*ret = m->n++;
	*entry = m->n;
	module = (struct mt_module){
		.id = *ret,
		.flags = head->flags & (MT_MODULE_MAIN | MT_MODULE_VDSO),
		.path = known->path,
		.build_id = known->build_id,
		.build_id_bytes = known->build_id_bytes,
	};
	return mt_encode_put(m->encode, MT_BATCH_MODULE, &module);
}

/* What of a table there is no room for is counted as left out. */
static int put_table(struct mt_modules *m, uint32_t id, const struct mt_symbol_table *table)
{
	size_t weight = table->len * MT_WEIGHT_SYMBOL + table->name_bytes, n = 0;
	struct mt_symbol_table none = { .left_out = table->left_out + table->len };
	struct mt_module_symbols piece;
	int r;

	_Static_assert(MT_SYMBOLS_LEN * sizeof(struct mt_symbol) + MT_SYMBOL_TABLE_PIECE_BYTES <=
			       MT_BATCH_BYTES - 1024,
		       "a piece has room in a batch");
	if (weight > MT_MODULES_SYMBOLS_WEIGHT - m->symbols_weight)
		table = &none;
	else
		m->symbols_weight += weight;
	if (!table->len && !table->left_out)
		return 0;
	do {
		n += mt_symbol_table_piece(table, n, &piece);
		piece.module = id;
		r = mt_encode_put(m->encode, MT_BATCH_SYMBOLS, &piece);
	} while (r == 0 && n < table->len);
	return r;
}

/* The functions of a module whose file was found, if it will not be found at its path. */
static int put_symbols(struct mt_modules *m, uint32_t id, const struct mt_image *image)
{
	mt_cleanup(mt_symbol_table_done) struct mt_symbol_table read = { 0 };
	int r;

	if (m->known[id].named || image == m->vdso)
		return 0;
	m->known[id].named = true;
	if (mt_file_id_stays(&image->file, m->known[id].path))
		return 0;
	if (image->symbols.len || image->symbols.left_out)
		return put_table(m, id, &image->symbols);
	r = mt_image_read_symbols(image, &read);
	return r < 0 ? r : put_table(m, id, &read);
}

/* The list is complete: the space is that from here on. */
static int end_list(struct mt_space *space, struct mt_space *listing)
{
	if (!listing->len)
		return -EBADMSG;
	mt_space_move(space, listing);
	return 0;
}

int mt_modules_apply(struct mt_modules *m, struct mt_space *space, struct mt_space *listing,
		     uint32_t tgid, const void *record, size_t len)
{
	mt_cleanup(mt_image_unrefp) struct mt_image *image = NULL;
	const char *path = (const char *)record + sizeof(struct mt_module_record);
	struct mt_module_record head;
	struct mt_space_range range;
	int r;

	if (len <= sizeof(head))
		return -EBADMSG;
	memcpy(&head, record, sizeof(head));
	if (head.flags & MT_MODULE_END)
		return end_list(space, listing);
	if (strnlen(path, len - sizeof(head)) == len - sizeof(head) ||
	    head.build_id_bytes > sizeof(head.build_id) || head.start >= head.end)
		return -EBADMSG;

	if (head.flags & MT_MODULE_FIRST)
		mt_space_clear(listing);
	if (head.flags & MT_MODULE_FIRST || listing->len)
		space = listing;
	if (space->len >= SPACE_RANGES_MAX)
		return -EBADMSG;
	range = (struct mt_space_range){ .start = head.start, .end = head.end, .bias = head.bias };
	r = get_id(m, &head, path, &range.module);
	if (r == 0)
		r = find_image(m, tgid, &head, path, &image);
	if (r == 0 && image)
		r = put_symbols(m, range.module, image);
	if (r < 0)
		return r;
	range.image = image;
	return mt_space_add(space, &range);
}
