/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call_tree.c - see call_tree.h for the contract
 *
 * Invariants
 *   - The table is at most half full, so that a search ends, and soon.
 *   - Nodes are never moved within the array or removed: an id is its place.
 *   - A chain's frames are asked for one after the other, and most chains are like the one
 *     before: a node's last child is looked at before the table.  Who has no last child has none.
 */
#include "collector/call_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_TABLE_LEN 4096

int mt_call_tree_init(struct mt_call_tree *tree, uint32_t end_id)
{
	struct mt_call_tree made = {
		.most = end_id > MT_NODE_FIRST ? end_id - MT_NODE_FIRST : 0,
		.table_len = FIRST_TABLE_LEN,
	};

	made.table = calloc(made.table_len, sizeof(*made.table));
	if (!made.table)
		return -ENOMEM;
	*tree = made;
	return 0;
}

void mt_call_tree_done(struct mt_call_tree *tree)
{
	free(tree->nodes);
	free(tree->table);
	*tree = (struct mt_call_tree){ 0 };
}

/* module and exact, as one number */
static inline uint64_t rest_of(const struct mt_frame *frame)
{
	return frame->module | (uint64_t)frame->exact << 32;
}

static inline uint32_t hash_of(uint32_t parent, const struct mt_frame *frame)
{
	uint64_t h = (frame->offset ^ rest_of(frame) << 29) * 0x9e3779b97f4a7c15ULL;

	h = (h ^ h >> 32 ^ parent) * 0xc2b2ae3d27d4eb4fULL;
	return (uint32_t)(h >> 32);
}

static inline bool is_same(const struct mt_call_node *node, uint32_t parent,
			   const struct mt_frame *frame)
{
	return node->parent == parent && node->frame.offset == frame->offset &&
	       rest_of(&node->frame) == rest_of(frame);
}

static inline uint32_t *last_child(struct mt_call_tree *tree, uint32_t parent)
{
	return parent < MT_NODE_FIRST ? &tree->root_child[parent]
				      : &tree->nodes[parent - MT_NODE_FIRST].child;
}

static int grow_nodes(struct mt_call_tree *tree)
{
	size_t capacity = tree->capacity ? 2 * tree->capacity : FIRST_TABLE_LEN / 2;
	struct mt_call_node *nodes = reallocarray(tree->nodes, capacity, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	tree->capacity = capacity;
	return 0;
}

static int grow_table(struct mt_call_tree *tree)
{
	size_t len = 2 * tree->table_len;
	uint32_t *table = calloc(len, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < tree->len; i++) {
		const struct mt_call_node *node = &tree->nodes[i];
		size_t at = hash_of(node->parent, &node->frame) & (len - 1);

		while (table[at])
			at = (at + 1) & (len - 1);
		table[at] = (uint32_t)i + 1;
	}
	free(tree->table);
	tree->table = table;
	tree->table_len = len;
	return 0;
}

static int add(struct mt_call_tree *tree, uint32_t parent, const struct mt_frame *frame,
	       uint32_t hash, uint32_t *ret)
{
	size_t at;
	int r;

	if (tree->len >= tree->most)
		return -EOVERFLOW;
	if (tree->len == tree->capacity) {
		r = grow_nodes(tree);
		if (r < 0)
			return r;
	}
	if (2 * (tree->len + 1) > tree->table_len) {
		r = grow_table(tree);
		if (r < 0)
			return r;
	}
	for (at = hash & (tree->table_len - 1); tree->table[at];)
		at = (at + 1) & (tree->table_len - 1);
	tree->nodes[tree->len] = (struct mt_call_node){
		.frame = *frame,
		.parent = parent,
	};
	*ret = mt_call_tree_end(tree);
	tree->table[at] = (uint32_t)++tree->len;
	return 0;
}

/* Among all children; 0: there is none. */
static uint32_t find(const struct mt_call_tree *tree, uint32_t parent, const struct mt_frame *frame,
		     uint32_t hash)
{
	size_t at = hash & (tree->table_len - 1);
	uint32_t i;

	while ((i = tree->table[at])) {
		if (is_same(&tree->nodes[i - 1], parent, frame))
			return MT_NODE_FIRST + i - 1;
		at = (at + 1) & (tree->table_len - 1);
	}
	return 0;
}

int mt_call_tree_child(struct mt_call_tree *tree, uint32_t parent, const struct mt_frame *frame,
		       uint32_t *ret)
{
	uint32_t child, hash, id;
	int r;

	assert(parent < mt_call_tree_end(tree));
	child = *last_child(tree, parent);
	if (child && is_same(&tree->nodes[child - MT_NODE_FIRST], parent, frame)) {
		*ret = child;
		return 0;
	}
	hash = hash_of(parent, frame);
	id = child ? find(tree, parent, frame, hash) : 0;
	if (!id) {
		r = add(tree, parent, frame, hash, &id);
		if (r < 0)
			return r;
	}
	*last_child(tree, parent) = id;
	*ret = id;
	return 0;
}

uint32_t mt_call_tree_end(const struct mt_call_tree *tree)
{
	return MT_NODE_FIRST + (uint32_t)tree->len;
}

const struct mt_call_node *mt_call_tree_node(const struct mt_call_tree *tree, uint32_t id)
{
	assert(id >= MT_NODE_FIRST && id < mt_call_tree_end(tree));
	return &tree->nodes[id - MT_NODE_FIRST];
}
