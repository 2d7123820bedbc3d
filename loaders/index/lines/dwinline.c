/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the tree of a unit for DW_TAG_inlined_subroutine. Each such DIE with code is a node of the
 * lineset; its caller is the nearest one around it within the same function. Its name is that of
 * its origin, which may be in another unit, or in the file that dwz made; each origin is read once.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/lines/dwunit.h"
#include "schema/base/hash.h"

#define DEPTH_MAX  256         /* of DIEs in one another */
#define NAMES_MAX  (1u << 20)  /* origins remembered */
#define RANGES_MAX 100000      /* of one DIE */
#define NO_NAME    "(inlined)" /* its name is not told, or in a file that is not there */

/* ---- names ---- */

static bool names_grow(struct dwunit_memory *m)
{
	size_t slots = m->name_slots ? m->name_slots * 2 : 1024;
	struct dwunit_name *fresh;

	if (m->name_count >= NAMES_MAX) { /* start again */
		memset(m->names, 0, m->name_slots * sizeof(*m->names));
		m->name_count = 0;
		return true;
	}
	fresh = calloc(slots, sizeof(*fresh));
	if (!fresh)
		return false;
	for (size_t i = 0; i < m->name_slots; i++) {
		size_t k = hash_u64(HASH_SEED, (uintptr_t)m->names[i].die) & (slots - 1);

		if (!m->names[i].die)
			continue;
		while (fresh[k].die)
			k = (k + 1) & (slots - 1);
		fresh[k] = m->names[i];
	}
	free(m->names);
	m->names = fresh;
	m->name_slots = slots;
	return true;
}

static const char *string_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, name, &attr) ? dwarf_formstring(&attr) : NULL;
}

/* As the symbol tables name it, so that it is made readable in the same way; else its plain name.
 */
static uint32_t name_read(struct dwunit *u, Dwarf_Die *die)
{
	const char *name = string_of(die, DW_AT_linkage_name);

	if (!name)
		name = string_of(die, DW_AT_MIPS_linkage_name);
	if (!name)
		name = string_of(die, DW_AT_name);
	u->nameless |= !name;
	return lineset_name(u->set, name ? name : NO_NAME, true);
}

static uint32_t name_of(struct dwunit *u, Dwarf_Die *origin)
{
	struct dwunit_memory *m = u->memory;
	size_t k;

	if (m->name_count * 2 >= m->name_slots && !names_grow(m))
		return 0;
	k = hash_u64(HASH_SEED, (uintptr_t)origin->addr) & (m->name_slots - 1);
	for (; m->names[k].die; k = (k + 1) & (m->name_slots - 1))
		if (m->names[k].die == origin->addr)
			return m->names[k].name;
	m->names[k] = (struct dwunit_name){.die = origin->addr, .name = name_read(u, origin)};
	m->name_count++;
	return m->names[k].name;
}

/* ---- one inlined call ---- */

static uint32_t origin_name(struct dwunit *u, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;

	if (!dwarf_attr(die, DW_AT_abstract_origin, &attr))
		return name_of(u, die);
	if (dwarf_formref_die(&attr, &origin))
		return name_of(u, &origin);
	u->nameless = true;
	return lineset_name(u->set, NO_NAME, false);
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &v) || v > UINT32_MAX)
		return 0;
	return (uint32_t)v;
}

/* The node for this DIE, or `parent` where it has no code. */
static uint32_t inline_add(struct dwunit *u, Dwarf_Die *die, uint32_t parent)
{
	uint32_t node = parent;
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	bool made = false;

	for (int n = 0; n < RANGES_MAX && (at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0; n++) {
		if (lo >= hi || !lineset_wants(u->set, lo))
			continue;
		if (!made) {
			node = lineset_inline(
				u->set, &(struct lineset_call){
						.parent = parent,
						.name = origin_name(u, die),
						.file = dwline_file(
							&u->table, number_of(die, DW_AT_call_file)),
						.line = number_of(die, DW_AT_call_line),
						.column = number_of(die, DW_AT_call_column)});
			made = true;
		}
		lineset_range(u->set, node, lo, hi);
	}
	return node;
}

/* ---- the walk ---- */

/* Can code lie in it? Types and namespaces hold functions too (Rust, local classes). */
static bool may_hold_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_entry_point:
	case DW_TAG_common_block:
		return true;
	default:
		return false;
	}
}

struct level {
	Dwarf_Die die;
	uint32_t node; /* around `die` */
};

/* A function with code which another unit has claimed already, or which the linker dropped. */
static bool is_foreign(struct dwunit *u, Dwarf_Die *die)
{
	Dwarf_Addr base, lo, hi;

	if (dwarf_ranges(die, 0, &base, &lo, &hi) <= 0)
		return false;
	return !lineset_wants(u->set, lo) || !dwunit_set_add(&u->memory->functions, lo);
}

/* Are the children of `die` to be walked? *node: around it; then the one that holds for them. */
static bool visit(struct dwunit *u, Dwarf_Die *die, uint32_t *node)
{
	const int tag = dwarf_tag(die);

	if (!may_hold_code(tag) || (tag == DW_TAG_subprogram && is_foreign(u, die)))
		return false;
	if (tag == DW_TAG_inlined_subroutine)
		*node = inline_add(u, die, *node);
	else if (tag == DW_TAG_subprogram)
		*node = 0;
	return true;
}

void dwinline_read(struct dwunit *u, Dwarf_Die *cu)
{
	struct level levels[DEPTH_MAX];
	int depth = 0;

	if (dwarf_child(cu, &levels[0].die))
		return;
	levels[0].node = 0;
	while (depth >= 0 && !dwunit_is_late(u)) {
		struct level *l = &levels[depth];
		uint32_t node = l->node;

		if (visit(u, &l->die, &node) && depth + 1 < DEPTH_MAX &&
		    !dwarf_child(&l->die, &l[1].die)) {
			l[1].node = node;
			depth++;
			continue;
		}
		while (depth >= 0 && dwarf_siblingof(&levels[depth].die, &levels[depth].die))
			depth--;
	}
}
