/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * call_tree.h - each call chain once: a node is a frame and the chain of its callers
 *
 * Contract
 *   Input:     a parent is a root (an enum mt_stop, why the chain ends there) or an id that
 *              the tree gave.
 *   Ownership: mt_call_tree_node()'s pointer is valid for as long as the tree is.
 *   Errors:    -ENOMEM; -EOVERFLOW: no id is left.  The tree is as before then.
 *   Threads:   one at a time.
 *   Bounds:    at most 48 bytes for each distinct chain; ids end where the caller of
 *              mt_call_tree_init() said.
 *
 * Ids are counted up from MT_NODE_FIRST, a parent's is smaller than its child's: a writer
 * that emits the nodes from the id where it stopped up to mt_call_tree_end() emits each once
 * and none before its parent.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "artifact/format.h"

#define MT_NO_MODULE UINT32_MAX

/* What struct mt_node (artifact/format.h) says of a frame. */
struct mt_frame {
	uint64_t offset; /* ELF virtual address; in no module: run-time address */
	uint32_t module; /* or MT_NO_MODULE */
	uint32_t exact;	 /* 1: offset is of the instruction itself, not of a return address */
};

/* The children of a node. */
struct mt_call_family {
	uint32_t last; /* the one that was asked for last; 0: there is none */
	uint32_t len;
};

struct mt_call_node {
	struct mt_frame frame;
	uint32_t parent;
	uint32_t sibling; /* that was asked for before it; 0: none was, or the family is large */
	struct mt_call_family children;
};

/* Nodes side by side; memory as they are used. */
#define MT_CALL_TREE_CHUNK 65536

struct mt_call_tree {
	struct mt_call_node **chunks; /* of the ids from MT_NODE_FIRST on */
	size_t n_chunks;
	struct mt_call_family roots[MT_NODE_FIRST]; /* mt_call_node.children of the roots */
	size_t len;
	size_t most;
	/* Of the children of large families. */
	uint32_t *table;  /* id - MT_NODE_FIRST + 1, at hash or behind; 0: free */
	size_t table_len; /* a power of two, at least twice n_tabled */
	size_t n_tabled;
};

/* end_id: no id is this or above; UINT32_MAX for all. */
int mt_call_tree_init(struct mt_call_tree *tree, uint32_t end_id);
void mt_call_tree_done(struct mt_call_tree *tree);

int mt_call_tree_child(struct mt_call_tree *tree, uint32_t parent, const struct mt_frame *frame,
		       uint32_t *ret);

/* The id that the next new node will have. */
uint32_t mt_call_tree_end(const struct mt_call_tree *tree);

/* id: from MT_NODE_FIRST to below mt_call_tree_end(). */
const struct mt_call_node *mt_call_tree_node(const struct mt_call_tree *tree, uint32_t id);
