/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/shortlived.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/print/json.h"
#include "tools/select/askrows.h"

/* A row that lies in the range in part counts in part. */
#define PART   "max(0, min(ts + seconds, ?2 + 1) - max(ts, ?1)) / (1.0 * seconds)"
#define SUM(x) "CAST(round(sum((" x ") * " PART ")) AS INTEGER)"
#define RANGE  " WHERE ts BETWEEN ?1 - 60 AND ?2"

static const char ENDED[] =
	"SELECT container, comm, max(self), " SUM("n") ", " SUM("user_us + system_us") ", " SUM("read_bytes") ", " SUM(
		"write_bytes") ", " SUM("lived_us") ", max(rss_max), cgroup FROM ended_stats" RANGE
						    " AND ts + seconds > ?1 GROUP BY container, comm";
static const char TOLD[] =
	"SELECT container, " SUM("user_us + system_us") ", 0 FROM process_stats" RANGE
							" GROUP BY container";
static const char TOLD_ENDED[] =
	"SELECT container, " SUM("user_us + system_us") ", " SUM("n") " FROM ended_stats" RANGE
								      " GROUP BY container";
/* Of a file that has no table of ends neither is known. */
static const char CHARGED[] = "SELECT " SUM(
	"user_us + nice_us + system_us + irq_us + softirq_us") ", (SELECT n FROM ended_row LIMIT 0) FROM host_stats" RANGE;

/* Of all CPU time of the host what a hypervisor gave to others. */
#define WHOLE_US \
	"user_us + nice_us + system_us + irq_us + softirq_us + idle_us + iowait_us + steal_us"
static const char STOLEN[] = "SELECT " SUM("steal_us") ", " SUM(WHOLE_US) " FROM host_stats" RANGE;

/* The same from sums (store_segment_sums), which have the tables' columns. */
#define CONTAINER "coalesce(iif(c.name = '', substr(c.runtime_id, 1, 12), c.name), '')"
#define TOTAL(x)  "CAST(round(sum(" x ")) AS INTEGER)"
/* The table of ends came with this migration; a day has its sums alone. */
#define HAS_ENDS "(SELECT value FROM meta WHERE key = 'schema_version') >= 32"
static const struct askrows_sums
	ENDED_SUMMED =
		{{"ended_row"},
		 "SELECT " CONTAINER
		 ", coalesce(m.value, ''), max(self), " TOTAL("n") ", " TOTAL("user_us + system_us") ", " TOTAL(
			 "read_bytes") ", " TOTAL("write_bytes") ", " TOTAL("lived_us") ", max(rss_max), coalesce(g.value, '') FROM ended_sum x LEFT JOIN container c ON c.id = x.container"
											" LEFT JOIN text m ON m.id = x.comm LEFT JOIN text g ON g.id = x.cgroup GROUP BY 1, 2"},
	TOLD_SUMMED =
		{{"process_row"},
		 "SELECT " CONTAINER ", " TOTAL(
			 "user_us + system_us") ", 0 FROM process_sum x JOIN process p ON p.id = x.process"
						" LEFT JOIN container c ON c.id = p.container GROUP BY 1"},
	TOLD_ENDED_SUMMED =
		{{"ended_row"},
		 "SELECT " CONTAINER ", " TOTAL("user_us + system_us") ", " TOTAL(
			 "n") " FROM ended_sum x LEFT JOIN container c ON c.id = x.container GROUP BY 1"},
	CHARGED_SUMMED =
		{{"host_row"},
		 "SELECT " TOTAL(
			 "user_us + nice_us + system_us + irq_us + softirq_us") " FROM host_sum WHERE " HAS_ENDS},
	STOLEN_SUMMED = {{"host_row"},
			 "SELECT " TOTAL("steal_us") ", " TOTAL(WHOLE_US) " FROM host_sum"};

struct reading {
	const struct selection *sel;
	const struct store_dict *dict;
	struct shortlived *out;
	size_t cap, cap_told;
	struct idmap row_of;
};

static uint64_t number(sqlite3_stmt *st, int column)
{
	int64_t n = sqlite3_column_int64(st, column);

	return n > 0 ? (uint64_t)n : 0;
}

static bool wants(const struct reading *r, sqlite3_stmt *st)
{
	struct store_process_row p =
		select_process_row(askrows_text(st, 1), askrows_text(st, 0), "");

	p.cgroup = askrows_text(st, 9);
	p.self = sqlite3_column_int(st, 2) != 0;
	return select_wants_process(r->sel, &p);
}

static struct shortlived_row *row_of(struct reading *r, const char *container, const char *comm)
{
	struct shortlived *s = r->out;

	const uint64_t key = hash_bytes(hash_bytes(HASH_SEED, container, strlen(container) + 1),
					comm, strlen(comm) + 1);
	bool fresh;
	uint64_t *at = idmap_ref(&r->row_of, key, &fresh);

	if (!fresh)
		return &s->rows[*at];
	*at = s->n;
	mem_grow(s->rows, s->n, r->cap);
	s->rows[s->n] = (struct shortlived_row){.container = mem_strdup(container),
						.comm = mem_strdup(comm)};
	return &s->rows[s->n++];
}

static void take_ended(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct shortlived_row *x;

	if (!wants(r, st))
		return;
	x = row_of(r, askrows_text(st, 0), askrows_text(st, 1));
	x->n += number(st, 3);
	x->cpu_us += number(st, 4);
	x->read_bytes += number(st, 5);
	x->write_bytes += number(st, 6);
	x->lived_us += number(st, 7);
	x->rss_max = number(st, 8) > x->rss_max ? number(st, 8) : x->rss_max;
}

const struct shortlived_told *shortlived_of(const struct shortlived *s, const char *container)
{
	for (size_t i = 0; i < s->n_told; i++)
		if (!strcmp(s->told[i].container, container))
			return &s->told[i];
	return NULL;
}

static void take_told(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct shortlived *s = r->out;
	const char *container = askrows_text(st, 0);
	struct shortlived_told *x =
		(struct shortlived_told *)(uintptr_t)shortlived_of(s, container);

	if (!x) {
		mem_grow(s->told, s->n_told, r->cap_told);
		x = &s->told[s->n_told++];
		*x = (struct shortlived_told){.container = mem_strdup(container)};
	}
	x->cpu_us += number(st, 1);
	x->n += number(st, 2);
	s->told_us += number(st, 1);
}

static void take_charged(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	if (sqlite3_column_type(st, 0) == SQLITE_NULL)
		return;
	r->out->charged_known = true;
	r->out->charged_us += number(st, 0);
}

static void take_stolen(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	r->out->stolen_us += number(st, 0);
	r->out->whole_us += number(st, 1);
}

static int by_cpu(const void *a, const void *b)
{
	const struct shortlived_row *x = a, *y = b;

	if (x->cpu_us != y->cpu_us)
		return x->cpu_us < y->cpu_us ? 1 : -1;
	return strcmp(x->comm, y->comm);
}

int shortlived_read(const struct selection *sel, struct shortlived *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	const struct askrows_part parts[] = {{ENDED, take_ended, &r, ENDED_SUMMED},
					     {TOLD, take_told, &r, TOLD_SUMMED},
					     {TOLD_ENDED, take_told, &r, TOLD_ENDED_SUMMED},
					     {STOLEN, take_stolen, &r, STOLEN_SUMMED},
					     {CHARGED, take_charged, &r, CHARGED_SUMMED}};
	int rc;

	*out = (struct shortlived){0};
	rc = askrows_each_day(sel, &r.dict, parts, select_is_narrow(sel) ? 4 : 5, e);
	idmap_release(&r.row_of);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_cpu);
	return rc;
}

void shortlived_release(struct shortlived *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->rows[i].container);
		free(s->rows[i].comm);
	}
	for (size_t i = 0; i < s->n_told; i++)
		free(s->told[i].container);
	free(s->rows);
	free(s->told);
	*s = (struct shortlived){0};
}

uint64_t shortlived_rest(uint64_t charged_us, uint64_t told_us)
{
	return charged_us > told_us ? charged_us - told_us : 0;
}

static json_t *ns(uint64_t us)
{
	return json_integer((json_int_t)(us * 1000));
}

void shortlived_json(const struct shortlived *s, json_t *envelope, size_t most)
{
	json_t *ended = json_array();

	for (size_t i = 0; i < s->n && i < most; i++) {
		const struct shortlived_row *x = &s->rows[i];
		json_t *o = json_object();

		json_object_set_new(o, "comm", json_text_or_null(x->comm));
		json_object_set_new(o, "container", json_text_or_null(x->container));
		json_object_set_new(o, "processes", json_integer((json_int_t)x->n));
		json_object_set_new(o, "cpu_used_ns", ns(x->cpu_us));
		json_object_set_new(o, "read_bytes", json_integer((json_int_t)x->read_bytes));
		json_object_set_new(o, "write_bytes", json_integer((json_int_t)x->write_bytes));
		json_object_set_new(o, "mean_lived_ns", ns(x->n ? x->lived_us / x->n : 0));
		json_object_set_new(o, "mem_max_bytes", json_integer((json_int_t)x->rss_max));
		json_array_append_new(ended, o);
	}
	json_side_list(envelope, "ended", ended, s->n);
	if (!s->charged_known)
		return;
	json_object_set_new(envelope, "cpu_charged_ns", ns(s->charged_us));
	json_object_set_new(envelope, "cpu_unattributed_ns",
			    ns(shortlived_rest(s->charged_us, s->told_us)));
}
