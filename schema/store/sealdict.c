/* SPDX-License-Identifier: Apache-2.0 */
/* sealdict: see the header. One way for all tables: a row's columns, ids put into the day's, are its content. */
#include "schema/store/sealdict.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/sealparts.h"

#define COLUMNS_MAX 20
#define ID_MAX ((int64_t)1 << 28)

/* Tables of things that are looked up, each behind those it points to. Columns as they stand in the file. */
struct shape {
	char letter;
	const char *table, *columns, *kinds;
};
static const struct shape SHAPES[] = {
	{SEAL_TEXT, "text", "value", "."},
	{SEAL_CONTAINER, "container", "hash,name,runtime,runtime_id,image,cgroup,project,service,labels,started,restarts", "-.........."},
	{SEAL_IMAGE, "image", "hash,kind,name,path,build_id,key", "-....."},
	{SEAL_SOURCE, "source", "hash,path", "-."},
	{SEAL_FUNCTION, "function", "hash,image,line,name,file,source", "-i...s"},
	{SEAL_FRAME, "frame", "image,offset,function,line,flags,outer", "i.f..r"},
	/* a process is one exec; what else is known of it comes sooner or later, see learn() */
	{SEAL_PROCESS, "process", "pid,ppid,uid,exec_id,start_ns,start_ticks,comm,exe,args_base,args_keep,args,args_end,cgroup,"
				  "unit,container,self,end_ns,how,status,lang,runtime,linking,libc", ".--.-..aa---aaC----aa--"},
	{SEAL_TASK, "task", "run,process,tid,kind,thread", "Rp..."},
	{SEAL_SERIES, "series", "task,stack,label", "kS."},
};
#define N_SHAPES (sizeof(SHAPES) / sizeof(SHAPES[0]))

struct seal_contents {
	struct idmap by_hash; /* of the key, counted up where another one has it -> 1 + place in `rows` */
	struct row {
		size_t at, len; /* its key in `keys` */
		uint32_t id;
	} *rows;
	size_t n, cap;
	struct strbuf keys;
	uint32_t last;        /* greatest id */
};

static const struct shape *shape_of(char letter)
{
	for (size_t i = 0; i < N_SHAPES; i++)
		if (SHAPES[i].letter == letter)
			return &SHAPES[i];
	return NULL;
}

static bool is_id(char kind)
{
	return kind != SEAL_VALUE && kind != SEAL_ASIDE; /* those aside, too */
}

/* --- contents --- */

/* Where this key stands, or is to stand: 0 in *slot if it is new. */
static uint64_t *contents_slot(struct seal_contents *c, const struct strbuf *key)
{
	uint64_t hash = hash_bytes(HASH_SEED, key->buf, key->len);

	for (;; hash++) {
		bool fresh;
		uint64_t *slot = idmap_ref(&c->by_hash, hash, &fresh);
		const struct row *r = fresh ? NULL : &c->rows[*slot - 1];

		if (!r || (r->len == key->len && !memcmp(c->keys.buf + r->at, key->buf, key->len)))
			return slot;
	}
}

static void contents_add(struct seal_contents *c, uint64_t *slot, const struct strbuf *key, uint32_t id)
{
	mem_grow(c->rows, c->n, c->cap);
	c->rows[c->n] = (struct row){c->keys.len, key->len, id};
	strbuf_add(&c->keys, key->buf, key->len);
	*slot = ++c->n;
	c->last = id > c->last ? id : c->last;
}

static void contents_free(struct seal_contents *c)
{
	if (!c)
		return;
	idmap_release(&c->by_hash);
	free(c->rows);
	strbuf_release(&c->keys);
	free(c);
}

/* --- a row --- */

/* Which map tells an id of this kind. */
static char map_of(char kind)
{
	return kind == SEAL_TEXT_ASIDE ? SEAL_TEXT : kind == SEAL_CONTAINER_ASIDE ? SEAL_CONTAINER : kind;
}

static int64_t id_in_day(const struct sealdict *d, char kind, int64_t id, bool ours)
{
	return ours ? id : sealdict_id(d, kind, id);
}

static void key_add(struct strbuf *key, sqlite3_stmt *st, int i, char kind, const struct sealdict *d, bool ours)
{
	int type = sqlite3_column_type(st, i);
	int64_t v = sqlite3_column_int64(st, i);
	uint32_t len;

	strbuf_addch(key, (char)type);
	if (type == SQLITE_TEXT) {
		const char *text = (const char *)sqlite3_column_text(st, i);

		len = (uint32_t)sqlite3_column_bytes(st, i);
		strbuf_add(key, &len, sizeof(len));
		strbuf_add(key, text ? text : "", text ? len : 0);
	} else if (type == SQLITE_INTEGER) {
		v = is_id(kind) ? id_in_day(d, kind, v, ours) : v;
		strbuf_add(key, &v, sizeof(v));
	}
}

/* Column 0 is the id. */
static void key_of(struct sealdict *d, const struct shape *s, sqlite3_stmt *st, bool ours)
{
	strbuf_reset(&d->key);
	for (int i = 0; s->kinds[i]; i++)
		if (!strchr("-aC", s->kinds[i]))
			key_add(&d->key, st, i + 1, s->kinds[i], d, ours);
}

static int row_put(const struct sealdict *d, const struct shape *s, sqlite3_stmt *from, sqlite3_stmt *put, uint32_t id)
{
	sqlite3_bind_int64(put, 1, id);
	for (int i = 0; s->kinds[i]; i++) {
		if (is_id(s->kinds[i]))
			sqlite3_bind_int64(put, i + 2, sealdict_id(d, map_of(s->kinds[i]),
								sqlite3_column_int64(from, i + 1)));
		else
			sqlite3_bind_value(put, i + 2, sqlite3_column_value(from, i + 1));
	}
	sqlite3_step(put);
	return sqlite3_reset(put);
}

/* --- a table --- */

static int prepare_select(sqlite3 *db, const struct shape *s, sqlite3_stmt **out)
{
	char *sql = sqlite3_mprintf("SELECT id, %s FROM %s ORDER BY id", s->columns, s->table);
	int rc = sql ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

static int prepare_insert(sqlite3 *db, const struct shape *s, sqlite3_stmt **out)
{
	struct strbuf marks cleanup_strbuf = STRBUF_INIT;
	char *sql;
	int rc;

	for (size_t i = 0; s->kinds[i]; i++)
		strbuf_addstr(&marks, ", ?");
	sql = sqlite3_mprintf("INSERT INTO %s(id, %s) VALUES(?%s)", s->table, s->columns, strbuf_str(&marks));
	rc = sql ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc;
}

static int contents_load(struct sealdict *d, const struct shape *s)
{
	struct seal_contents *c = mem_alloc(sizeof(*c));
	sqlite3_stmt *st = NULL;
	int rc = prepare_select(d->day, s, &st);

	c->keys = (struct strbuf)STRBUF_INIT;
	d->contents[(unsigned char)s->letter] = c;
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(st);
		if (rc != SQLITE_ROW)
			break;
		uint32_t id = (uint32_t)sqlite3_column_int64(st, 0);
		uint64_t *slot;

		key_of(d, s, st, true);
		slot = contents_slot(c, &d->key);
		if (!*slot)
			contents_add(c, slot, &d->key, id);
		c->last = id > c->last ? id : c->last;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int map_begin(struct sealdict *d, sqlite3 *segment, const struct shape *s)
{
	struct seal_map *m = &d->map[(unsigned char)s->letter];
	char *sql = sqlite3_mprintf("SELECT max(id) FROM %s", s->table);
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(segment, sql, -1, &st, NULL);
	int64_t last = rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;

	sqlite3_free(sql);
	sqlite3_finalize(st);
	if (rc != SQLITE_OK)
		return rc;
	if (last < 0 || last >= ID_MAX)
		return SQLITE_CORRUPT;
	m->n = (size_t)last + 1;
	m->to = mem_array(m->n, sizeof(*m->to));
	return SQLITE_OK;
}

/* A process that the day has: what this segment knows of it and no other one did, its end above all. Parameters are those
 * of the insertion. */
static const char LEARN[] =
	"UPDATE process SET exe = iif(exe, exe, ?9), cgroup = iif(cgroup, cgroup, ?14), unit = iif(unit, unit, ?15),"
	" container = iif(container, container, ?16), args_base = iif(args_base OR args <> '', args_base, ?10),"
	" args_keep = iif(args_base OR args <> '', args_keep, ?11), args_end = iif(args_base OR args <> '', args_end, ?13),"
	" args = iif(args_base OR args <> '', args, ?12), end_ns = iif(how, end_ns, ?18), status = iif(how, status, ?20),"
	" how = iif(how, how, ?19), lang = iif(lang, lang, ?21), runtime = iif(runtime, runtime, ?22),"
	" linking = iif(linking, linking, ?23), libc = iif(libc, libc, ?24) WHERE id = ?1";

static int learn(struct sealdict *d, const struct shape *s, sqlite3_stmt *from, uint32_t id)
{
	int rc = SQLITE_OK;

	if (s->letter != SEAL_PROCESS)
		return rc;
	if (!d->learn)
		rc = sqlite3_prepare_v2(d->day, LEARN, -1, &d->learn, NULL);
	return rc == SQLITE_OK ? row_put(d, s, from, d->learn, id) : rc;
}

static int take_row(struct sealdict *d, const struct shape *s, sqlite3_stmt *from, sqlite3_stmt *put)
{
	struct seal_contents *c = d->contents[(unsigned char)s->letter];
	struct seal_map *m = &d->map[(unsigned char)s->letter];
	int64_t id = sqlite3_column_int64(from, 0);
	uint64_t *slot;

	if (id <= 0 || (uint64_t)id >= m->n)
		return SQLITE_CORRUPT;
	key_of(d, s, from, false);
	slot = contents_slot(c, &d->key);
	if (!*slot) {
		int rc = row_put(d, s, from, put, c->last + 1);

		if (rc != SQLITE_OK)
			return rc;
		contents_add(c, slot, &d->key, c->last + 1);
	} else if (learn(d, s, from, c->rows[*slot - 1].id) != SQLITE_OK) {
		return SQLITE_ERROR;
	}
	m->to[id] = c->rows[*slot - 1].id;
	return SQLITE_OK;
}

/* A frame may point to another one that comes later: it waits for the next round. The last round takes all. */
static bool waits(const struct sealdict *d, const struct shape *s, sqlite3_stmt *from)
{
	for (int i = 0; s->kinds[i]; i++)
		if (s->kinds[i] == s->letter && sqlite3_column_int64(from, i + 1) > 0 &&
		    !sealdict_id(d, s->letter, sqlite3_column_int64(from, i + 1)))
			return true;
	return false;
}

static int take_round(struct sealdict *d, const struct shape *s, sqlite3_stmt *from, sqlite3_stmt *put, bool all,
		      size_t *taken, size_t *waiting)
{
	const struct seal_map *m = &d->map[(unsigned char)s->letter];
	int rc;

	*taken = *waiting = 0;
	while ((rc = sqlite3_step(from)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(from, 0);

		if (id > 0 && (uint64_t)id < m->n && m->to[id])
			continue;
		if (!all && waits(d, s, from)) {
			++*waiting;
			continue;
		}
		rc = take_row(d, s, from, put);
		if (rc != SQLITE_OK)
			break;
		++*taken;
	}
	sqlite3_reset(from);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int take_table(struct sealdict *d, sqlite3 *segment, const struct shape *s)
{
	sqlite3_stmt *from = NULL, *put = NULL;
	size_t taken = 1, waiting = 1;
	int rc = d->contents[(unsigned char)s->letter] ? SQLITE_OK : contents_load(d, s);

	if (rc == SQLITE_OK)
		rc = map_begin(d, segment, s);
	if (rc == SQLITE_OK)
		rc = prepare_select(segment, s, &from);
	if (rc == SQLITE_OK)
		rc = prepare_insert(d->day, s, &put);
	while (rc == SQLITE_OK && taken && waiting)
		rc = take_round(d, s, from, put, false, &taken, &waiting);
	if (rc == SQLITE_OK && waiting)
		rc = take_round(d, s, from, put, true, &taken, &waiting);
	sqlite3_finalize(from);
	sqlite3_finalize(put);
	return rc;
}

/* --- all --- */

const char *sealdict_columns(const char *table)
{
	for (size_t i = 0; i < N_SHAPES; i++)
		if (!strcmp(SHAPES[i].table, table))
			return SHAPES[i].columns;
	return NULL;
}

void sealdict_init(struct sealdict *d, sqlite3 *day)
{
	*d = (struct sealdict){.day = day, .key = STRBUF_INIT};
}

static void maps_clear(struct sealdict *d)
{
	for (size_t i = 0; i < sizeof(d->map) / sizeof(d->map[0]); i++) {
		free(d->map[i].to);
		d->map[i] = (struct seal_map){0};
	}
}

void sealdict_release(struct sealdict *d)
{
	for (size_t i = 0; i < sizeof(d->contents) / sizeof(d->contents[0]); i++)
		contents_free(d->contents[i]);
	maps_clear(d);
	sqlite3_finalize(d->learn);
	sealstack_release(&d->tree);
	strbuf_release(&d->key);
}

int sealdict_take(struct sealdict *d, sqlite3 *segment)
{
	int rc = d->tree.t.n ? SQLITE_OK : sealstack_load(d);

	maps_clear(d);
	if (rc == SQLITE_OK)
		rc = sealruns_take(d, segment);
	for (size_t i = 0; rc == SQLITE_OK && i < N_SHAPES; i++)
		if (SHAPES[i].letter != SEAL_SERIES)
			rc = take_table(d, segment, &SHAPES[i]);
	return rc == SQLITE_OK ? sealstack_take(d, segment) : rc;
}

/* --- series --- */

struct heavy {
	uint64_t weight;
	uint32_t id;
};

static int by_weight(const void *a, const void *b)
{
	const struct heavy *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int sealdict_take_series(struct sealdict *d, sqlite3 *segment, const uint64_t *weight, size_t n)
{
	const struct shape *s = shape_of(SEAL_SERIES);
	sqlite3_stmt *from = NULL, *put = NULL;
	struct heavy *order = mem_array(n, sizeof(*order));
	int rc = d->contents[SEAL_SERIES] ? SQLITE_OK : contents_load(d, s);

	for (size_t i = 0; i < n; i++)
		order[i] = (struct heavy){weight[i], (uint32_t)i};
	qsort(order, n, sizeof(*order), by_weight);
	if (rc == SQLITE_OK)
		rc = map_begin(d, segment, s);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(segment, "SELECT id, task, stack, label FROM series WHERE id = ?1", -1, &from, NULL);
	if (rc == SQLITE_OK)
		rc = prepare_insert(d->day, s, &put);
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		sqlite3_bind_int64(from, 1, order[i].id);
		rc = sqlite3_step(from);
		rc = rc == SQLITE_ROW ? take_row(d, s, from, put) : rc == SQLITE_DONE ? SQLITE_OK : rc;
		sqlite3_reset(from);
	}
	sqlite3_finalize(from);
	sqlite3_finalize(put);
	free(order);
	return rc;
}
