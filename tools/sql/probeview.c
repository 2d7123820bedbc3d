/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's. */
#include "tools/sql/probeview.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "tools/sql/sqlview.h"

#define NAME_MAX_BYTES 32
#define ARGS_MOST      64 /* of all recordings */

struct shape {
	struct {
		char name[NAME_MAX_BYTES], type[NAME_MAX_BYTES];
	} args[ARGS_MOST];
	size_t n;
};

struct making {
	const char *view, *source, *probe;
	bool made;
};

static const char *const COLUMNS[] = {"time",       "ts",     "at_ns", "container", "comm",
				      "pid",        "thread", "tid",   "weight",    "ns",
				      "process_id", "run_id", "self"};

static bool is_name(const char *text)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return !text[n] && n < NAME_MAX_BYTES;
}

static bool has(const struct shape *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!sqlite3_stricmp(s->args[i].name, name))
			return true;
	return false;
}

/* "path str,flags int32"; what a store from elsewhere has else is left out. */
static void shape_add(struct shape *s, const char *text)
{
	while (text && *text && s->n < ARGS_MOST) {
		char name[NAME_MAX_BYTES] = "", type[NAME_MAX_BYTES] = "";

		if (sscanf(text, "%31[^ ,] %31[^ ,]", name, type) == 2 && is_name(name) &&
		    !has(s, name) && strcmp(name, "ns") != 0) {
			memcpy(s->args[s->n].name, name, sizeof(name));
			memcpy(s->args[s->n++].type, type, sizeof(type));
		}
		text = strchr(text, ',');
		text += text != NULL;
	}
}

static int refused(sqlite3 *db, struct err *e)
{
	return err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", sqlite3_errmsg(db));
}

static int shape_read(sqlite3 *db, const char *probe, struct shape *s, bool *any, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT DISTINCT args FROM probes WHERE probe = ?1", -1,
				    &st, NULL);

	if (rc != SQLITE_OK)
		return 0; /* a store without probes */
	sqlite3_bind_text(st, 1, probe, -1, SQLITE_STATIC);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		shape_add(s, (const char *)sqlite3_column_text(st, 0));
		*any = true;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : refused(db, e);
}

/* 3, 4 */
static void columns_add(const struct shape *s, struct strbuf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(COLUMNS); i++)
		strbuf_addf(out, "%s%s AS %s%s", i ? ", " : "", COLUMNS[i],
			    has(s, COLUMNS[i]) ? "hit_" : "", COLUMNS[i]);
	for (size_t i = 0; i < s->n; i++) {
		const char *name = s->args[i].name;

		if (!strcmp(s->args[i].type, "uint64"))
			strbuf_addf(
				out,
				", iif(typeof(args ->> '$.%s') = 'real', args -> '$.%s', args ->> '$.%s') AS \"%s\"",
				name, name, name, name);
		else
			strbuf_addf(out, ", args ->> '$.%s' AS \"%s\"", name, name);
	}
}

static int make(sqlite3 *db, void *ctx, struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	struct making *m = ctx;
	struct shape shape = {0};
	bool any = false;
	int rc = shape_read(db, m->probe, &shape, &any, e);

	if (rc || !any)
		return rc;
	strbuf_addf(&sql, "CREATE TEMP VIEW \"%s\" AS SELECT ", m->view);
	columns_add(&shape, &sql);
	strbuf_addf(&sql, " FROM %s WHERE probe = '%s'", m->source, m->probe);
	if (sqlite3_exec(db, strbuf_str(&sql), NULL, NULL, NULL) != SQLITE_OK)
		return refused(db, e);
	m->made = true;
	return 0;
}

int probeview_make(struct sqlview *v, bool *made, struct err *e)
{
	static const char missing[] = "no such table: ", window[] = "win_";
	const char *said = sqlite3_errmsg(sqlview_db(v));
	char name[2 * NAME_MAX_BYTES];
	struct making m = {.view = name, .source = "probe_events", .probe = name};
	int rc;

	*made = false;
	if (strncmp(said, missing, sizeof(missing) - 1) != 0)
		return 0;
	snprintf(name, sizeof(name), "%s", said + sizeof(missing) - 1);
	if (!strncmp(name, window, sizeof(window) - 1)) {
		m.source = "win_probe_events";
		m.probe = name + sizeof(window) - 1;
	}
	if (!is_name(m.probe))
		return 0;
	rc = sqlview_change(v, make, &m, e);
	*made = m.made;
	return rc;
}
