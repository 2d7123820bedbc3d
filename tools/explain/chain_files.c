/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain_files.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tools/select/askrows.h"

static const char SYNCS[] =
	"SELECT process_id, file, sum(calls), sum(us) FROM fsyncs WHERE ts BETWEEN ?1 AND ?2 AND file NOT IN ('', '~other') GROUP BY 1, 2";
/* What was made dirty is written later: once. */
static const char MOVED[] =
	"SELECT process_id, file, 0, max(sum(coalesce(dirty_bytes, 0)), sum(coalesce(write_bytes, 0))) + sum(coalesce(read_bytes, 0))"
	" FROM disk_files WHERE ts BETWEEN ?1 AND ?2 AND file NOT IN ('', '~other') GROUP BY 1, 2";

struct reading {
	struct chain_files *f;
	const struct store_dict *dict; /* of the segment */
	int window;
};

static void take(struct reading *r, sqlite3_stmt *st, struct chain_file **list, size_t *n,
		 size_t *cap)
{
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *file = askrows_text(st, 1), *who;
	struct chain_file *x = NULL;

	if (!p || p->self || select_is_kernel(p))
		return;
	who = *p->container ? p->container : p->comm;
	for (size_t i = 0; !x && i < *n; i++)
		if (!strcmp((*list)[i].file, file) && !strcmp((*list)[i].who, who) &&
		    (*list)[i].container == !!*p->container)
			x = &(*list)[i];
	if (!x) {
		mem_grow(*list, *n, *cap);
		x = &(*list)[(*n)++];
		*x = (struct chain_file){.who = mem_strdup(who),
					 .container = *p->container,
					 .file = mem_strdup(file)};
	}
	x->n[r->window] += sqlite3_column_double(st, 2);
	x->v[r->window] += sqlite3_column_double(st, 3);
}

static void take_sync(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	take(r, st, &r->f->syncs, &r->f->n_syncs, &r->f->cap_syncs);
}

static void take_moved(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	take(r, st, &r->f->moved, &r->f->n_moved, &r->f->cap_moved);
}

int chain_files_read(struct selection *const wide[2], struct chain_files *out, struct err *e)
{
	struct reading r = {.f = out};
	const struct askrows_part parts[] = {{SYNCS, take_sync, &r}, {MOVED, take_moved, &r}};
	int rc = 0;

	*out = (struct chain_files){0};
	for (r.window = 0; r.window < 2 && !rc; r.window++) {
		out->seconds[r.window] =
			(double)(wide[r.window]->to_ns - wide[r.window]->from_ns) / NSEC_PER_SEC;
		rc = askrows_each(wide[r.window], &r.dict, parts, ARRAY_SIZE(parts), e);
	}
	return rc;
}

static void list_release(struct chain_file *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].who);
		free(list[i].file);
	}
	free(list);
}

void chain_files_release(struct chain_files *f)
{
	list_release(f->syncs, f->n_syncs);
	list_release(f->moved, f->n_moved);
	*f = (struct chain_files){0};
}

/* Of those of one, or of all others. */
static const struct chain_file *most(const struct chain_files *f, const struct chain_file *list,
				     size_t n, const char *who, bool container, bool others)
{
	const struct chain_file *best = NULL;
	double more = 0;

	if (f->seconds[0] <= 0 || f->seconds[1] <= 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct chain_file *x = &list[i];
		bool same = x->container == container && !strcmp(x->who, who);
		double by = x->v[1] / f->seconds[1] - x->v[0] / f->seconds[0];

		if (same == others || by <= more)
			continue;
		more = by;
		best = x;
	}
	return best;
}

const struct chain_file *chain_files_sync(const struct chain_files *f, const char *who,
					  bool container)
{
	return most(f, f->syncs, f->n_syncs, who, container, false);
}

const struct chain_file *chain_files_other(const struct chain_files *f, const char *who,
					   bool container)
{
	return most(f, f->moved, f->n_moved, who, container, true);
}
