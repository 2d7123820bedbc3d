/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/diskfiles.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/disk/diskother.h"
#include "tools/net/netflows.h"
#include "tools/select/askrows.h"

static const char RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'disk' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";
static const char UNDER[] =
	"SELECT disk, under FROM block_devices WHERE ts BETWEEN ?1 AND ?2 AND under <> '' GROUP BY disk, under";
static const char FILES[] =
	"SELECT coalesce(process_id, 0), file, disk, sum(coalesce(reads, 0)), sum(coalesce(read_bytes, 0)), sum(coalesce(writes, 0)),"
	" sum(coalesce(write_bytes, 0)), sum(coalesce(dirty_bytes, 0)), sum(coalesce(grown_bytes, 0) - coalesce(shrunk_bytes, 0)), max(seen)"
	" FROM disk_files WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id, file, disk";

#define LINKS 1024 /* disks that lie on others: more are not followed */

struct link {
	char *disk, *under;
	bool seen; /* of lies_on */
};

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	struct diskfiles *out;         /* by file, disk and who; what is not selected, too */
	size_t cap;
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

	for (size_t i = 0; i < r->n_links; i++) /* each segment says it again */
		if (!strcmp(r->links[i].disk, askrows_text(st, 0)) &&
		    !strcmp(r->links[i].under, askrows_text(st, 1)))
			return;
	if (r->n_links == LINKS || !*askrows_text(st, 0))
		return;
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
		x->wanted = x->wanted || wanted;
		x->many = x->many || x->pid != (p ? (int64_t)p->pid : 0);
		return x;
	}
	*at = r->out->n;
	mem_grow(r->out->rows, r->out->n, r->cap);
	x = &r->out->rows[r->out->n++];
	*x = (struct diskfile){.file = mem_strdup(file),
			       .disk = mem_strdup(disk),
			       .comm = comm,
			       .container = mem_strdup(container),
			       .seen = mem_strdup(askrows_text(st, 9)),
			       .pid = p ? (int64_t)p->pid : 0,
			       .kernel = kernel,
			       .wanted = wanted};
	return x;
}

static uint64_t number(sqlite3_stmt *st, int column)
{
	return (uint64_t)sqlite3_column_int64(st, column);
}

static void take_file(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
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
	free(x->seen);
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

static bool link_leads(const struct reading *r, struct link *l, const char *lower)
{
	l->seen = true;
	if (lists(l->under, lower))
		return true;
	for (size_t i = 0; i < r->n_links; i++)
		if (!r->links[i].seen && lists(l->under, r->links[i].disk) &&
		    link_leads(r, &r->links[i], lower))
			return true;
	return false;
}

static bool lies_on(const struct reading *r, const char *upper, const char *lower)
{
	bool leads = false;

	if (!strcmp(upper, lower))
		return false;
	for (size_t i = 0; i < r->n_links; i++)
		r->links[i].seen = false;
	for (size_t i = 0; i < r->n_links && !leads; i++)
		leads = !r->links[i].seen && !strcmp(r->links[i].disk, upper) &&
			link_leads(r, &r->links[i], lower);
	return leads;
}

/* Rule 2, of the rows of one file. */
static void lower_drop(const struct reading *r, struct diskfile *rows, size_t n)
{
	for (size_t i = 0; i < n && *rows[0].file; i++)
		for (size_t k = 0; k < n && *rows[i].disk; k++)
			if (*rows[k].disk && lies_on(r, rows[k].disk, rows[i].disk)) {
				rows[i].reads = rows[i].read_bytes = 0;
				rows[i].writes = rows[i].write_bytes = 0;
			}
}

/* What one changed of a file and did not write itself. */
static uint64_t left_dirty(const struct diskfile *x)
{
	return !x->kernel && x->dirty_bytes > x->write_bytes ? x->dirty_bytes - x->write_bytes : 0;
}

/* Rule 1, of the rows of one file. */
static void later_share(const struct reading *r, struct diskfile *rows, size_t n)
{
	uint64_t later = 0, dirty = 0, given;
	const char *disk = "";

	(void)r;
	for (size_t i = 0; i < n; i++) {
		later += rows[i].kernel ? rows[i].write_bytes : 0;
		dirty += left_dirty(&rows[i]);
		if (rows[i].kernel && *rows[i].disk)
			disk = rows[i].disk;
	}
	given = later < dirty ? later : dirty;
	later = given;
	for (size_t i = 0; i < n; i++) { /* what is given is taken from the kernel's rows */
		struct diskfile *x = &rows[i];
		uint64_t part = x->kernel && x->write_bytes < later ? x->write_bytes : later;

		if (!x->kernel)
			continue;
		x->writes -= x->write_bytes ? (uint64_t)((double)x->writes * (double)part /
							 (double)x->write_bytes) :
					      0;
		x->write_bytes -= part;
		later -= part;
	}
	for (size_t i = 0; i < n && given; i++) {
		struct diskfile *x = &rows[i];
		uint64_t own = left_dirty(x), part;

		if (!own)
			continue;
		part = own == dirty ? given :
				      (uint64_t)((double)given * (double)own / (double)dirty);
		x->later_bytes = part;
		given -= part;
		dirty -= own;
		if (!*x->disk && *disk) {
			free(x->disk);
			x->disk = mem_strdup(disk);
		}
	}
}

/* `each` for the rows of each file; they are in order of files. */
static void files_each(const struct reading *r,
		       void (*each)(const struct reading *r, struct diskfile *rows, size_t n))
{
	struct diskfiles *f = r->out;
	size_t end;

	for (size_t at = 0; at < f->n; at = end) {
		for (end = at + 1; end < f->n && !strcmp(f->rows[end].file, f->rows[at].file);)
			end++;
		each(r, &f->rows[at], end - at);
	}
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
	if (!*to->seen && *x->seen) {
		free(to->seen);
		to->seen = mem_strdup(x->seen);
	}
	to->wanted = to->wanted || x->wanted;
	to->many = to->many || x->many || to->pid != x->pid;
}

static int by_weight(const void *a, const void *b)
{
	const struct diskfile *x = a, *y = b;

	if (diskother_is(x->file) != diskother_is(y->file))
		return diskother_is(x->file) ? 1 : -1;
	if (weight(x) != weight(y))
		return weight(x) < weight(y) ? 1 : -1;
	if (x->dirty_bytes != y->dirty_bytes)
		return x->dirty_bytes < y->dirty_bytes ? 1 : -1;
	return strcmp(x->file, y->file);
}

static void rows_join(struct diskfiles *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct diskfile x = f->rows[i];

		if (kept && joins(&f->rows[kept - 1], &x)) {
			join(&f->rows[kept - 1], &x);
			file_release(&x);
		} else {
			f->rows[kept++] = x;
		}
	}
	f->n = kept;
}

static void rows_keep(struct diskfiles *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct diskfile x = f->rows[i];

		x.pid = x.many ? 0 : x.pid;
		if (x.wanted && (weight(&x) || x.dirty_bytes || x.grown_bytes))
			f->rows[n++] = x;
		else
			file_release(&x);
	}
	f->n = n;
}

static void files_settle(struct reading *r)
{
	struct diskfiles *f = r->out;

	if (!f->n)
		return;
	qsort(f->rows, f->n, sizeof(*f->rows), by_who);
	files_each(r, lower_drop);
	rows_join(f);
	files_each(r, later_share);
	rows_keep(f);
	if (f->n)
		qsort(f->rows, f->n, sizeof(*f->rows), by_weight);
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
	if (!rc)
		files_settle(&r);
	idmap_release(&r.row_of);
	for (size_t i = 0; i < r.n_links; i++) {
		free(r.links[i].disk);
		free(r.links[i].under);
	}
	free(r.links);
	return rc;
}

void diskfiles_release(struct diskfiles *f)
{
	for (size_t i = 0; i < f->n; i++)
		file_release(&f->rows[i]);
	free(f->rows);
	*f = (struct diskfiles){0};
}
