/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/lines/dwunit.h"

#include <dwarf.h>
#include <stdlib.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"

void dwunit_memory_release(struct dwunit_memory *m)
{
	free(m->names);
	free(m->tables.slots);
	free(m->functions.slots);
	*m = (struct dwunit_memory){0};
}

void dwunit_release(struct dwunit *u)
{
	dwline_release(&u->table);
}

bool dwunit_is_late(struct dwunit *u)
{
	if (++u->steps % 1024 == 0 && clock_cpu_ns() > u->until_cpu_ns)
		u->late = true;
	return u->late || lineset_status(u->set);
}

/* ---- what was read before ---- */

static bool set_grow(struct dwunit_set *set)
{
	size_t count = set->slot_count ? set->slot_count * 2 : 256;
	uint64_t *fresh = calloc(count, sizeof(*fresh));

	if (!fresh)
		return false;
	for (size_t i = 0; i < set->slot_count; i++) {
		size_t k = hash_u64(HASH_SEED, set->slots[i]) & (count - 1);

		if (!set->slots[i])
			continue;
		while (fresh[k])
			k = (k + 1) & (count - 1);
		fresh[k] = set->slots[i];
	}
	free(set->slots);
	set->slots = fresh;
	set->slot_count = count;
	return true;
}

bool dwunit_set_add(struct dwunit_set *set, uint64_t value)
{
	const uint64_t key = value + 1;
	size_t k;

	if (!key || (set->count * 2 >= set->slot_count && !set_grow(set)))
		return false;
	k = hash_u64(HASH_SEED, key) & (set->slot_count - 1);
	for (; set->slots[k]; k = (k + 1) & (set->slot_count - 1))
		if (set->slots[k] == key)
			return false;
	set->slots[k] = key;
	set->count++;
	return true;
}

/* ---- lines ---- */

static void lines_read(struct dwunit *u, Dwarf_Die *cu)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	const char *dir = dwarf_attr(cu, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;

	if (!dwarf_attr(cu, DW_AT_stmt_list, &attr) || dwarf_formudata(&attr, &offset) ||
	    !dwline_open(&u->table, u->sections, offset, dir, u->set))
		return;
	if (dwunit_set_add(&u->memory->tables, offset))
		dwline_rows(&u->table, u->set);
}

void dwunit_read(struct dwunit *u, Dwarf_Die *cu)
{
	lines_read(u, cu);
	dwinline_read(u, cu);
	dwunit_release(u);
}
