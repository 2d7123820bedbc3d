/* SPDX-License-Identifier: Apache-2.0 */
/* sql: queries the store in SQL, read-only: a query as argument, statements from a pipe, or a
 * prompt. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/files/migrate.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/pager.h"
#include "tools/select/select.h"
#include "tools/sql/namedquery.h"
#include "tools/sql/probeview.h"
#include "tools/sql/sqlnear.h"
#include "tools/sql/sqlolder.h"
#include "tools/sql/sqlprint.h"
#include "tools/sql/sqlview.h"
#include "tools/sql/sqlwindow.h"

#define TIMEOUT_NS (30 * NSEC_PER_SEC)
#define INPUT_MAX  (1 << 20)

struct sql_args {
	bool csv, box;
	uint64_t rows;
	int64_t timeout_ns;
};

struct session {
	struct sqlview *view;
	sqlite3 *db;
	enum sqlprint_form form;
	json_t *rows; /* rows of the envelope, with --json */
	int64_t timeout_ns, deadline_ns;
	uint64_t most, n; /* rows to print, and found */
	bool timed_out;

	const struct verb_call *call;
	struct selection *sel;    /* of `window` */
	struct sqlwindow *window; /* NULL: not requested yet */

	const struct namedquery
		*named; /* the named query whose parameters are bound, from `words`; NULL: none */
	char *const *words;
	size_t n_words;
	const char *statement; /* that is run, and those after it; NULL: none of the user's */
};

static int over_time(void *ctx)
{
	struct session *s = ctx;

	s->timed_out = clock_boot_ns() > s->deadline_ns;
	return s->timed_out;
}

/* For a packed table inside a view, SQLite keeps only the message
 * (schema/store/packed/module.c). */
static bool is_damage(const struct session *s, int rc)
{
	static const char words[] = "the file is damaged";

	return (rc & 0xff) == SQLITE_CORRUPT ||
	       ((rc & 0xff) == SQLITE_ERROR && strstr(sqlite3_errmsg(s->db), words));
}

static int refused(struct session *s, int rc, struct err *e)
{
	if (is_damage(s, rc))
		return err_set(e, -EBADMSG, EXIT_STORE, "cannot read the store: %s",
			       sqlite3_errmsg(s->db));
	if (s->timed_out) {
		err_set(e, -ETIME, EXIT_RUNTIME, "the query was stopped after %lld s",
			(long long)(s->timeout_ns / NSEC_PER_SEC));
		err_fix(e,
			"narrow it (WHERE ts BETWEEN ...), or give it longer: sonde sql --timeout 5m ...");
		return -ETIME;
	}
	if (rc == SQLITE_AUTH || rc == SQLITE_READONLY ||
	    ((rc & 0xff) == SQLITE_ERROR && strstr(sqlite3_errmsg(s->db), "cannot modify "))) {
		err_set(e, -EPERM, EXIT_USAGE, "the store is read-only: %s", sqlite3_errmsg(s->db));
		err_fix(e, "to change a copy: sonde export db -o copy.db, then sqlite3 copy.db");
		return -EPERM;
	}
	if ((rc & 0xff) == SQLITE_ERROR) {
		cleanup_free char *message = mem_strdup(sqlite3_errmsg(s->db));
		struct strbuf near cleanup_strbuf = STRBUF_INIT;
		int version;

		if (s->statement && strstr(message, "no such ") &&
		    sqlolder(s->db, s->statement, &version)) {
			err_set(e, -ENODATA, EXIT_NOTHING,
				"%s%s: %s: an older sonde wrote this store (schema %d, this sonde has %d), which did not record this yet: there are no rows of it",
				s->named ? "@" : "SQL", s->named ? s->named->name : "", message,
				version, migrate_known());
			err_fix(e,
				"sudo sonde record -d 20s --store new (what is recorded from now on has it; recordings that are there stay as they are)");
			return -ENODATA;
		}
		if (s->statement)
			sqlnear(s->db, message, s->statement, &near);
		err_set(e, -EINVAL, EXIT_USAGE, "SQL: %s%s", message, strbuf_str(&near));
		err_fix(e,
			"sonde sql .views (which there are)    sonde sql '.schema cpu_samples' (their columns)");
		return -EINVAL;
	}
	return err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", sqlite3_errmsg(s->db));
}

static bool narrows(const struct select_args *a)
{
	return select_has_range(a) || select_has_filters(a) || a->self;
}

/* Creates the win_ views when the first statement uses one. Without a range they cover the default
 * range of every verb. */
static int need_window(struct session *s, const char *sql, struct err *e)
{
	const bool named = strstr(sql, "win_") || (s->named && narrows(s->call->select));
	int rc;

	if (s->window || (!named && !narrows(s->call->select)))
		return 0;
	rc = select_new(s->call->select, s->call->store, NULL, 0, s->call->quiet, &s->sel, e);
	if (!rc)
		rc = sqlwindow_make(s->view, s->sel, &s->window, e);
	if (!rc && !named && !strstr(sql, ":from") && !strstr(sql, ":to") && !s->call->quiet)
		fputs("note: range and filters narrow the views win_NAME, :from and :to; everything else covers the whole store\n",
		      stderr);
	return rc;
}

/* A stored table belongs to one segment: the rows of the newest segment alone would look like the
 * whole answer. */
static int of_all(struct session *s, struct err *e)
{
	const char *name = sqlview_of_one(s->view);

	if (!name)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"SQL: table %s belongs to one file, and this store has several", name);
	err_fix(e,
		"query a view (sonde sql .views), or one file: sonde sql --store FILE.db, or a merged copy: sonde export db -o x.db");
	return -EINVAL;
}

/* The first statement of *sql, with the views of probes that it names. SQLite's code; -errno. */
static int prepare(struct session *s, const char **sql, sqlite3_stmt **st, struct err *e)
{
	for (;;) {
		const char *rest;
		bool made;
		int rc = sqlite3_prepare_v2(s->db, *sql, -1, st, &rest), bad;

		if (rc == SQLITE_OK) {
			*sql = rest;
			return rc;
		}
		bad = rc == SQLITE_ERROR ? probeview_make(s->view, &made, e) : 0;
		if (bad)
			return bad;
		if (rc != SQLITE_ERROR || !made) {
			sqlite3_prepare_v2(s->db, *sql, -1, st, NULL); /* for its message */
			return rc;
		}
	}
}

/* Runs each statement of `sql` in turn. */
static int run_statements(struct session *s, const char *sql, struct err *e)
{
	struct strbuf narrowed cleanup_strbuf = STRBUF_INIT;
	int bad;

	s->deadline_ns = clock_boot_ns() + s->timeout_ns;
	bad = need_window(s, sql, e);
	if (bad)
		return s->timed_out ? refused(s, SQLITE_INTERRUPT, e) : bad;
	if (s->named && s->window) {
		if (!sqlwindow_rewrite(s->window, sql, &narrowed)) {
			err_set(e, -EINVAL, EXIT_USAGE,
				"@%s covers the whole store: ranges and filters do not apply",
				s->named->name);
			err_fix(e, "sonde sql @%s", s->named->name);
			return -EINVAL;
		}
		sql = strbuf_str(&narrowed);
	}
	while (*sql) {
		sqlite3_stmt *st = NULL;
		int rc;

		s->statement = sql;
		s->timed_out = false;
		s->deadline_ns = clock_boot_ns() + s->timeout_ns;
		sqlview_asks(s->view, s->named ? NULL : sql);
		rc = prepare(s, &sql, &st, e);
		if (rc)
			return rc < 0 ? rc : refused(s, rc, e);
		rc = of_all(s, e);
		if (rc) {
			sqlite3_finalize(st);
			return rc;
		}
		if (!st)
			continue; /* only a comment or blanks */
		if (!sqlite3_stmt_readonly(st) || !sqlite3_column_count(st)) {
			sqlite3_finalize(st);
			return refused(s, SQLITE_READONLY, e);
		}
		if (s->window)
			sqlwindow_bind(s->window, st);
		if (s->named && (rc = namedquery_bind(s->named, st, s->words, s->n_words,
						      clock_utc_ns(), s->window != NULL, e))) {
			sqlite3_finalize(st);
			return rc;
		}
		rc = sqlprint(st, s->form, stdout, s->rows, s->most, &s->n);
		sqlite3_finalize(st);
		if (rc != SQLITE_DONE)
			return refused(s, rc, e);
	}
	return 0;
}

static int no_such_schema(struct session *s, const char *name, struct err *e)
{
	struct strbuf message cleanup_strbuf = STRBUF_INIT, near cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&message, "no such table: %s", name);
	sqlnear(s->db, strbuf_str(&message), "", &near);
	err_set(e, -EINVAL, EXIT_USAGE, "there is no view or table '%s'%s", name,
		strbuf_str(&near));
	err_fix(e, "sonde sql .views");
	return -EINVAL;
}

/* Prints the statements line by line, as they were written: a table format would break them. For an
 * archive they are in packed_view. */
static int print_schema(struct session *s, const char *name, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		s->db,
		"SELECT sql FROM (SELECT name, sql FROM main.sqlite_master WHERE sql NOT LIKE 'CREATE VIRTUAL TABLE%' UNION ALL "
		"SELECT name, sql FROM main.packed_view) WHERE ?1 = '' OR name = ?1",
		-1, &st, NULL);
	bool any = false;

	if (rc != SQLITE_OK)
		return refused(s, rc, e);
	s->timed_out = false;
	s->deadline_ns = clock_boot_ns() + s->timeout_ns;
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	for (; (rc = sqlite3_step(st)) == SQLITE_ROW; any = true, s->n++)
		printf("%s;\n", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	if (rc != SQLITE_DONE)
		return refused(s, rc, e);
	return any || !*name ? 0 : no_such_schema(s, name, e);
}

/* hides internal views */
#define NO_PARTS \
	"name NOT LIKE 'run\\_%' ESCAPE '\\' AND name NOT IN ('stack_list', 'stack_part', 'stack_place', 'unwinding_reason', 'fact_hidden')"

/* an archive stores its views as text */
#define IN_FILE \
	"SELECT name, type FROM sqlite_master UNION SELECT name, 'view' FROM main.packed_view WHERE sql LIKE 'CREATE VIEW%'"

static const char DOT_HELP[] =
	".views           list the views; they stay the same from release to release (man sonde-schema)\n"
	".tables          list the views and the tables below them\n"
	".schema [NAME]   print the CREATE statements\n"
	".quit            end (as does the end of the input)\n"
	"@NAME            only as an argument: sonde sql @ lists the queries that ship with sonde\n"
	"win_NAME         view NAME narrowed by --last, --container and the other ranges and filters; without any: to the\n"
	"                 newest recording. win_waits, win_wait_objects and win_wait_totals mark idle waits\n"
	":from, :to       that range, in seconds since 1970\n";

static int dot_command(struct session *s, const char *line, struct err *e)
{
	char name[128] = "";

	if (!strcmp(line, ".views"))
		return run_statements(
			s,
			"SELECT DISTINCT name AS view FROM (" IN_FILE " UNION "
			"SELECT name, type FROM temp.sqlite_master) WHERE type = 'view' AND " NO_PARTS
			" ORDER BY 1",
			e);
	/* views first: they are stable across releases */
	if (!strcmp(line, ".tables"))
		return run_statements(
			s,
			"SELECT DISTINCT name, type FROM (" IN_FILE " UNION "
			"SELECT name, iif(type = 'table' AND name NOT LIKE 'win%', 'view', type) FROM temp.sqlite_master) "
			"WHERE type IN ('view', 'table') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND " NO_PARTS
			" GROUP BY name "
			"ORDER BY type DESC, name",
			e);
	if (!strcmp(line, ".help")) {
		fputs(DOT_HELP, stdout);
		return 0;
	}
	if (sscanf(line, ".schema %127s", name) == 1 || !strcmp(line, ".schema"))
		return print_schema(s, name, e);
	err_set(e, -EINVAL, EXIT_USAGE, "unknown command %s", line);
	err_fix(e, ".views   .tables   .schema [NAME]   .help   .quit");
	return -EINVAL;
}

/* Runs statements from standard input, each when it is complete. On a terminal, an error is printed
 * and the prompt continues. */
static int run_input(struct session *s, struct err *e)
{
	struct strbuf pending cleanup_strbuf = STRBUF_INIT;
	bool tty = isatty(STDIN_FILENO);
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;
	int rc = 0;

	if (tty)
		fputs("read-only; end a query with ;   .views lists the views, .schema NAME shows one, .help explains more, .quit ends\n",
		      stderr);
	for (;;) {
		if (tty)
			fputs(pending.len ? "  ...> " : "sonde> ", stderr);
		len = getline(&line, &cap, stdin);
		if (len < 0)
			break;
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if (!pending.len && line[0] == '.') {
			if (!strcmp(line, ".quit") || !strcmp(line, ".exit"))
				break;
			rc = dot_command(s, line, e);
		} else {
			strbuf_addf(&pending, "%s\n", line);
			if (pending.len > INPUT_MAX)
				rc = err_set(e, -E2BIG, EXIT_USAGE,
					     "the query is larger than 1 MiB");
			else if (sqlite3_complete(strbuf_str(&pending)))
				rc = run_statements(s, strbuf_str(&pending), e);
			else
				continue;
			strbuf_reset(&pending);
		}
		fflush(stdout);
		if (rc < 0 && !tty)
			break;
		if (rc < 0)
			err_report(e, "sonde");
		rc = 0;
	}
	if (rc == 0 && pending.len && !tty)
		rc = run_statements(s, strbuf_str(&pending), e);
	free(line);
	return rc;
}

static int list_named(void)
{
	char summary[160];

	for (const struct namedquery *q = NAMEDQUERIES; q->name; q++)
		printf("@%-13s %s\n", q->name, namedquery_summary(q, summary, sizeof(summary)));
	return 0;
}

static int run_named(struct session *s, const struct verb_call *call, struct err *e)
{
	int ret;

	ret = namedquery_find(call->words[0], &s->named, e);
	if (ret)
		return ret;
	s->words = call->words + 1;
	s->n_words = call->n_words - 1;
	ret = run_statements(s, s->named->text, e);
	if (!ret && !s->n && !call->quiet)
		fprintf(stderr, "@%s: no rows\n", s->named->name);
	return ret;
}

static int run_words(struct session *s, const struct verb_call *call, struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;

	if (call->words[0][0] == '@')
		return run_named(s, call, e);

	for (size_t i = 0; i < call->n_words; i++)
		strbuf_addf(&sql, "%s%s", i ? " " : "", call->words[i]);
	if (call->words[0][0] == '.')
		return dot_command(s, strbuf_str(&sql), e);
	return run_statements(s, strbuf_str(&sql), e);
}

static int choose_form(const struct verb_call *call, const struct sql_args *a,
		       enum sqlprint_form *form, struct err *e)
{
	if (call->json + a->csv + a->box > 1)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--box, --csv, --json and --ndjson cannot be combined");
	*form = call->ndjson ? SQLPRINT_NDJSON :
		call->json   ? SQLPRINT_JSON :
		a->csv       ? SQLPRINT_CSV :
			       SQLPRINT_BOX;
	return 0;
}

static int check_hosts(const struct verb_call *call, struct err *e)
{
	if (!call->select->host.n)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "sonde sql takes no --host");
	err_fix(e, "of several stores each view has a column host: WHERE host = '%s'",
		call->select->host.items[0]);
	return -EINVAL;
}

static int sql_run(struct verb_call *call, struct err *e)
{
	const struct sql_args *a = call->args;
	struct session s = {.timeout_ns = a->timeout_ns ? a->timeout_ns : TIMEOUT_NS,
			    .most = a->rows ? a->rows : UINT64_MAX,
			    .call = call};
	json_t *envelope = NULL;
	int rc;

	if (call->n_words && !strcmp(call->words[0], "@")) /* works without a store */
		return list_named();
	rc = choose_form(call, a, &s.form, e);
	if (rc == 0)
		rc = check_hosts(call, e);
	if (rc == 0)
		rc = sqlview_open(call->store, &s.view, e);
	if (rc < 0)
		return rc;
	if (s.form == SQLPRINT_JSON) {
		envelope = json_envelope("sql", 0, 0);
		s.rows = json_rows(envelope);
	}
	s.db = sqlview_db(s.view);
	sqlview_watch(s.view, over_time, &s);
	if (call->n_words)
		pager_start();
	rc = call->n_words ? run_words(&s, call, e) : run_input(&s, e);
	call->begun = !call->n_words || (s.n && s.form != SQLPRINT_JSON);
	if (envelope)
		json_bound(envelope, s.n);
	if (envelope && rc == 0)
		rc = json_print(envelope, stdout, 0);
	else if (envelope)
		json_decref(envelope);
	if (rc == 0 && s.n > s.most && !call->json && !call->quiet)
		fprintf(stderr, "%llu more rows: -n 0 shows all\n",
			(unsigned long long)(s.n - s.most));
	sqlwindow_free(s.window);
	sqlview_close(s.view);
	select_free(s.sel);
	return rc;
}

/* clang-format off */
static const struct option OPTIONS[] = {
	{.name = "box", .type = OPTION_FLAG, .help = "a table with borders (the default)",
	 .offset = offsetof(struct sql_args, box)},
	{.name = "csv", .type = OPTION_FLAG, .help = "comma-separated, RFC 4180", .offset = offsetof(struct sql_args, csv)},
	{.name = "number", .letter = 'n', .type = OPTION_MOST, .arg = "N", .help = "print the first N rows, count the others (default and 0: all)",
	 .offset = offsetof(struct sql_args, rows)},
	{.name = "timeout", .type = OPTION_DURATION, .arg = "TIME", .help = "stop a query after this long (default 30s)",
	 .offset = offsetof(struct sql_args, timeout_ns)},
	{0},
};
/* clang-format on */

static const char *const EXAMPLES[] = {
	"sonde sql \"select function, sum(samples) n from cpu_samples group by 1 order by 2 desc limit 5\"",
	"sonde sql --csv \"select time, comm, cpu_ns from cpu_samples\" > samples.csv",
	"sonde sql @hottest n=5 --last 10m --container web",
	"sonde sql \"select reason, idle, sum(total_ns) from win_waits group by 1, 2\" --last 2m",
	"sonde sql .views",
	NULL,
};

const struct verb verb_sql = {
	.name = "sql",
	.summary = "query the store in SQL, read-only",
	.usage = "[QUERY | @NAME [KEY=VALUE...] | @ | .views | .tables | .schema NAME | .help]",
	.examples = EXAMPLES,
	.more = "Without a query: read statements from standard input, or prompt. @ lists the queries that ship with sonde.\n"
		"Range and filters narrow these queries, and the views win_NAME of any query (.help). Views: man sonde-schema.\n"
		"One file in sqlite3: sqlite3 -cmd '.load /usr/lib/sonde/sonde' FILE (for other tools: sonde export db).",
	.options = OPTIONS,
	.args_size = sizeof(struct sql_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_LATER | VERB_JSON | VERB_WORDS | VERB_READS,
	.run = sql_run,
};
