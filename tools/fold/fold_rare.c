/* SPDX-License-Identifier: Apache-2.0 */
/* fold_rare: see the header. */
#include "tools/fold/fold_rare.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/reader.h"

#define HOUR_S 3600
#define ID_MAX ((int64_t)1 << 28)

struct rare_sum {            /* what a function, or a frame without one, had */
	uint32_t group, function, frame;
	uint64_t self, total;
};

struct fold_rares {
	struct group {
		uint32_t run, exe, container;
		uint64_t cut;        /* samples, in all of the hours */
		uint64_t n, ns;      /* of these, what was asked for */
	} *groups;
	size_t n_groups, cap_groups;
	struct idmap group_of;
	struct rare_sum *sums;
	size_t n_sums, cap_sums;
	struct owner {
		uint32_t exe, container;
	} *owners;                   /* by process */
	size_t n_owners;
	struct name {
		const char *name, *module;
	} *names;                    /* by function, the fold's */
	size_t n_names;
	bool *cut;                   /* by frame: is it the mark? */
};

static int refused(struct folding *f, int rc, struct err *e)
{
	sqlite3 *db = store_segment_db(f->seg);

	return err_set(e, (rc & 0xff) == SQLITE_CORRUPT ? -EBADMSG : -EIO, EXIT_STORE, "cannot read %s: %s", sqlite3_db_filename(db, NULL),
		       sqlite3_errmsg(db));
}

static void rares_free(struct fold_rares *r)
{
	if (!r)
		return;
	idmap_release(&r->group_of);
	free(r->groups);
	free(r->sums);
	free(r->owners);
	free(r->names);
	free(r->cut);
	free(r);
}

/* --- what is on record --- */

static uint32_t group_at(struct fold_rares *r, uint32_t run, uint32_t exe, uint32_t container, bool add)
{
	uint64_t key = hash_u64(hash_u64(hash_u64(HASH_SEED, run), exe), container), i;

	for (; idmap_get(&r->group_of, key, &i); key++)
		if (r->groups[i].run == run && r->groups[i].exe == exe && r->groups[i].container == container)
			return (uint32_t)i + 1;
	if (!add)
		return 0;
	mem_grow(r->groups, r->n_groups, r->cap_groups);
	idmap_set(&r->group_of, key, r->n_groups);
	r->groups[r->n_groups] = (struct group){.run = run, .exe = exe, .container = container};
	return (uint32_t)++r->n_groups;
}

static uint32_t id_of(sqlite3_stmt *st, int column)
{
	int64_t v = sqlite3_column_int64(st, column);

	return v > 0 && v < ID_MAX ? (uint32_t)v : 0;
}

static void take_sum(struct fold_rares *r, sqlite3_stmt *st)
{
	uint32_t group = group_at(r, id_of(st, 0), id_of(st, 1), id_of(st, 2), true) - 1;
	struct rare_sum x = {.group = group, .function = id_of(st, 3), .frame = id_of(st, 4), .self = (uint64_t)sqlite3_column_int64(st, 5),
			     .total = (uint64_t)sqlite3_column_int64(st, 6)};

	r->groups[group].cut += x.self; /* each sample that was cut ends in one function */
	mem_grow(r->sums, r->n_sums, r->cap_sums);
	r->sums[r->n_sums++] = x;
}

/* Of the hours that the range touches. */
static int read_sums(struct folding *f, struct fold_rares *r, struct err *e)
{
	sqlite3 *db = store_segment_db(f->seg);
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT run, exe, container, function, frame, self, total FROM rare_row, (SELECT value AS t0 FROM meta"
					" WHERE key = 't0') WHERE ts > ?1 - t0 AND ts < ?2 - t0", -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, f->sel->from_ns / NSEC_PER_SEC - HOUR_S);
		sqlite3_bind_int64(st, 2, f->sel->to_ns / NSEC_PER_SEC + (f->sel->to_ns % NSEC_PER_SEC > 0));
	}
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		take_sum(r, st);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : refused(f, rc, e);
}

/* An older schema has none. */
static bool has_sums(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool has = sqlite3_prepare_v2(db, "SELECT 1 FROM rare_row LIMIT 1", -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;

	sqlite3_finalize(st);
	return has;
}

/* --- whose, and how they are called --- */

static int read_owners(struct folding *f, struct fold_rares *r, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(store_segment_db(f->seg), "SELECT id, exe, container FROM process", -1, &st, NULL);

	r->n_owners = f->dict->n_processes;
	r->owners = mem_array(r->n_owners + 1, sizeof(*r->owners));
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (id_of(st, 0) < r->n_owners)
			r->owners[id_of(st, 0)] = (struct owner){id_of(st, 1), id_of(st, 2)};
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : refused(f, rc, e);
}

static void take_name(struct folding *f, struct fold_rares *r, sqlite3_stmt *st)
{
	uint32_t id = id_of(st, 0), image = id_of(st, 2);

	if (!id || id >= r->n_names)
		return;
	r->names[id].name = fold_text(f->b, (const char *)sqlite3_column_text(st, 1) ?: "");
	r->names[id].module = fold_text(f->b, image < f->dict->n_images ? f->dict->images[image].name : "");
}

/* Of the functions that are in the sums. */
static int read_names(struct folding *f, struct fold_rares *r, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(store_segment_db(f->seg), "SELECT id, name, image FROM function", -1, &st, NULL);
	bool *used;

	for (size_t i = 0; i < r->n_sums; i++)
		r->n_names = r->sums[i].function >= r->n_names ? r->sums[i].function + 1u : r->n_names;
	r->names = mem_array(r->n_names + 1, sizeof(*r->names));
	used = mem_array(r->n_names + 1, sizeof(*used));
	for (size_t i = 0; i < r->n_sums; i++)
		used[r->sums[i].function] = true;
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (id_of(st, 0) < r->n_names && used[id_of(st, 0)])
			take_name(f, r, st);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	free(used);
	return rc == SQLITE_DONE ? 0 : refused(f, rc, e);
}

static void find_marks(const struct folding *f, struct fold_rares *r)
{
	r->cut = mem_array(f->dict->n_frames + 1, sizeof(*r->cut));
	for (size_t i = 1; i < f->dict->n_frames; i++)
		r->cut[i] = !f->dict->frames[i].image && !strcmp(f->dict->frames[i].name, STORE_RARE);
}

int fold_rare_begin(struct folding *f, struct fold_rares **out, struct err *e)
{
	struct fold_rares *r;
	int rc;

	*out = NULL;
	if (!store_segment_sealed(f->seg) || !has_sums(store_segment_db(f->seg)))
		return 0;
	r = mem_alloc(sizeof(*r));
	rc = read_sums(f, r, e);
	if (!rc && r->n_sums)
		rc = read_owners(f, r, e);
	if (!rc && r->n_sums)
		rc = read_names(f, r, e);
	if (rc || !r->n_sums) {
		rares_free(r);
		return rc;
	}
	find_marks(f, r);
	*out = r;
	return 0;
}

/* --- what of it is asked for --- */

uint32_t fold_rare_whose(const struct folding *f, struct fold_rares *r, const struct store_total *t)
{
	uint32_t frame = t->stack < f->dict->n_stacks ? f->dict->stack_frame[t->stack] : 0;

	if (frame >= f->dict->n_frames || !r->cut[frame] || t->process >= r->n_owners)
		return 0;
	return group_at(r, t->run, r->owners[t->process].exe, r->owners[t->process].container, false);
}

static uint64_t part_of(uint64_t n, double share)
{
	return (uint64_t)((double)n * share + 0.5);
}

static void tell(struct folding *f, const struct fold_rares *r, const struct rare_sum *x)
{
	const struct group *g = &r->groups[x->group];
	double share = g->n < g->cut ? (double)g->n / (double)g->cut : 1, ns = g->n ? (double)g->ns / (double)g->n : 0;
	struct fold_rare_sum out = {.self_samples = part_of(x->self, share), .total_samples = part_of(x->total, share),
				.self_ns = part_of(x->self, share * ns), .total_ns = part_of(x->total, share * ns)};

	if (x->function) {
		out.name = r->names[x->function].name;
		out.module = r->names[x->function].module;
	} else if (x->frame < f->dict->n_frames && x->frame) {
		uint32_t image = f->dict->frames[x->frame].image;

		out.name = fold_text(f->b, f->dict->frames[x->frame].name);
		out.module = fold_text(f->b, image < f->dict->n_images ? f->dict->images[image].name : "");
	}
	if (out.name && (out.self_samples || out.total_samples))
		fold_add_rare(f->b, &out);
}

void fold_rare_end(struct folding *f, struct fold_rares *r)
{
	for (size_t i = 0; r && f->seg_series && i < f->dict->n_series; i++) {
		const struct seg_series *x = &f->seg_series[i];

		if (!x->rare)
			continue;
		r->groups[x->rare - 1].n += x->n;
		r->groups[x->rare - 1].ns += x->ns;
	}
	for (size_t i = 0; r && i < r->n_sums; i++)
		tell(f, r, &r->sums[i]);
	rares_free(r);
}
