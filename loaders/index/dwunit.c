/* SPDX-License-Identifier: Apache-2.0 */
/* dwunit: see the header. Here: line tables. */
#include "loaders/index/dwunit.h"

#include <dwarf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"

void dwunit_memory_release(struct dwunit_memory *m)
{
	free(m->names);
	free(m->tables);
	*m = (struct dwunit_memory){0};
}

void dwunit_release(struct dwunit *u)
{
	free(u->files);
	u->files = NULL;
	u->file_count = 0;
}

bool dwunit_is_late(struct dwunit *u)
{
	if (++u->steps % 1024 == 0 && clock_cpu_ns() > u->until_cpu_ns)
		u->late = true;
	return u->late || lineset_status(u->set);
}

/* ---- which tables were read ---- */

static bool tables_grow(struct dwunit_memory *m)
{
	size_t slots = m->table_slots ? m->table_slots * 2 : 256;
	uint64_t *fresh = calloc(slots, sizeof(*fresh));

	if (!fresh)
		return false;
	for (size_t i = 0; i < m->table_slots; i++) {
		size_t k = hash_u64(HASH_SEED, m->tables[i]) & (slots - 1);

		if (!m->tables[i])
			continue;
		while (fresh[k])
			k = (k + 1) & (slots - 1);
		fresh[k] = m->tables[i];
	}
	free(m->tables);
	m->tables = fresh;
	m->table_slots = slots;
	return true;
}

/* Several units may name one table: true for the first of them. */
static bool table_is_new(struct dwunit_memory *m, uint64_t offset)
{
	const uint64_t key = offset + 1;
	size_t k;

	if (m->table_count * 2 >= m->table_slots && !tables_grow(m))
		return false;
	for (k = hash_u64(HASH_SEED, key) & (m->table_slots - 1); m->tables[k]; k = (k + 1) & (m->table_slots - 1))
		if (m->tables[k] == key)
			return false;
	m->tables[k] = key;
	m->table_count++;
	return true;
}

/* ---- lines ---- */

/* libdw leaves a name relative where its directory is so: it is so to the directory that the compiler ran in. */
static uint32_t file_number(struct dwunit *u, const char *name, const char *dir)
{
	char path[2 * PATH_MAX];

	if (!name || !strcmp(name, "???"))
		return 0;
	if (*name == '/' || !dir || *dir != '/' ||
	    snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return lineset_file(u->set, name);
	return lineset_file(u->set, path);
}

static void files_load(struct dwunit *u, Dwarf_Die *cu)
{
	Dwarf_Attribute attr;
	const char *dir = dwarf_attr(cu, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
	Dwarf_Files *files = NULL;
	size_t n = 0;

	dwunit_release(u);
	if (dwarf_getsrcfiles(cu, &files, &n) || !n)
		return;
	u->files = calloc(n, sizeof(*u->files));
	if (!u->files)
		return;
	u->file_count = n;
	for (size_t i = 0; i < n; i++)
		u->files[i] = file_number(u, dwarf_filesrc(files, i, NULL, NULL), dir);
}

/* One row into the set. libdw has sorted all of a unit's sequences by address. */
static void row_add(struct dwunit *u, Dwarf_Line *line)
{
	Dwarf_Files *files;
	Dwarf_Addr addr;
	size_t file = 0;
	int number = 0, column = 0;
	bool end = false;

	if (dwarf_lineaddr(line, &addr) || dwarf_lineendsequence(line, &end))
		return;
	if (end) {
		lineset_end(u->set, addr);
		return;
	}
	dwarf_lineno(line, &number);
	dwarf_linecol(line, &column);
	dwarf_line_file(line, &files, &file);
	lineset_row(u->set, addr, file < u->file_count ? u->files[file] : 0, number > 0 ? (uint32_t)number : 0,
		    column > 0 ? (uint32_t)column : 0);
}

static void lines_read(struct dwunit *u, Dwarf_Die *cu)
{
	Dwarf_Attribute attr;
	Dwarf_Lines *lines;
	Dwarf_Word offset;
	size_t n;

	if (!dwarf_attr(cu, DW_AT_stmt_list, &attr) || dwarf_formudata(&attr, &offset) ||
	    !table_is_new(u->memory, offset) || dwarf_getsrclines(cu, &lines, &n))
		return;
	for (size_t i = 0; i < n && !dwunit_is_late(u); i++)
		row_add(u, dwarf_onesrcline(lines, i));
}

void dwunit_read(struct dwunit *u, Dwarf_Die *cu)
{
	files_load(u, cu);
	lines_read(u, cu);
	dwinline_read(u, cu);
	dwunit_release(u);
}
