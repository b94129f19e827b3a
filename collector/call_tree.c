/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call_tree.c - see call_tree.h for the contract
 *
 * Invariants
 *   - The table is at most half full, so that a search ends, and soon.
 *   - Nodes are never moved or removed: an id is its place.  None lies in two lines of the cache:
 *     in a large tree, to get at a node is what costs most.
 *   - A chain's frames are asked for one after the other, and most chains are like the one
 *     before: a node's last child is looked at before all others.
 *   - Nearly all nodes have few children.  Those are a list, the one asked for last first: no
 *     memory but their own is touched to find one, or to add it.  The children of a family of
 *     more than FAMILY_FEW, and no others, are in the table.
 */
#include "collector/call_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define LINE_BYTES 64

_Static_assert(LINE_BYTES % sizeof(struct mt_call_node) == 0, "nodes lie in two lines");

#define FIRST_TABLE_LEN 4096
#define FAMILY_FEW 8

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
	for (size_t i = 0; i < tree->n_chunks; i++)
		free(tree->chunks[i]);
	free(tree->chunks);
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

static inline struct mt_call_node *node_of(const struct mt_call_tree *tree, uint32_t id)
{
	uint32_t at = id - MT_NODE_FIRST;

	return &tree->chunks[at / MT_CALL_TREE_CHUNK][at % MT_CALL_TREE_CHUNK];
}

static inline struct mt_call_family *family_of(struct mt_call_tree *tree, uint32_t parent)
{
	return parent < MT_NODE_FIRST ? &tree->roots[parent] : &node_of(tree, parent)->children;
}

static int grow_nodes(struct mt_call_tree *tree)
{
	struct mt_call_node **chunks = reallocarray(tree->chunks, tree->n_chunks + 1,
						    sizeof(*chunks));

	if (!chunks)
		return -ENOMEM;
	tree->chunks = chunks;
	chunks[tree->n_chunks] = aligned_alloc(LINE_BYTES,
					       MT_CALL_TREE_CHUNK * sizeof(struct mt_call_node));
	if (!chunks[tree->n_chunks])
		return -ENOMEM;
	tree->n_chunks++;
	return 0;
}

static void put(const struct mt_call_tree *tree, uint32_t *table, size_t table_len, uint32_t entry)
{
	const struct mt_call_node *node = node_of(tree, MT_NODE_FIRST + entry - 1);
	size_t at = hash_of(node->parent, &node->frame) & (table_len - 1);

	while (table[at])
		at = (at + 1) & (table_len - 1);
	table[at] = entry;
}

static int grow_table(struct mt_call_tree *tree)
{
	size_t len = 2 * tree->table_len;
	uint32_t *table = calloc(len, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < tree->table_len; i++)
		if (tree->table[i])
			put(tree, table, len, tree->table[i]);
	free(tree->table);
	tree->table = table;
	tree->table_len = len;
	return 0;
}

static void put_in_table(struct mt_call_tree *tree, uint32_t id)
{
	put(tree, tree->table, tree->table_len, id - MT_NODE_FIRST + 1);
	tree->n_tabled++;
}

/* Room for a node, and for what comes into the table with it. */
static int reserve(struct mt_call_tree *tree)
{
	if (tree->len >= tree->most)
		return -EOVERFLOW;
	if (2 * (tree->n_tabled + FAMILY_FEW + 1) > tree->table_len) {
		int r = grow_table(tree);

		if (r < 0)
			return r;
	}
	return tree->len == tree->n_chunks * MT_CALL_TREE_CHUNK ? grow_nodes(tree) : 0;
}

static int add(struct mt_call_tree *tree, uint32_t parent, const struct mt_frame *frame,
	       uint32_t *ret)
{
	struct mt_call_family *family;
	uint32_t id = mt_call_tree_end(tree);
	int r = reserve(tree);

	if (r < 0)
		return r;
	family = family_of(tree, parent);
	tree->len++;
	*node_of(tree, id) = (struct mt_call_node){
		.frame = *frame,
		.parent = parent,
		.sibling = family->len < FAMILY_FEW ? family->last : 0,
	};
	if (family->len == FAMILY_FEW)
		for (uint32_t i = family->last; i; i = node_of(tree, i)->sibling)
			put_in_table(tree, i);
	if (family->len >= FAMILY_FEW)
		put_in_table(tree, id);
	family->last = id;
	family->len++;
	*ret = id;
	return 0;
}

/* Among the children of a large family; 0: there is none. */
static uint32_t find_in_table(const struct mt_call_tree *tree, uint32_t parent,
			      const struct mt_frame *frame)
{
	size_t at = hash_of(parent, frame) & (tree->table_len - 1);
	uint32_t i;

	while ((i = tree->table[at])) {
		if (is_same(node_of(tree, MT_NODE_FIRST + i - 1), parent, frame))
			return MT_NODE_FIRST + i - 1;
		at = (at + 1) & (tree->table_len - 1);
	}
	return 0;
}

/* Among those behind the first of a list, where it becomes the first; 0: there is none. */
static uint32_t find_in_list(const struct mt_call_tree *tree, uint32_t first,
			     const struct mt_frame *frame)
{
	struct mt_call_node *before = node_of(tree, first), *node;
	uint32_t id;

	for (; (id = before->sibling); before = node) {
		node = node_of(tree, id);
		if (is_same(node, before->parent, frame)) {
			before->sibling = node->sibling;
			node->sibling = first;
			return id;
		}
	}
	return 0;
}

int mt_call_tree_child(struct mt_call_tree *tree, uint32_t parent, const struct mt_frame *frame,
		       uint32_t *ret)
{
	struct mt_call_family *family;
	uint32_t id = 0;

	assert(parent < mt_call_tree_end(tree));
	family = family_of(tree, parent);
	if (family->last) {
		if (is_same(node_of(tree, family->last), parent, frame)) {
			*ret = family->last;
			return 0;
		}
		id = family->len > FAMILY_FEW ? find_in_table(tree, parent, frame)
					      : find_in_list(tree, family->last, frame);
	}
	if (!id)
		return add(tree, parent, frame, ret);
	family->last = id;
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
	return node_of(tree, id);
}
