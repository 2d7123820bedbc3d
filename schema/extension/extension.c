/* SPDX-License-Identifier: Apache-2.0 */
/* extension: In a library to load, SQLite calls sqlite3_sonde_init; sonde calls the
 * other two. */
#include "schema/extension/extension.h"

#include <sqlite3ext.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/extension/blocks.h"
#include "schema/extension/tables.h"
#include "schema/store/packed/module.h"

SQLITE_EXTENSION_INIT1

/* As in schema/sql/0019-runs.sql, but which samples count, and for how long, is computed
 * beforehand. */
static const char VIEWS[] =
	"CREATE TEMP VIEW IF NOT EXISTS cpu_samples AS"
	"  SELECT datetime(x.ts, 'unixepoch') AS time, x.ts, coalesce(c.name, '') AS container, p.comm, p.pid, t.thread, t.tid,"
	"         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module,"
	"         coalesce(f.file, '') AS file, coalesce(f.line, 0) AS line, x.samples, x.cpu_ns, x.stack_id,"
	"         x.process_id, x.run_id, p.self"
	"  FROM sonde_samples x JOIN main.task t ON t.id = x.task_id JOIN main.process p ON p.id = x.process_id"
	"  LEFT JOIN containers c ON c.id = p.container LEFT JOIN main.stack k ON k.id = x.stack_id"
	"  LEFT JOIN frames f ON f.id = k.leaf WHERE x.counts = 1;";

static void release(void *p)
{
	struct tables *t = p;

	series_drop(t->map);
	sqlite3_free(t);
}

/* Each module has its own state: SQLite destroys modules in no defined order. */
int extension_tables(sqlite3 *db)
{
	static const struct {
		const char *name;
		const sqlite3_module *module;
	} all[] = {{"sonde_samples", &SAMPLES_TABLE},
		   {"sonde_totals", &TOTALS_TABLE},
		   {"sonde_steps", &STEPS_TABLE},
		   {"sonde_frames", &FRAMES_TABLE}};
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(all); i++) {
		struct tables *t = sqlite3_malloc64(sizeof(*t));

		if (!t)
			return SQLITE_NOMEM;
		*t = (struct tables){.db = db};
		rc = sqlite3_create_module_v2(db, all[i].name, all[i].module, t, release);
	}
	return rc;
}

int extension_views(sqlite3 *db)
{
	int rc = blocks_packed(db) ? sqlite3_exec(db, VIEWS, NULL, NULL, NULL) :
				     SQLITE_OK; /* before those of the file: of two that have a name
						   the first stays */

	return rc == SQLITE_OK ? packed_views(db, NULL) : rc;
}

#ifndef SQLITE_CORE
__attribute__((visibility("default"))) int sqlite3_sonde_init(sqlite3 *db, char **why,
							      const sqlite3_api_routines *api);

int sqlite3_sonde_init(sqlite3 *db, char **why, const sqlite3_api_routines *api)
{
	int rc;

	SQLITE_EXTENSION_INIT2(api);
	rc = packed_register(db);
	if (rc == SQLITE_OK)
		rc = extension_tables(db);
	if (rc == SQLITE_OK)
		(void)extension_views(db); /* a damaged file has none; failing now would unload the
					      modules that are registered already */
	if (rc != SQLITE_OK)
		*why = sqlite3_mprintf("%s", sqlite3_errmsg(db));
	return rc;
}
#endif
