/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status: what records now, the last recordings with what they lost and cost, and what the store holds. This is what
 * people paste into a bug report.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/reader.h"
#include "tools/daemon.h"
#include "tools/endings.h"
#include "tools/json.h"
#include "tools/recorder.h"
#include "tools/select.h"
#include "tools/table.h"
#include "tools/term.h"
#include "tools/verb.h"
#include "tools/when.h"

#define SHOWN 5
#define CUT_SHOWN 3 /* programs whose stacks are cut short, of the newest recording */
#define CUT_JSON 20

struct status_args {
	uint64_t n;
};

struct loss_sum {
	char *reason;
	uint64_t n;
};

/* What one recording holds, over its segments. */
struct facts {
	const struct select_recording *rec; /* borrowed */
	uint64_t samples;
	uint64_t events;           /* of other kinds: their n; of gauges the readings */
	uint64_t looked_at, named; /* lately: samples, those with a named leaf */
	uint64_t cost_cpu_ns, private_bytes, map_bytes;
	struct loss_sum *losses;
	size_t n_losses, cap_losses;
	struct endings endings;
	bool live;
};

struct store_facts {
	uint64_t bytes;
	size_t segments;
	int64_t from_ns, to_ns;
};

static void facts_lose(struct facts *f, const char *reason, uint64_t n)
{
	for (size_t i = 0; i < f->n_losses; i++) {
		if (!strcmp(f->losses[i].reason, reason)) {
			f->losses[i].n += n;
			return;
		}
	}
	mem_grow(f->losses, f->n_losses, f->cap_losses);
	f->losses[f->n_losses++] = (struct loss_sum){.reason = mem_strdup(reason), .n = n};
}

static uint64_t facts_lost(const struct facts *f)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->n_losses; i++)
		n += f->losses[i].n;
	return n;
}

static int ask(sqlite3 *db, const char *sql, int64_t run, sqlite3_stmt **st, struct err *e)
{
	if (sqlite3_prepare_v2(db, sql, -1, st, NULL) != SQLITE_OK)
		return err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", sqlite3_errmsg(db));
	sqlite3_bind_int64(*st, 1, run);
	return 0;
}

static int one_row(sqlite3 *db, const char *sql, int64_t run, uint64_t *a, uint64_t *b, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(db, sql, run, &st, e);

	if (rc < 0)
		return rc;
	if (sqlite3_step(st) == SQLITE_ROW) {
		*a += (uint64_t)sqlite3_column_int64(st, 0);
		*b += sqlite3_column_count(st) > 1 ? (uint64_t)sqlite3_column_int64(st, 1) : 0;
	}
	sqlite3_finalize(st);
	return 0;
}

static int take_total(void *ctx, const struct store_total *t)
{
	*(uint64_t *)ctx += t->n;
	return 0;
}

/* A segment where one run alone has CPU samples is summed without a look at the dictionary: a day of them must take no
 * time. */
static int add_samples(struct facts *f, struct store_segment *s, int64_t run, struct err *e)
{
	const struct store_query q = {.to_ns = INT64_MAX, .kind = STORE_KIND_CPU, .run = run};
	uint64_t own = 0, others = 0, none = 0;
	sqlite3 *db = store_segment_db(s);
	int rc = one_row(db, "SELECT sum(id = ?1), sum(id <> ?1) FROM run WHERE EXISTS (SELECT 1 FROM task t WHERE t.run = run.id"
			     " AND t.kind = 1)", run, &own, &others, e);

	if (rc || !own)
		return rc;
	if (others)
		return store_totals(s, &q, take_total, &f->samples, e);
	return one_row(db, store_segment_sealed(s) ? "SELECT sum(n) FROM sample_pack WHERE ?1" : "SELECT sum(n) FROM sample WHERE ?1",
		       run, &f->samples, &none, e);
}

static int add_events(struct facts *f, sqlite3 *db, int64_t run, struct err *e)
{
	uint64_t there = 0, none = 0;
	int rc = one_row(db, "SELECT count(*) FROM task WHERE run = ?1 AND kind <> 1 AND EXISTS (SELECT 1 FROM sqlite_master"
			     " WHERE name = 'amount')", run, &there, &none, e);

	if (rc || !there)
		return rc;
	return one_row(db, "SELECT sum(iif(k.class = 'gauge', 1, x.n)) FROM amount x CROSS JOIN series e ON e.id = x.series"
			   " CROSS JOIN task t ON t.id = e.task JOIN kind k ON k.id = t.kind WHERE t.run = ?1", run, &f->events,
		       &none, e);
}

#define NAMED(last)                                                                                                   \
	"SELECT sum(x.n), sum(iif(r.function > 0, x.n, 0)) FROM (SELECT series, sum(n) AS n FROM sample WHERE ts > " last \
	" GROUP BY series) x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task LEFT JOIN stack k ON k.id = e.stack" \
	" LEFT JOIN frame r ON r.id = k.leaf WHERE t.run = ?1"
#define ENDED "(SELECT r.to_ns / 1000000000 - t0.value FROM run r JOIN meta t0 ON t0.key = 't0' WHERE r.id = ?1)"

/* The share of the samples whose leaf has a name: of its last ten minutes in its newest segment, where they are by the hour
 * of its last hour; of all it has there if it did not run on a CPU since. */
static int add_named(struct facts *f, struct store_segment *s, int64_t run, struct err *e)
{
	sqlite3 *db = store_segment_db(s);
	uint64_t looked_at = f->looked_at;
	int rc = one_row(db, store_segment_sealed(s) ? NAMED(ENDED " - 3601") : NAMED(ENDED " - 600"), run, &f->looked_at, &f->named,
			 e);

	if (rc || f->looked_at != looked_at)
		return rc;
	return one_row(db, NAMED("-1 << 62"), run, &f->looked_at, &f->named, e);
}

static int add_losses_and_cost(struct facts *f, sqlite3 *db, int64_t run, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(db, "SELECT reason, sum(n) FROM loss_row WHERE run = ?1 GROUP BY 1", run, &st, e);

	if (rc < 0)
		return rc;
	while (sqlite3_step(st) == SQLITE_ROW)
		facts_lose(f, (const char *)sqlite3_column_text(st, 0), (uint64_t)sqlite3_column_int64(st, 1));
	sqlite3_finalize(st);
	rc = ask(db, "SELECT sum(cpu), sum(private), sum(maps) FROM (SELECT sum(cpu_ns) AS cpu, max(private_bytes) AS "
		     "private, max(map_bytes) AS maps FROM cost_row WHERE run = ?1 GROUP BY program)", run, &st, e);
	if (rc < 0)
		return rc;
	if (sqlite3_step(st) == SQLITE_ROW) {
		f->cost_cpu_ns += (uint64_t)sqlite3_column_int64(st, 0);
		f->private_bytes += (uint64_t)sqlite3_column_int64(st, 1);
		f->map_bytes += (uint64_t)sqlite3_column_int64(st, 2);
	}
	sqlite3_finalize(st);
	return 0;
}

static int facts_fill(struct facts *f, const struct select_recording *rec, struct err *e)
{
	f->rec = rec;
	f->live = recorder_is_live(rec);
	for (size_t i = 0; i < rec->n_runs; i++) {
		struct store_segment *s = NULL;
		int rc = store_segment_open(rec->runs[i].segment, &s, e);

		if (i && strcmp(rec->runs[i].segment, rec->runs[i - 1].segment))
			f->private_bytes = f->map_bytes = 0; /* the latest; of one segment those of all families together */
		if (rc == 0)
			rc = add_samples(f, s, rec->runs[i].run, e);
		if (rc == 0)
			rc = add_events(f, store_segment_db(s), rec->runs[i].run, e);
		if (rc == 0 && !strcmp(rec->runs[i].segment, rec->runs[rec->n_runs - 1].segment))
			rc = add_named(f, s, rec->runs[i].run, e);
		if (rc == 0)
			rc = add_losses_and_cost(f, store_segment_db(s), rec->runs[i].run, e);
		if (rc == 0)
			rc = store_endings(s, 0, INT64_MAX, rec->runs[i].run, endings_add, &f->endings, e);
		store_segment_close(s);
		if (rc < 0)
			return rc;
	}
	endings_sort(&f->endings);
	return 0;
}

static int store_fill(struct store_facts *s, const char *store, struct err *e)
{
	cleanup_free struct store_segment_info *info = NULL;
	int rc = store_segments(store, 0, INT64_MAX, &info, &s->segments, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < s->segments; i++) {
		s->bytes += info[i].bytes;
		if (info[i].from_ns && (!s->from_ns || info[i].from_ns < s->from_ns))
			s->from_ns = info[i].from_ns;
		if (info[i].to_ns > s->to_ns)
			s->to_ns = info[i].to_ns;
	}
	return 0;
}

static const char *state_of(const struct facts *f)
{
	if (f->live)
		return "going on";
	return f->rec->state == 1 ? "ended" : "killed";
}

static double cores(const struct facts *f)
{
	int64_t span = f->rec->to_ns - f->rec->from_ns;

	return span > 0 ? (double)f->cost_cpu_ns / (double)span : 0;
}

static double named_share(const struct facts *f)
{
	return f->looked_at ? (double)f->named / (double)f->looked_at : 0;
}

static json_t *facts_json(const struct facts *f)
{
	json_t *row = json_object(), *lost = json_object();

	json_object_set_new(row, "rec", json_integer(f->rec->number));
	json_object_set_new(row, "family", json_text(f->rec->family));
	json_object_set_new(row, "options", json_text(f->rec->options));
	json_object_set_new(row, "state", json_text(state_of(f)));
	json_object_set_new(row, "pid", json_integer(f->rec->pid));
	json_set_time(row, "from", f->rec->from_ns);
	json_set_time(row, "to", f->rec->to_ns);
	json_object_set_new(row, "bucket_seconds", json_integer(f->rec->bucket_s));
	json_object_set_new(row, "period_ns", json_integer((json_int_t)f->rec->period_ns));
	json_object_set_new(row, "samples", json_integer((json_int_t)f->samples));
	json_object_set_new(row, "events", json_integer((json_int_t)f->events));
	json_object_set_new(row, "named_share", f->looked_at ? json_real(named_share(f)) : json_null());
	json_object_set_new(row, "user_samples", json_integer((json_int_t)f->endings.n));
	json_object_set_new(row, "complete_share", f->endings.n ? json_real(endings_share(&f->endings)) : json_null());
	json_object_set_new(row, "cut_short", endings_json(&f->endings, CUT_JSON));
	for (size_t i = 0; i < f->n_losses; i++)
		json_object_set_new(lost, f->losses[i].reason, json_integer((json_int_t)f->losses[i].n));
	json_object_set_new(row, "lost", lost);
	json_object_set_new(row, "self_cpu_ns", json_integer((json_int_t)f->cost_cpu_ns));
	json_object_set_new(row, "self_private_bytes", json_integer((json_int_t)f->private_bytes));
	json_object_set_new(row, "self_map_bytes", json_integer((json_int_t)f->map_bytes));
	return row;
}

/* `daemon`: what the sonded that keeps the store says, NULL: none does. */
static int print_json(const char *store, const struct store_facts *s, const struct facts *f, size_t n, json_t *daemon)
{
	json_t *envelope = json_envelope("status", s->from_ns, s->to_ns);
	json_t *about = json_object();

	json_object_set_new(about, "path", json_text(store));
	json_object_set_new(about, "bytes", json_integer((json_int_t)s->bytes));
	json_object_set_new(about, "segments", json_integer((json_int_t)s->segments));
	json_object_set_new(envelope, "store", about);
	json_object_set_new(envelope, "sonded", daemon ? json_incref(daemon) : json_null());
	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(envelope), facts_json(&f[i]));
	return json_print(envelope, stdout, 0);
}

static void print_live(const struct facts *f, size_t n)
{
	char took[32], memory[32];
	size_t live = 0;

	for (size_t i = 0; i < n; i++) {
		if (!f[i].live)
			continue;
		live++;
		printf("recording  %s, pid %lld, since %s: rec %lld, %.2f %% of one core, %s private\n", f[i].rec->family,
		       (long long)f[i].rec->pid, when_duration(clock_utc_ns() - f[i].rec->from_ns, took, sizeof(took)),
		       (long long)f[i].rec->number, 100 * cores(&f[i]),
		       term_bytes(f[i].private_bytes, memory, sizeof(memory)));
	}
	if (!live)
		printf("recording  nothing at the moment\n");
}

/* As typed, without what tells nothing: the program's folder, and what `sonde record` adds for itself (it stands
 * together, see verb_record.c). */
static void add_options(struct strbuf *out, const char *options)
{
	const char *added = strstr(options, " --store "), *last = added ? strstr(added, " --progress-fd ") : NULL;
	size_t word = strcspn(options, " ");

	while (word && options[word - 1] != '/')
		word--;
	if (!last) {
		strbuf_addstr(out, options + word);
		return;
	}
	last += strlen(" --progress-fd ");
	strbuf_add(out, options + word, (size_t)(added - options) - word);
	strbuf_addstr(out, last + strspn(last, "0123456789"));
}

static void print_recordings(const struct facts *f, size_t n)
{
	static const struct table_column columns[] = {
		{"REC", TABLE_RIGHT}, {"BEGAN", TABLE_LEFT}, {"LENGTH", TABLE_RIGHT}, {"STATE", TABLE_LEFT},
		{"HZ", TABLE_RIGHT}, {"FAMILY", TABLE_MIDDLE}, {"SAMPLES", TABLE_RIGHT}, {"LOST", TABLE_RIGHT}, {"NAMED", TABLE_RIGHT},
		{"COMPLETE", TABLE_SPARE_RIGHT}, {"OWN CPU", TABLE_SPARE_RIGHT}, {"OPTIONS", TABLE_SPARE},
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct strbuf options cleanup_strbuf = STRBUF_INIT;
	char buf[32];

	for (size_t i = 0; i < n; i++) {
		const struct select_recording *r = f[i].rec;

		table_cellf(t, "%lld", (long long)r->number);
		table_cell(t, when_local(r->from_ns, clock_utc_ns(), buf, sizeof(buf)));
		table_cell(t, when_duration(r->to_ns - r->from_ns, buf, sizeof(buf)));
		table_cell(t, state_of(&f[i]));
		table_cellf(t, "%.0f", r->period_ns ? 1e9 / (double)r->period_ns : 0);
		table_cell(t, r->family);
		table_cell(t, term_count(f[i].samples + f[i].events, buf, sizeof(buf)));
		table_cell(t, term_count(facts_lost(&f[i]), buf, sizeof(buf)));
		table_cellf(t, "%.1f %%", 100 * named_share(&f[i]));
		if (f[i].endings.n)
			table_cellf(t, "%.1f %%", 100 * endings_share(&f[i].endings));
		else
			table_cell(t, "-");
		table_cellf(t, "%.2f %%", 100 * cores(&f[i]));
		strbuf_reset(&options);
		add_options(&options, r->options);
		table_cell(t, strbuf_str(&options));
	}
	table_print(t, stdout, term_width(stdout));
	table_free(t);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < f[i].n_losses; k++)
			if (f[i].losses[k].n)
				printf("lost in rec %lld: %llu, reason %s\n", (long long)f[i].rec->number,
				       (unsigned long long)f[i].losses[k].n, f[i].losses[k].reason);
}

/* Of the newest: which programs' stacks end before their root. */
static void print_cut_short(const struct facts *f)
{
	const struct endings *x = &f->endings;

	for (size_t i = 0; i < x->n_programs && i < CUT_SHOWN && x->programs[i].cut; i++) {
		cleanup_strbuf struct strbuf s = STRBUF_INIT;

		endings_say(x, i, &s);
		term_printf(stdout, "%s %s\n", i ? "          " : "cut short:", strbuf_str(&s));
	}
}

static void print_text(const char *store, const struct store_facts *s, const struct facts *f, size_t n)
{
	char size[32], from[32];

	print_live(f, n);
	printf("store      %s, %s in %zu segment%s, oldest data %s\n\n", store, term_bytes(s->bytes, size, sizeof(size)),
	       s->segments, s->segments == 1 ? "" : "s",
	       s->from_ns ? when_local(s->from_ns, clock_utc_ns(), from, sizeof(from)) : "none");
	print_recordings(f, n);
	if (n)
		print_cut_short(&f[0]);
}

static int status_run(struct verb_call *call, struct err *e)
{
	const struct status_args *a = call->args;
	size_t want = a->n ? a->n : SHOWN, n = 0, n_recs = 0;
	struct select_recording *recs = NULL;
	struct store_facts about = {0};
	json_t *daemon = NULL;
	struct facts *f = NULL;
	bool begun; /* or sonded is there, but could not store anything yet: then that is what to say */
	int rc;

	if (!daemon_ask(call->store, json_pack("{s:s}", "do", "status"), &daemon, NULL) && !call->json)
		daemon_print(daemon);
	rc = store_fill(&about, call->store, e);
	begun = rc != -ENOENT || !daemon;
	if (rc == 0)
		rc = select_recordings(call->store, &recs, &n_recs, e);
	else if (!begun)
		rc = 0;
	if (rc == 0) {
		n = n_recs < want ? n_recs : want;
		f = mem_array(n, sizeof(*f));
		for (size_t i = 0; rc == 0 && i < n; i++)
			rc = facts_fill(&f[i], &recs[n_recs - 1 - i], e);
	}
	if (rc == 0 && call->json)
		rc = print_json(call->store, &about, f, n, daemon);
	else if (rc == 0)
		print_text(call->store, &about, f, n);
	for (size_t i = 0; f && i < n; i++) {
		for (size_t k = 0; k < f[i].n_losses; k++)
			free(f[i].losses[k].reason);
		free(f[i].losses);
		endings_release(&f[i].endings);
	}
	free(f);
	json_decref(daemon);
	select_recordings_free(recs, n_recs);
	return rc;
}

static const struct option OPTIONS[] = {
	{.name = "number", .letter = 'n', .type = OPTION_UINT, .arg = "N", .help = "show the last N recordings (default 5)",
	 .offset = offsetof(struct status_args, n)},
	{0},
};

static const char *const EXAMPLES[] = {
	"sonde status",
	"sonde status -n 20",
	"sonde status --json | jq '.rows[0].lost'",
	NULL,
};

const struct verb verb_status = {
	.name = "status",
	.summary = "what records now, what was lost, what it costs, what the store holds",
	.usage = "",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct status_args),
	.uses = VERB_STORE | VERB_JSON | VERB_PAGES,
	.run = status_run,
};
