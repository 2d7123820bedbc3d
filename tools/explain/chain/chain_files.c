/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain/chain_files.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/select/askrows.h"

static const char RECORDED[] =
	"SELECT " ASKROWS_COUNTED_FROM ", " ASKROWS_COUNTED_TO " FROM run WHERE family = 'disk'"
	" AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";
static const char SYNCS[] =
	"SELECT process_id, file, sum(calls), sum(us) FROM fsyncs WHERE ts BETWEEN ?1 AND ?2 AND file NOT IN ('', '~other') GROUP BY 1, 2";
static const char PLACES[] =
	"SELECT DISTINCT w.process, f.value, s.value FROM place_row w JOIN meta t0 ON t0.key = 't0' JOIN text f ON f.id = w.file JOIN text s ON s.id = w.seen"
	" WHERE w.ts + t0.value BETWEEN ?1 AND ?2";
static const char MOVED[] =
	"SELECT coalesce(process_id, 0), file, sum(coalesce(read_bytes, 0)), sum(coalesce(dirty_bytes, 0)), sum(coalesce(write_bytes, 0)), disk"
	" FROM disk_files WHERE ts BETWEEN ?1 AND ?2 AND file <> '' AND file NOT LIKE '%~other' GROUP BY 1, 2, disk";

/* A file that a container sees elsewhere (rule 3). */
struct seen {
	uint64_t who, path; /* hashes: of the container, and of the path there */
	size_t place;       /* the host's path */
};

struct reading {
	struct chain_files *f;
	const struct store_dict *dict; /* of the segment */
	int window;
	int64_t from_ns, to_ns; /* what family disk recorded of it */
	struct seen *seen;
	size_t n_seen, cap_seen;
	struct idmap seen_at;
};

struct list {
	struct chain_file **v;
	size_t *n, *cap;
	struct idmap *at;
};

static size_t place_of(struct chain_files *f, const char *file)
{
	bool fresh;
	uint64_t *at = idmap_ref(&f->place_at, hash_str(HASH_SEED, file), &fresh);

	if (fresh) {
		*at = f->n_places;
		mem_grow(f->places, f->n_places, f->cap_places);
		f->places[f->n_places++] = (struct chain_place){.disks = STRBUF_INIT};
	}
	return *at;
}

/* The container, else the command. NULL: no one waits behind it, as it is a thread of the kernel or
 * sonde itself. */
static const char *who_of(const struct store_process_row *p)
{
	if (!p || p->self || select_is_kernel(p))
		return NULL;
	return *p->container ? p->container : p->comm;
}

static uint64_t who_hash(const char *who, bool container)
{
	return hash_u64(hash_str(HASH_SEED, who), container);
}

/* NULL: of no one who counts. `place` as in struct chain_file. */
static struct chain_file *take(struct reading *r, sqlite3_stmt *st, const struct list *l)
{
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *file = askrows_text(st, 1), *who = who_of(p);
	uint64_t *at;
	bool fresh;

	if (!who)
		return NULL;
	at = idmap_ref(l->at, hash_str(who_hash(who, *p->container), file), &fresh);
	if (!fresh)
		return &(*l->v)[*at];
	*at = *l->n;
	mem_grow(*l->v, *l->n, *l->cap);
	(*l->v)[*l->n] = (struct chain_file){.who = mem_strdup(who),
					     .comm = mem_strdup(p->comm),
					     .container = *p->container,
					     .file = mem_strdup(file),
					     .disks = STRBUF_INIT,
					     .place = place_of(r->f, file)};
	return &(*l->v)[(*l->n)++];
}

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const int64_t from = sqlite3_column_int64(st, 0), to = sqlite3_column_int64(st, 1);

	r->from_ns = !r->from_ns || from < r->from_ns ? from : r->from_ns;
	r->to_ns = to > r->to_ns ? to : r->to_ns;
}

static void take_seen(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *who = who_of(p);
	struct seen x;
	bool fresh;

	if (!who || !*p->container)
		return;
	x = (struct seen){.who = who_hash(who, true),
			  .path = hash_str(HASH_SEED, askrows_text(st, 2)),
			  .place = place_of(r->f, askrows_text(st, 1))};
	idmap_ref(&r->seen_at, hash_u64(hash_u64(x.who, x.path), x.place), &fresh);
	if (!fresh)
		return;
	mem_grow(r->seen, r->n_seen, r->cap_seen);
	r->seen[r->n_seen++] = x;
}

static void take_sync(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct chain_files *f = r->f;
	const struct list l = {&f->syncs, &f->n_syncs, &f->cap_syncs, &f->sync_at};
	struct chain_file *x = take(r, st, &l);

	if (!x)
		return;
	x->n[r->window] += sqlite3_column_double(st, 2);
	x->v[r->window] += sqlite3_column_double(st, 3);
}

static bool has_disk(const struct strbuf *disks, const char *disk, size_t len)
{
	for (const char *at = strbuf_str(disks); (at = strstr(at, disk)); at += len)
		if (at > strbuf_str(disks) && at[-1] == '\n' && at[len] == '\n')
			return true;
	return false;
}

static void disk_add(struct strbuf *disks, const char *disk)
{
	if (!*disk || has_disk(disks, disk, strlen(disk)))
		return;
	strbuf_addf(disks, "%s%s\n", disks->len ? "" : "\n", disk);
}

static void disks_join(struct strbuf *to, const struct strbuf *from)
{
	const char *at = strbuf_str(from);

	for (at += *at == '\n'; *at; at += strcspn(at, "\n") + 1) {
		struct strbuf disk cleanup_strbuf = STRBUF_INIT;

		strbuf_add(&disk, at, strcspn(at, "\n"));
		disk_add(to, strbuf_str(&disk));
	}
}

static void take_moved(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct chain_files *f = r->f;
	const struct list l = {&f->moved, &f->n_moved, &f->cap_moved, &f->moved_at};
	size_t place = place_of(f, askrows_text(st, 1));
	struct chain_file *x = take(r, st, &l);

	disk_add(&f->places[place].disks, askrows_text(st, 5));
	f->places[place].moved[r->window] +=
		sqlite3_column_double(st, 2) + sqlite3_column_double(st, 4);
	if (!x)
		return;
	x->read[r->window] += sqlite3_column_double(st, 2);
	x->dirty[r->window] += sqlite3_column_double(st, 3);
	x->written[r->window] += sqlite3_column_double(st, 4);
	f->places[place].dirty[r->window] += sqlite3_column_double(st, 3);
}

/* Rule 1. */
static void moved_settle(struct chain_files *f, int w)
{
	for (size_t i = 0; i < f->n_moved; i++) {
		struct chain_file *x = &f->moved[i];
		double more = x->dirty[w] > x->written[w] ? x->dirty[w] : x->written[w];

		if (x->dirty[w] <= 0 && f->places[x->place].dirty[w] > 0)
			more = 0;
		x->v[w] = x->read[w] + more;
	}
}

/* Is it a path of the host, too, that this container sees at the same place? */
static bool is_seen_there(const struct reading *r, const struct chain_file *sync)
{
	uint64_t who = who_hash(sync->who, true);

	for (size_t i = 0; i < r->n_seen; i++)
		if (r->seen[i].who == who && r->seen[i].place == sync->place)
			return false;
	return idmap_get(&r->f->moved_at, hash_str(who, sync->file), NULL);
}

/* Rule 3. */
static void sync_settle(const struct reading *r, struct chain_file *sync)
{
	uint64_t who = who_hash(sync->who, true), path = hash_str(HASH_SEED, sync->file);
	bool known = false;

	if (!sync->container)
		disks_join(&sync->disks, &r->f->places[sync->place].disks);
	for (size_t i = 0; i < r->n_seen && sync->container; i++) {
		if (r->seen[i].who != who || r->seen[i].path != path)
			continue;
		disks_join(&sync->disks, &r->f->places[r->seen[i].place].disks);
		known = true;
	}
	if (sync->container && !known && is_seen_there(r, sync))
		disks_join(&sync->disks, &r->f->places[sync->place].disks);
}

int chain_files_read(struct selection *const wide[2], struct chain_files *out, struct err *e)
{
	struct reading r = {.f = out};
	const struct askrows_part parts[] = {{RECORDED, take_run, &r},
					     {SYNCS, take_sync, &r},
					     {PLACES, take_seen, &r},
					     {MOVED, take_moved, &r}};
	int rc = 0;

	*out = (struct chain_files){0};
	for (r.window = 0; r.window < 2 && !rc; r.window++) {
		r.from_ns = r.to_ns = 0;
		rc = askrows_each(wide[r.window], &r.dict, parts, ARRAY_SIZE(parts), e);
		if (r.to_ns > r.from_ns)
			out->seconds[r.window] = (double)(r.to_ns - r.from_ns) / NSEC_PER_SEC;
		moved_settle(out, r.window);
	}
	for (size_t i = 0; i < out->n_syncs; i++)
		sync_settle(&r, &out->syncs[i]);
	idmap_release(&r.seen_at);
	free(r.seen);
	return rc;
}

static void list_release(struct chain_file *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].who);
		free(list[i].comm);
		free(list[i].file);
		strbuf_release(&list[i].disks);
	}
	free(list);
}

void chain_files_release(struct chain_files *f)
{
	list_release(f->syncs, f->n_syncs);
	list_release(f->moved, f->n_moved);
	for (size_t i = 0; i < f->n_places; i++)
		strbuf_release(&f->places[i].disks);
	free(f->places);
	idmap_release(&f->sync_at);
	idmap_release(&f->moved_at);
	idmap_release(&f->place_at);
	*f = (struct chain_files){0};
}

static bool is_of(const struct chain_file *x, const char *who, bool container)
{
	return x->container == container && !strcmp(x->who, who);
}

static double by_second(const struct chain_files *f, const struct chain_file *x)
{
	return x->v[1] / f->seconds[1] - (f->seconds[0] > 0 ? x->v[0] / f->seconds[0] : 0);
}

const struct chain_file *chain_files_sync(const struct chain_files *f, const char *who,
					  bool container)
{
	const struct chain_file *best = NULL;
	double more = 0;

	for (size_t i = 0; i < f->n_syncs && f->seconds[1] > 0; i++) {
		const struct chain_file *x = &f->syncs[i];

		if (!is_of(x, who, container) || by_second(f, x) <= more)
			continue;
		more = by_second(f, x);
		best = x;
	}
	return best;
}

/* Rule 2. */
static void disks_of(const struct chain_files *f, const char *who, bool container,
		     const struct chain_file *sync, struct strbuf *out)
{
	if (sync)
		disks_join(out, &sync->disks);
	for (size_t i = 0; i < f->n_moved && (!sync || !out->len); i++)
		if (is_of(&f->moved[i], who, container))
			disks_join(out, &f->places[f->moved[i].place].disks);
}

static bool shares(const struct strbuf *disks, const struct strbuf *others)
{
	const char *at = strbuf_str(others);
	size_t len;

	for (at += *at == '\n'; *at; at += len + 1) {
		struct strbuf disk cleanup_strbuf = STRBUF_INIT;

		len = strcspn(at, "\n");
		strbuf_add(&disk, at, len);
		if (has_disk(disks, strbuf_str(&disk), len))
			return true;
	}
	return false;
}

/* Its parts of what was moved on these disks. */
static void parts_find(const struct chain_files *f, const char *who, bool container,
		       const struct strbuf *disks, struct chain_behind *b)
{
	double all = 0, others = 0, own = f->places[b->x->place].moved[1];
	cleanup_free bool *used = mem_array(f->n_places, sizeof(*used));

	memset(used, 0, f->n_places * sizeof(*used));
	for (size_t i = 0; i < f->n_moved; i++)
		if (is_of(&f->moved[i], who, container))
			used[f->moved[i].place] = true;
	used[b->x->place] = false; /* both use it */
	for (size_t i = 0; i < f->n_places; i++) {
		const struct chain_place *p = &f->places[i];

		if (p->moved[1] <= 0 || !shares(disks, &p->disks))
			continue;
		all += p->moved[1];
		others += used[i] ? 0 : p->moved[1];
	}
	b->of_disk = all > 0 ? own / all : 0;
	b->of_others = others > 0 ? own / others : 0;
}

struct chain_behind chain_files_other(const struct chain_files *f, const char *who, bool container,
				      const struct chain_file *sync)
{
	struct strbuf disks cleanup_strbuf = STRBUF_INIT;
	struct chain_behind b = {0};
	double more = 0;

	if (f->seconds[0] <= 0 || f->seconds[1] <= 0)
		return b;
	disks_of(f, who, container, sync, &disks);
	for (size_t i = 0; i < f->n_moved; i++) {
		const struct chain_file *x = &f->moved[i];
		bool same = disks.len && shares(&disks, &f->places[x->place].disks);

		if (is_of(x, who, container) || by_second(f, x) <= 0 || same < b.same_disk ||
		    (same == b.same_disk && by_second(f, x) <= more))
			continue;
		more = by_second(f, x);
		b.x = x;
		b.same_disk = same;
	}
	if (b.same_disk)
		parts_find(f, who, container, &disks, &b);
	return b;
}
