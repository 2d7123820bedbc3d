/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about files: what disks read and wrote of them, which fill a file system, and deleted ones.
 */
#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/units.h"
#include "tools/disk/diskother.h"
#include "tools/disk/diskprint.h"
#include "tools/print/json.h"
#include "tools/print/row.h"

#define NO_FILE "(of no file)"

static void row_who(struct row *o, int64_t pid, const char *comm, const char *container)
{
	row_number(o, "PID", TABLE_RIGHT, "pid", pid, pid);
	row_text(o, "NAME", TABLE_MIDDLE, "comm", comm);
	row_text(o, "CONTAINER", TABLE_MIDDLE, "container", container);
}

/* "+1.2 MiB"; "-" where nothing changed. */
static void row_change(struct row *o, const char *title, const char *key, int64_t n)
{
	char bytes[UNITS_MAX], text[UNITS_MAX + 1];

	units_bytes((uint64_t)(n < 0 ? -n : n), bytes, sizeof(bytes));
	snprintf(text, sizeof(text), "%c%s", n < 0 ? '-' : '+', bytes);
	row_cell(o, title, TABLE_RIGHT, n ? text : NULL);
	if (o->json)
		row_json(o, key, json_integer(n));
}

static void no_file(struct row *o)
{
	row_cell(o, "FILE", TABLE_MIDDLE, NO_FILE);
	row_text(o, NULL, TABLE_LEFT, "file", "");
}

static void file_row(struct row *o, const struct diskfile *x)
{
	row_who(o, x->pid, x->comm, x->container);
	row_bytes(o, "READ", TABLE_RIGHT, "read_bytes", x->read_bytes, true);
	row_bytes(o, "WRITTEN", TABLE_RIGHT, "write_bytes", x->write_bytes, true);
	row_bytes(o, "LATER", TABLE_RIGHT, "later_bytes", x->later_bytes, true);
	row_bytes(o, "CHANGED", TABLE_RIGHT, "dirty_bytes", x->dirty_bytes, true);
	row_change(o, "GREW", "grown_bytes", x->grown_bytes);
	row_count(o, "READS", TABLE_SPARE_RIGHT, "reads", x->reads, true);
	row_count(o, "WRITES", TABLE_SPARE_RIGHT, "writes", x->writes, true);
	row_word(o, "DISK", TABLE_LEFT, "disk", x->disk);
	if (*x->file)
		diskother_row(o, "FILE", "file", x->file, "files");
	else
		no_file(o);
	row_text(o, "IN CONTAINER", TABLE_MIDDLE, "seen", x->seen);
	row_end(o);
}

struct table *diskprint_files(const struct diskfiles *f, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		file_row(&o, &f->rows[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *diskprint_file_json(const struct diskfile *x)
{
	struct row o = row_of_json();

	file_row(&o, x);
	return o.json;
}

static json_t *by_json(const struct diskfull_mount *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_by; i++) {
		const struct diskfull_by *x = &m->by[i];
		json_t *o = json_object();

		json_object_set_new(o, "file", json_text_or_null(x->file));
		json_object_set_new(o, "comm", json_text_or_null(x->comm));
		json_object_set_new(o, "container", json_text_or_null(x->container));
		json_object_set_new(o, "pid", x->pid ? json_integer(x->pid) : json_null());
		json_object_set_new(o, x->written ? "written_bytes" : "grown_bytes",
				    json_integer(x->bytes));
		json_array_append_new(list, o);
	}
	return list;
}

static void full_row(struct row *o, const struct diskfull_mount *m)
{
	static const struct diskfull_by none = {
		.file = (char *)"", .comm = (char *)"", .container = (char *)""};
	const struct diskfull_by *by = m->n_by ? &m->by[0] : &none;
	char text[UNITS_MAX], used[UNITS_MAX];

	row_text(o, "FILE SYSTEM", TABLE_MIDDLE, "mount", m->mount);
	row_bytes(o, "SIZE", TABLE_RIGHT, "size", (uint64_t)m->size, true);
	row_bytes(o, "LEFT", TABLE_RIGHT, "left", (uint64_t)m->left, true);
	row_cell(o, "LEFT", TABLE_RIGHT,
		 units_share((double)m->left, (double)m->size, used, sizeof(used)));
	row_change(o, "FILLED", "filled_bytes", m->first_left - m->left);
	row_cell(o, "FULL IN", TABLE_RIGHT,
		 m->full_s < 0 ? NULL : units_seconds(m->full_s, text, sizeof(text)));
	if (o->json)
		row_json(o, "full_s", m->full_s < 0 ? json_null() : json_real(m->full_s));
	row_bytes(o, "DELETED", TABLE_RIGHT, "deleted_bytes", m->deleted, m->deleted);
	row_number(o, NULL, TABLE_RIGHT, "inodes", m->inodes, m->inodes);
	row_number(o, NULL, TABLE_RIGHT, "inodes_left", m->inodes_left, m->inodes);
	row_change(o, "GREW", NULL, by->bytes);
	row_cell(o, "NAME", TABLE_MIDDLE, *by->comm ? by->comm : NULL);
	row_cell(o, "CONTAINER", TABLE_MIDDLE, *by->container ? by->container : NULL);
	row_cell(o, "MOST BY", TABLE_MIDDLE, *by->file ? by->file : NULL);
	if (o->json)
		row_json(o, "by", by_json(m));
	if (m->full_s >= 0 && m->full_s < 86400)
		row_color(o, TERM_RED);
	row_end(o);
}

struct table *diskprint_full(const struct diskfull *f, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		full_row(&o, &f->mounts[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *diskprint_full_json(const struct diskfull_mount *m)
{
	struct row o = row_of_json();

	full_row(&o, m);
	return o.json;
}

static void held_row(struct row *o, const struct diskheld *x)
{
	row_bytes(o, "TAKES", TABLE_RIGHT, "bytes", x->bytes, true);
	row_who(o, x->pid, x->comm, x->container);
	row_number(o, "OPEN IN", TABLE_RIGHT, "holders", (int64_t)x->holders, x->holders);
	row_text(o, "FILE SYSTEM", TABLE_MIDDLE, "mount", x->mount);
	row_text(o, "FILE", TABLE_MIDDLE, "file", x->file);
	row_number(o, NULL, TABLE_RIGHT, "ino", x->ino, true);
	row_time(o, "time", x->ts * NSEC_PER_SEC);
	row_end(o);
}

struct table *diskprint_held(const struct diskhelds *h, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		held_row(&o, &h->rows[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *diskprint_held_json(const struct diskheld *x)
{
	struct row o = row_of_json();

	held_row(&o, x);
	return o.json;
}
