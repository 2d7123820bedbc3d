/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rareview: functions_top of a sealed day with what functions had in rare stacks (schema/store/sealrare.h). Sums by the hour are enough: of each
 * hour, run, executable and container, what was cut (rare_row) goes to the functions and off '[rare]', as far as its samples count.
 */
#include <sqlite3ext.h>
#include <string.h>

#include "schema/extension/blocks.h"
#include "schema/extension/tables.h"

SQLITE_EXTENSION_INIT3

#define PERIOD                                                                                                                          \
	"(SELECT d.period_ns FROM main.run_period d WHERE d.run = r.run AND d.from_ns <= (r.ts + t0.value) * 1000000000"                   \
	" ORDER BY d.from_ns DESC LIMIT 1)"

/* %s: the view as it was. */
static const char VIEW[] =
	"CREATE TEMP VIEW IF NOT EXISTS functions_top AS WITH"
	"  mark(frame) AS (SELECT r.id FROM main.frame r JOIN main.function f ON f.id = r.function"
	"                  WHERE f.name = '[rare]' AND f.image = 0 AND r.image = 0),"
	"  counted(ts, run, exe, container, n) AS MATERIALIZED ("
	"    SELECT x.ts - (x.ts %% 3600 + 3600) %% 3600, t.run, p.exe, p.container, sum(x.n)"
	"    FROM main.sample x CROSS JOIN main.series e ON e.id = x.series CROSS JOIN main.stack k ON k.id = e.stack"
	"    CROSS JOIN main.task t ON t.id = e.task CROSS JOIN main.process p ON p.id = t.process"
	"    WHERE k.leaf IN (SELECT frame FROM mark) AND NOT p.self GROUP BY 1, 2, 3, 4),"
	"  cut(ts, run, exe, container, n) AS MATERIALIZED (SELECT ts, run, exe, container, sum(self) FROM main.rare_row GROUP BY 1, 2, 3, 4),"
	"  rare(function, module, container, self, total, period_ns, file) AS MATERIALIZED ("
	"    SELECT coalesce(f.name, printf('%%s+0x%%x', coalesce(i.name, '[unknown]'), a.offset)), coalesce(g.name, i.name, ''),"
	"           coalesce(c.name, ''), r.self * w.n / u.n, r.total * w.n / u.n, " PERIOD ", coalesce(s.path, f.file, '')"
	"    FROM main.rare_row r JOIN main.meta t0 ON t0.key = 't0'"
	"    JOIN cut u ON u.ts = r.ts AND u.run = r.run AND u.exe = r.exe AND u.container = r.container"
	"    JOIN counted w ON w.ts = r.ts AND w.run = r.run AND w.exe = r.exe AND w.container = r.container"
	"    LEFT JOIN main.function f ON f.id = r.function LEFT JOIN main.image g ON g.id = f.image LEFT JOIN main.source s ON s.id = f.source"
	"    LEFT JOIN main.frame a ON a.id = r.frame LEFT JOIN main.image i ON i.id = a.image"
	"    LEFT JOIN main.containers c ON c.id = r.container)"
	"  SELECT function, module, container, sum(self) AS self, sum(total) AS total, sum(self_ns) AS self_ns, sum(total_ns) AS total_ns,"
	"         max(file) AS file FROM (%s"
	"    UNION ALL SELECT function, module, container, self, total, self * period_ns, total * period_ns, file FROM rare"
	"    UNION ALL SELECT '[rare]', '', container, -self, -self, -self * period_ns, -self * period_ns, '' FROM rare)"
	"  GROUP BY 1, 2, 3 HAVING sum(total) > 0 ORDER BY self DESC, total DESC";

int extension_rare(sqlite3 *db, const char *exact)
{
	const char *body = exact ? strstr(exact, " AS") : NULL;
	char *inner, *sql;
	int rc;

	if (!blocks_number(db, "SELECT EXISTS (SELECT 1 FROM main.rare_row)", 0)) /* or an older schema */
		return SQLITE_OK;
	inner = body ? sqlite3_mprintf("SELECT * FROM (%s)", body + 3) : sqlite3_mprintf("SELECT * FROM main.functions_top");
	sql = inner ? sqlite3_mprintf(VIEW, inner) : NULL;
	rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(inner);
	sqlite3_free(sql);
	return rc;
}
