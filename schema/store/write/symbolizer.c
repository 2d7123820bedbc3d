/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbolizer: Rows are found and added by the same hashes as commit_dict does it,
 * so that writers go on sharing them.
 */
#include "schema/store/write/symbolizer.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/segment.h"
#include "schema/store/packed/packing.h"

/* Frames that could gain: nothing is known of their line, and they are no part of another one's
 * chain. A leaf folded to its function (flags 2, not 4) can only gain its function's file. */
#define FOLDED "(f.function <> 0 AND f.flags & 6 = 2)"
#define POOR                                                                                    \
	"f.line = 0 AND f.outer = 0 AND f.id NOT IN (SELECT outer FROM frame WHERE outer <> 0)" \
	" AND NOT (" FOLDED " AND (SELECT source FROM function WHERE id = f.function) <> 0)"

enum {
	ST_WANTS,
	ST_FRAMES,
	ST_SOURCE_FIND,
	ST_SOURCE,
	ST_FUNCTION_FIND,
	ST_FUNCTION,
	ST_FRAME,
	ST_UPDATE
};
_Static_assert(ST_UPDATE < SEGMENT_STMTS, "room for the statements");

/* clang-format off */
static const char *const sql[] = {
	[ST_WANTS] = "SELECT i.id, i.path, i.build_id, i.key, sum(f.function = 0), sum(f.function <> 0 AND NOT " FOLDED ")"
		     " FROM frame f JOIN image i ON i.id = f.image WHERE i.kind = 0 AND " POOR " GROUP BY 1",
	[ST_FRAMES] = "SELECT f.id, f.offset, f.flags, f.function, coalesce(n.name, '') FROM frame f"
		      " LEFT JOIN function n ON n.id = f.function WHERE f.image = ?1 AND " POOR,
	[ST_SOURCE_FIND] = "SELECT id FROM source WHERE hash = ?1 AND path = ?2",
	[ST_SOURCE] = "INSERT INTO source(hash, path) VALUES(?1, ?2)",
	[ST_FUNCTION_FIND] = "SELECT id FROM function WHERE hash = ?1 AND image = ?2 AND line = ?3 AND name = ?4"
			     " AND source = ?5 AND file = ''",
	[ST_FUNCTION] = "INSERT INTO function(hash, image, line, name, source, file) VALUES(?1, ?2, ?3, ?4, ?5, '')",
	[ST_FRAME] = "INSERT INTO frame(image, offset, function, line, flags, outer) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_UPDATE] = "UPDATE frame SET function = ?2, line = ?3, outer = ?4, flags = iif(?4, flags | 1, flags)"
		      " WHERE id = ?1 AND line = 0 AND outer = 0",
};
/* clang-format on */

struct symbolizer {
	char *dir;
	struct segment *seg;
	bool was_packed; /* its tables are rows now, to pack again later */
	int rc;          /* SQLite code; sticky within one transaction */
};

struct poor { /* a frame that could gain */
	int64_t id;
	struct symbolizer_frame frame;
	uint32_t flags;
	char *name;
};

/* --- opening --- */

int symbolizer_open(const char *dir, const char *path, struct symbolizer **out, struct err *e)
{
	cleanup_fd int lock = folder_lock(dir);
	struct segment *seg = NULL;
	struct symbolizer *r;
	bool archived;
	int rc;

	if (lock < 0)
		return folder_lock_refuse(dir, lock, e);
	archived = folder_is_archived(path);
	rc = segment_open(path, &seg, e);
	if (rc)
		return rc;
	r = mem_alloc(sizeof(*r));
	r->dir = mem_strdup(dir);
	r->seg = seg;
	r->was_packed =
		archived && !packing_is_packed(seg->db); /* a newer schema made rows of it */
	*out = r;
	return 0;
}

/* --- statements --- */

static sqlite3_stmt *stmt(struct symbolizer *r, int which)
{
	sqlite3_stmt *st = r->rc == SQLITE_OK ? segment_stmt(r->seg, which, sql[which]) : NULL;

	if (!st && r->rc == SQLITE_OK)
		r->rc = sqlite3_errcode(r->seg->db);
	return st;
}

/* The first column of the row it gives, else 0. */
static int64_t run(struct symbolizer *r, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);
	int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		r->rc = rc;
	sqlite3_reset(st);
	return value;
}

static void bind_text(sqlite3_stmt *st, int i, const char *s)
{
	sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC);
}

static int failed(const struct symbolizer *r, struct err *e)
{
	int code = segment_errno(r->seg->db, r->rc);

	if (code == -ENOSPC)
		return folder_full(r->dir, e);
	return err_set(e, code, EXIT_STORE, "cannot write the store's segment %s: %s", r->seg->path,
		       sqlite3_errmsg(r->seg->db));
}

int symbolizer_wants(struct symbolizer *r, int (*each)(void *ctx, const struct symbolizer_want *w),
		     void *ctx, struct err *e)
{
	sqlite3_stmt *st;
	int rc = SQLITE_ROW, ret = 0;

	r->rc = SQLITE_OK;
	st = stmt(r, ST_WANTS);
	while (st && !ret && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const struct symbolizer_want w = {
			.image = (uint32_t)sqlite3_column_int64(st, 0),
			.path = (const char *)sqlite3_column_text(st, 1),
			.build_id = (const char *)sqlite3_column_text(st, 2),
			.key = (const char *)sqlite3_column_text(st, 3),
			.unnamed = (uint64_t)sqlite3_column_int64(st, 4),
			.lineless = (uint64_t)sqlite3_column_int64(st, 5),
		};

		ret = each(ctx, &w);
	}
	if (st)
		sqlite3_reset(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		r->rc = rc;
	return r->rc != SQLITE_OK ? failed(r, e) : ret;
}

/* --- writing --- */

static int64_t source_row(struct symbolizer *r, const char *path)
{
	uint64_t hash = hash_str(HASH_SEED, path) & 0x7fffffff;
	int64_t id = 0;

	if (!*path)
		return 0;
	for (int which = ST_SOURCE_FIND; which <= ST_SOURCE && !id; which++) {
		sqlite3_stmt *st = stmt(r, which);

		if (!st)
			return 0;
		sqlite3_bind_int64(st, 1, (sqlite3_int64)hash);
		bind_text(st, 2, path);
		id = run(r, st);
	}
	return id ? id : sqlite3_last_insert_rowid(r->seg->db);
}

static int64_t function_row(struct symbolizer *r, uint32_t image, const struct symbolizer_name *n)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT, file = STRBUF_INIT;
	int64_t source, id = 0;

	strbuf_addutf8(&name, n->function, strlen(n->function));
	strbuf_addutf8(&file, n->file, strlen(n->file));
	source = source_row(r, strbuf_str(&file));
	for (int which = ST_FUNCTION_FIND; which <= ST_FUNCTION && !id; which++) {
		sqlite3_stmt *st = stmt(r, which);

		if (!st)
			return 0;
		sqlite3_bind_int64(
			st, 1,
			(sqlite3_int64)(hash_str(HASH_SEED, strbuf_str(&name)) & 0x7fffffff));
		sqlite3_bind_int64(st, 2, image);
		sqlite3_bind_int64(st, 3, n->first_line);
		bind_text(st, 4, strbuf_str(&name));
		sqlite3_bind_int64(st, 5, source);
		id = run(r, st);
	}
	return id ? id : sqlite3_last_insert_rowid(r->seg->db);
}

/* The frame that the next one was inlined into. */
static int64_t outer_row(struct symbolizer *r, uint32_t image, const struct poor *p,
			 const struct symbolizer_name *n, int64_t outer)
{
	int64_t function = function_row(r, image, n);
	sqlite3_stmt *st = stmt(r, ST_FRAME);

	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, image);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)p->frame.offset);
	sqlite3_bind_int64(st, 3, function);
	sqlite3_bind_int64(st, 4, n->line);
	sqlite3_bind_int64(st, 5, p->flags | (outer ? 1 : 0));
	sqlite3_bind_int64(st, 6, outer);
	run(r, st);
	return sqlite3_last_insert_rowid(r->seg->db);
}

/* `names`: innermost first. */
static void frame_write(struct symbolizer *r, uint32_t image, const struct poor *p,
			const struct symbolizer_name *names, size_t n)
{
	int64_t outer = 0, function;
	sqlite3_stmt *st;

	while (n-- > 1)
		outer = outer_row(r, image, p, &names[n], outer);
	function = function_row(r, image, &names[0]);
	st = stmt(r, ST_UPDATE);
	if (!st)
		return;
	sqlite3_bind_int64(st, 1, p->id);
	sqlite3_bind_int64(st, 2, function);
	sqlite3_bind_int64(st, 3, names[0].line);
	sqlite3_bind_int64(st, 4, outer);
	run(r, st);
}

static void frame_gain(struct symbolizer *r, uint32_t image, const struct poor *p,
		       symbolizer_find *find, void *ctx, struct symbolizer_gain *g)
{
	struct symbolizer_name names[SYMBOLIZER_MAX];
	size_t n = find(ctx, &p->frame, names);

	if (!n)
		return;
	if (p->frame.named)
		names[n - 1].function = p->name;
	if (p->frame.named && n == 1 && !names[0].line && !*names[0].file)
		return;
	frame_write(r, image, p, names, n);
	g->names += !p->frame.named;
	g->lines += names[0].line != 0;
	g->inlined += n > 1;
}

static struct poor *frames_read(struct symbolizer *r, uint32_t image, size_t *n)
{
	sqlite3_stmt *st = stmt(r, ST_FRAMES);
	struct poor *list = NULL;
	size_t cap = 0;
	int rc = SQLITE_DONE;

	*n = 0;
	if (!st)
		return NULL;
	sqlite3_bind_int64(st, 1, image);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		uint32_t flags = (uint32_t)sqlite3_column_int64(st, 2);
		bool named = sqlite3_column_int64(st, 3) != 0;
		const char *name = (const char *)sqlite3_column_text(st, 4);

		mem_grow(list, *n, cap);
		list[(*n)++] =
			(struct poor){.id = sqlite3_column_int64(st, 0),
				      .flags = flags,
				      .name = mem_strdup(name ? name : ""),
				      .frame = {.offset = (uint64_t)sqlite3_column_int64(st, 1),
						.named = named,
						.folded = named && (flags & 6) == 2,
						.back = !(flags & 6)}};
	}
	sqlite3_reset(st);
	if (rc != SQLITE_DONE)
		r->rc = rc;
	return list;
}

static void exec(struct symbolizer *r, const char *text)
{
	if (r->rc == SQLITE_OK)
		r->rc = sqlite3_exec(r->seg->db, text, NULL, NULL, NULL);
}

/* It stays so until symbolizer_close. A crash meanwhile leaves a segment of rows, which the next
 * sealing archives. */
static void unpack(struct symbolizer *r)
{
	bool any = false;

	if (r->rc == SQLITE_OK)
		r->rc = packing_unpack(r->seg->db, &any);
	r->was_packed |= any;
}

static void pack_again(struct symbolizer *r)
{
	r->rc = SQLITE_OK;
	exec(r,
	     "BEGIN IMMEDIATE; DROP INDEX IF EXISTS function_by_hash; DROP INDEX IF EXISTS source_by_hash");
	if (r->rc == SQLITE_OK)
		r->rc = packing_pack(r->seg->db, PACKING_LEAST, PACKING_BLOCK_ROWS);
	if (r->rc == SQLITE_OK)
		r->rc = segment_mark_archived(r->seg->db);
	exec(r, "COMMIT");
	if (!sqlite3_get_autocommit(r->seg->db))
		sqlite3_exec(r->seg->db, "ROLLBACK", NULL, NULL, NULL);
	exec(r, "VACUUM");
	if (r->rc != SQLITE_OK)
		log_warn("symbolize: %s stays unpacked: %s", r->seg->path, sqlite3_errstr(r->rc));
}

#define FIND_BY \
	"CREATE INDEX IF NOT EXISTS function_by_hash ON function(hash); CREATE INDEX IF NOT EXISTS source_by_hash ON source(hash)"

int symbolizer_image(struct symbolizer *r, uint32_t image, symbolizer_find *find, void *ctx,
		     struct symbolizer_gain *g, struct err *e)
{
	cleanup_fd int lock = folder_lock(r->dir);
	struct symbolizer_gain gained = {0};
	struct poor *list;
	size_t n = 0;
	int ret = 0;

	if (lock < 0)
		return folder_lock_refuse(r->dir, lock, e);
	r->rc = SQLITE_OK;
	exec(r, "BEGIN IMMEDIATE");
	list = frames_read(r, image, &n);
	if (n)
		unpack(r);
	if (n)
		exec(r, FIND_BY);
	for (size_t i = 0; i < n && r->rc == SQLITE_OK; i++)
		frame_gain(r, image, &list[i], find, ctx, &gained);
	exec(r, "COMMIT");
	if (r->rc != SQLITE_OK) {
		ret = failed(r, e);
		if (!sqlite3_get_autocommit(r->seg->db))
			sqlite3_exec(r->seg->db, "ROLLBACK", NULL, NULL, NULL);
	} else {
		g->names += gained.names;
		g->lines += gained.lines;
		g->inlined += gained.inlined;
	}
	for (size_t i = 0; i < n; i++)
		free(list[i].name);
	free(list);
	return ret;
}

void symbolizer_close(struct symbolizer *r)
{
	cleanup_fd int lock = -1;

	if (!r)
		return;
	lock = folder_lock(r->dir);
	if (r->was_packed)
		pack_again(r);
	segment_leave(r->seg);
	free(r->dir);
	free(r);
}
