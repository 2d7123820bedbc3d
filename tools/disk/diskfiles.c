/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/diskfiles.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/net/netflows.h"
#include "tools/select/askrows.h"

static const char RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'disk' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";
static const char UNDER[] =
	"SELECT disk, under FROM block_devices WHERE ts BETWEEN ?1 AND ?2 AND under <> '' GROUP BY disk, under";
static const char FILES[] =
	"SELECT coalesce(process_id, 0), file, disk, sum(coalesce(reads, 0)), sum(coalesce(read_bytes, 0)), sum(coalesce(writes, 0)),"
	" sum(coalesce(write_bytes, 0)), sum(coalesce(dirty_bytes, 0)), sum(coalesce(grown_bytes, 0) - coalesce(shrunk_bytes, 0))"
	" FROM disk_files WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id, file, disk";

#define CHAIN 8 /* disks that lie on each other: more are not followed */

struct link {
	char *disk, *under;
};

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	struct diskfiles *out;         /* by file, disk and who; what is not selected, too */
	bool *wanted;                  /* of each */
	size_t cap, cap_wanted;
	struct idmap row_of;
	struct link *links;
	size_t n_links, cap_links;
};

static void take_run(void *ctx, sqlite3_stmt *st)
{
	(void)st;
	*(bool *)ctx = true;
}

static void take_under(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	mem_grow(r->links, r->n_links, r->cap_links);
	r->links[r->n_links++] = (struct link){.disk = mem_strdup(askrows_text(st, 0)),
					       .under = mem_strdup(askrows_text(st, 1))};
}

/* "kworker/u8:1-flush-254:0" is one of many: "kworker". */
static char *comm_of(const struct store_process_row *p, bool kernel)
{
	char *comm = mem_strdup(p ? p->comm : "");

	if (kernel)
		comm[strcspn(comm, "/")] = 0;
	return comm;
}

static struct diskfile *row_of(struct reading *r, const struct store_process_row *p,
			       sqlite3_stmt *st)
{
	const char *file = askrows_text(st, 1), *disk = askrows_text(st, 2),
		   *container = p ? netflows_container(p) : "";
	bool kernel = p && select_is_kernel(p), wanted, fresh;
	char *comm = comm_of(p, kernel);
	uint64_t h = hash_str(hash_str(HASH_SEED, file), disk), *at;
	struct diskfile *x;

	at = idmap_ref(&r->row_of, hash_u64(hash_str(hash_str(h, container), comm), kernel),
		       &fresh);
	wanted = p ? select_wants_process(r->sel, p) : !select_is_narrow(r->sel);
	if (!fresh) {
		free(comm);
		x = &r->out->rows[*at];
		r->wanted[*at] = r->wanted[*at] || wanted;
		x->many = x->many || x->pid != (p ? (int64_t)p->pid : 0);
		return x;
	}
	*at = r->out->n;
	mem_grow(r->wanted, r->out->n, r->cap_wanted);
	r->wanted[r->out->n] = wanted;
	mem_grow(r->out->rows, r->out->n, r->cap);
	x = &r->out->rows[r->out->n++];
	*x = (struct diskfile){.file = mem_strdup(file),
			       .disk = mem_strdup(disk),
			       .comm = comm,
			       .container = mem_strdup(container),
			       .pid = p ? (int64_t)p->pid : 0,
			       .kernel = kernel};
	return x;
}

static uint64_t number(sqlite3_stmt *st, int column)
{
	return (uint64_t)sqlite3_column_int64(st, column);
}

static void take_file(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t id = sqlite3_column_int64(st, 0);
	const struct store_process_row *p =
		id > 0 && (uint64_t)id < r->dict->n_processes && r->dict->processes[id].present ?
			&r->dict->processes[id] :
			NULL;
	struct diskfile *x = row_of(r, p, st);

	x->reads += number(st, 3);
	x->read_bytes += number(st, 4);
	x->writes += number(st, 5);
	x->write_bytes += number(st, 6);
	x->dirty_bytes += number(st, 7);
	x->grown_bytes += sqlite3_column_int64(st, 8);
}

/* ---- once all is read ---- */

static void file_release(struct diskfile *x)
{
	free(x->file);
	free(x->disk);
	free(x->comm);
	free(x->container);
}

/* Is `disk` one of a list with commas? */
static bool lists(const char *under, const char *disk)
{
	size_t len = strlen(disk);

	for (const char *at = under; (at = strstr(at, disk)); at++)
		if ((at == under || at[-1] == ' ' || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

static bool lies_on(const struct reading *r, const char *upper, const char *lower, int depth)
{
	for (size_t i = 0; i < r->n_links; i++) {
		const struct link *l = &r->links[i];

		if (strcmp(l->disk, upper) != 0)
			continue;
		if (lists(l->under, lower))
			return true;
		for (size_t k = 0; depth < CHAIN && k < r->n_links; k++)
			if (lists(l->under, r->links[k].disk) &&
			    lies_on(r, r->links[k].disk, lower, depth + 1))
				return true;
	}
	return false;
}

static int by_file(const void *a, const void *b)
{
	const struct diskfile *x = *(const struct diskfile *const *)a,
			      *y = *(const struct diskfile *const *)b;

	return strcmp(x->file, y->file);
}

/* Rule 2, of the rows of one file. */
static void lower_drop(const struct reading *r, struct diskfile **rows, size_t n)
{
	for (size_t i = 0; i < n && *rows[0]->file; i++)
		for (size_t k = 0; k < n && *rows[i]->disk; k++)
			if (*rows[k]->disk && lies_on(r, rows[k]->disk, rows[i]->disk, 0)) {
				rows[i]->reads = rows[i]->read_bytes = 0;
				rows[i]->writes = rows[i]->write_bytes = 0;
			}
}

/* Rule 1, of the rows of one file. */
static void later_share(struct diskfile **rows, size_t n)
{
	uint64_t later = 0, dirty = 0, given = 0;
	struct diskfile *most = NULL;
	const char *disk = "";

	for (size_t i = 0; i < n; i++) {
		if (rows[i]->kernel) {
			later += rows[i]->write_bytes;
			disk = *rows[i]->disk ? rows[i]->disk : disk;
			continue;
		}
		dirty += rows[i]->dirty_bytes;
		if (rows[i]->dirty_bytes && (!most || rows[i]->dirty_bytes > most->dirty_bytes))
			most = rows[i];
	}
	if (!later || !dirty)
		return;
	for (size_t i = 0; i < n; i++) {
		struct diskfile *x = rows[i];

		if (x->kernel) {
			x->write_bytes = x->writes = 0;
			continue;
		}
		if (!x->dirty_bytes)
			continue;
		x->later_bytes = (uint64_t)((double)later * (double)x->dirty_bytes / (double)dirty);
		given += x->later_bytes;
		if (!*x->disk && *disk) {
			free(x->disk);
			x->disk = mem_strdup(disk);
		}
	}
	most->later_bytes += later - given;
}

static void files_settle(struct reading *r)
{
	struct diskfiles *f = r->out;
	struct diskfile **rows = mem_array(f->n + 1, sizeof(*rows));
	size_t end;

	for (size_t i = 0; i < f->n; i++)
		rows[i] = &f->rows[i];
	if (f->n)
		qsort(rows, f->n, sizeof(*rows), by_file);
	for (size_t at = 0; at < f->n; at = end) {
		for (end = at + 1; end < f->n && !strcmp(rows[end]->file, rows[at]->file);)
			end++;
		lower_drop(r, rows + at, end - at);
		later_share(rows + at, end - at);
	}
	free(rows);
}

static uint64_t weight(const struct diskfile *x)
{
	return x->read_bytes + x->write_bytes + x->later_bytes;
}

/* A file's rows of one process: what it made dirty has no disk, what it asked for has one. */
static bool joins(const struct diskfile *x, const struct diskfile *y)
{
	return !strcmp(x->file, y->file) && !strcmp(x->comm, y->comm) &&
	       !strcmp(x->container, y->container) && x->kernel == y->kernel &&
	       (!strcmp(x->disk, y->disk) || (*x->file && (!*x->disk || !*y->disk)));
}

static int by_who(const void *a, const void *b)
{
	const struct diskfile *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	order = order ? order : strcmp(x->comm, y->comm);
	order = order ? order : strcmp(x->container, y->container);
	order = order ? order : (int)x->kernel - (int)y->kernel;
	return order ? order : -strcmp(x->disk, y->disk); /* those with a disk first */
}

static void join(struct diskfile *to, const struct diskfile *x)
{
	to->reads += x->reads;
	to->read_bytes += x->read_bytes;
	to->writes += x->writes;
	to->write_bytes += x->write_bytes;
	to->later_bytes += x->later_bytes;
	to->dirty_bytes += x->dirty_bytes;
	to->grown_bytes += x->grown_bytes;
	to->many = to->many || x->many || to->pid != x->pid;
}

static int by_weight(const void *a, const void *b)
{
	const struct diskfile *x = a, *y = b;

	if (weight(x) != weight(y))
		return weight(x) < weight(y) ? 1 : -1;
	if (x->dirty_bytes != y->dirty_bytes)
		return x->dirty_bytes < y->dirty_bytes ? 1 : -1;
	return strcmp(x->file, y->file);
}

static void files_keep(struct reading *r)
{
	struct diskfiles *f = r->out;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct diskfile *x = &f->rows[i];

		if (r->wanted[i] && (weight(x) || x->dirty_bytes || x->grown_bytes))
			f->rows[n++] = *x;
		else
			file_release(x);
	}
	if (n)
		qsort(f->rows, n, sizeof(*f->rows), by_who);
	for (size_t i = 0; i < n; i++) {
		struct diskfile x = f->rows[i];

		if (kept && joins(&f->rows[kept - 1], &x)) {
			join(&f->rows[kept - 1], &x);
			file_release(&x);
		} else {
			f->rows[kept++] = x;
		}
	}
	f->n = kept;
	for (size_t i = 0; i < kept; i++)
		if (f->rows[i].many)
			f->rows[i].pid = 0;
	if (kept)
		qsort(f->rows, kept, sizeof(*f->rows), by_weight);
}

int diskfiles_read(const struct selection *sel, struct diskfiles *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	int rc;

	*out = (struct diskfiles){0};
	{
		const struct askrows_part parts[] = {
			{RECORDED, take_run, &out->known, {{NULL}, NULL}},
			{UNDER, take_under, &r, {{NULL}, NULL}},
			{FILES, take_file, &r, {{NULL}, NULL}},
		};

		rc = askrows_each(sel, &r.dict, parts, ARRAY_SIZE(parts), e);
	}
	if (!rc) {
		files_settle(&r);
		files_keep(&r);
	}
	idmap_release(&r.row_of);
	for (size_t i = 0; i < r.n_links; i++) {
		free(r.links[i].disk);
		free(r.links[i].under);
	}
	free(r.links);
	free(r.wanted);
	return rc;
}

void diskfiles_release(struct diskfiles *f)
{
	for (size_t i = 0; i < f->n; i++)
		file_release(&f->rows[i]);
	free(f->rows);
	*f = (struct diskfiles){0};
}
