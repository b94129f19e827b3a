/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scopes.c - see scopes.h
 *
 * Invariants
 *   Ranges are sorted by start, and at one start the outer before the inner; reach is the
 *   greatest end so far, so that a search that walks back from the last start can stop.
 *   A call's outer scope is the one around it in the DIE tree, never the scope of the
 *   definition of what was inlined.
 *   Ranges that start at 0 are those of functions that the linker dropped: no file has code
 *   at its own beginning.
 */
#include "report/scopes.h"

#include <dwarf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "report/grow.h"

#define NO_OUTER SIZE_MAX

struct range {
	Dwarf_Addr start;
	Dwarf_Addr end;
	Dwarf_Addr reach;
	size_t owner; /* in units, or in a unit's calls */
	unsigned int depth;
};

struct ranges {
	struct range *ranges;
	size_t len, room;
	size_t seen; /* those that are not in it, too */
};

/* A function or an inlined call. */
struct call {
	Dwarf_Die die;
	size_t outer; /* in calls; NO_OUTER: a function */
};

struct unit {
	Dwarf_Die die; /* with the line table */
	int walked;
	struct call *calls;
	size_t calls_len, calls_room;
	struct ranges ranges; /* of calls */
};

struct mt_scopes {
	struct unit *units;
	size_t units_len, units_room;
	struct ranges ranges; /* of units */
};

/* The ranges of a DIE; returns how many were added. */
static int add_ranges(struct ranges *ranges, Dwarf_Die *die, size_t owner, unsigned int depth)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int added = 0;

	while (ranges->seen < MT_SCOPES_RANGES_MAX &&
	       (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		int err;

		ranges->seen++;
		if (!start || start >= end)
			continue;
		err = mt_grow(&ranges->ranges, &ranges->room, ranges->len + 1,
			      sizeof(*ranges->ranges));
		if (err)
			return err;
		ranges->ranges[ranges->len++] = (struct range){
			.start = start,
			.end = end,
			.owner = owner,
			.depth = depth,
		};
		added = 1;
	}
	return added;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return (x->owner > y->owner) - (x->owner < y->owner);
}

static void sort_ranges(struct ranges *ranges)
{
	Dwarf_Addr reach = 0;

	if (ranges->len)
		qsort(ranges->ranges, ranges->len, sizeof(*ranges->ranges), by_start);
	for (size_t i = 0; i < ranges->len; i++) {
		if (ranges->ranges[i].end > reach)
			reach = ranges->ranges[i].end;
		ranges->ranges[i].reach = reach;
	}
}

/* The deepest range that contains the address; of several the one that starts last. */
static const struct range *find_range(const struct ranges *ranges, Dwarf_Addr address)
{
	const struct range *best = NULL;
	size_t low = 0, high = ranges->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- && ranges->ranges[low].reach > address) {
		const struct range *range = &ranges->ranges[low];

		if (range->end > address && (!best || range->depth > best->depth))
			best = range;
	}
	return best;
}

int mt_scopes_new(Dwarf *dwarf, struct mt_scopes **ret)
{
	struct mt_scopes *scopes = calloc(1, sizeof(*scopes));
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int err = 0;

	if (!scopes)
		return -ENOMEM;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		err = add_ranges(&scopes->ranges, &die, scopes->units_len, 0);
		if (err > 0)
			err = mt_grow(&scopes->units, &scopes->units_room, scopes->units_len + 1,
				      sizeof(*scopes->units));
		else if (!err)
			continue;
		if (err)
			break;
		scopes->units[scopes->units_len++] = (struct unit){ .die = die };
	}
	if (err < 0) {
		mt_scopes_free(scopes);
		return err;
	}
	sort_ranges(&scopes->ranges);
	*ret = scopes;
	return 0;
}

void mt_scopes_free(struct mt_scopes *scopes)
{
	if (!scopes)
		return;
	for (size_t i = 0; i < scopes->units_len; i++) {
		free(scopes->units[i].calls);
		free(scopes->units[i].ranges.ranges);
	}
	free(scopes->units);
	free(scopes->ranges.ranges);
	free(scopes);
}

/* Whether there can be code in it. */
static int is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return 1;
	default:
		return 0;
	}
}

/*
 * A DIE on the way down: adds it if it is a call with code, and says what is around its
 * children.  Returns 1 to go on with these, 0 to leave them out.
 */
static int visit(struct unit *unit, Dwarf_Die *die, size_t outer, unsigned int depth,
		 size_t *ret_outer)
{
	int tag = dwarf_tag(die);
	int ret;

	*ret_outer = outer;
	if (!is_scope(tag))
		return 0;
	if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
		return 1;
	ret = add_ranges(&unit->ranges, die, unit->calls_len, depth);
	if (ret <= 0)
		/* A declaration or an abstract instance, unless it was inlined. */
		return ret < 0 ? ret : tag == DW_TAG_inlined_subroutine;
	ret = mt_grow(&unit->calls, &unit->calls_room, unit->calls_len + 1, sizeof(*unit->calls));
	if (ret)
		return ret;
	unit->calls[unit->calls_len] = (struct call){
		.die = *die,
		.outer = tag == DW_TAG_subprogram ? NO_OUTER : outer,
	};
	*ret_outer = unit->calls_len++;
	return 1;
}

/*
 * A sibling that does not lie behind all that was visited would make the walk endless, or
 * double it at each depth: what lies there was a child before.
 */
static int next_sibling(Dwarf_Die *die, uintptr_t visited)
{
	return dwarf_siblingof(die, die) == 0 && (uintptr_t)die->addr > visited;
}

/* All calls of a unit, depth first; without recursion, since the depth is the file's. */
static int walk(struct unit *unit, Dwarf_Die *top)
{
	struct {
		Dwarf_Die die;
		size_t outer; /* around die */
	} stack[MT_SCOPES_DEPTH];
	unsigned int depth = 0;
	uintptr_t visited;

	if (dwarf_child(top, &stack[0].die))
		return 0;
	stack[0].outer = NO_OUTER;
	for (;;) {
		Dwarf_Die child;
		size_t inner;
		int ret = visit(unit, &stack[depth].die, stack[depth].outer, depth, &inner);

		if (ret < 0)
			return ret;
		visited = (uintptr_t)stack[depth].die.addr;
		if (ret && depth + 1 < MT_SCOPES_DEPTH &&
		    dwarf_child(&stack[depth].die, &child) == 0) {
			depth++;
			stack[depth].die = child;
			stack[depth].outer = inner;
			continue;
		}
		while (!next_sibling(&stack[depth].die, visited))
			if (!depth--)
				return 0;
	}
}

static int walk_once(struct unit *unit)
{
	Dwarf_Die split = { 0 };
	uint8_t type;
	int err;

	if (unit->walked)
		return 0;
	unit->walked = 1;
	if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL))
		return 0;
	/* A skeleton has the ranges and lines; the DIEs are in the .dwo file, if it is there. */
	err = walk(unit, type == DW_UT_skeleton && split.addr ? &split : &unit->die);
	sort_ranges(&unit->ranges);
	return err;
}

int mt_scopes_find(struct mt_scopes *scopes, Dwarf_Addr address, Dwarf_Die *ret_unit,
		   struct mt_scope ret[MT_SCOPES_MAX])
{
	const struct range *range = find_range(&scopes->ranges, address);
	struct unit *unit;
	int n = 0, err;

	if (!range)
		return -ENOENT;
	unit = &scopes->units[range->owner];
	err = walk_once(unit);
	if (err)
		return err;
	*ret_unit = unit->die;
	range = find_range(&unit->ranges, address);
	if (!range)
		return 0;
	for (size_t i = range->owner; i != NO_OUTER && n < MT_SCOPES_MAX; i = unit->calls[i].outer)
		ret[n++] = (struct mt_scope){
			.die = unit->calls[i].die,
			.inlined = unit->calls[i].outer != NO_OUTER,
		};
	return n;
}
