/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/javawaits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/select/askrows.h"
#include "tools/select/select.h"

/* process, kind, class, owner, place, n, ns */
static const char WAITS[] =
	"SELECT process_id, kind, class, owner, place, sum(n), sum(ns) FROM java_waits WHERE ts BETWEEN ?1 AND ?2"
	" GROUP BY 1, 2, 3, 4, 5";

struct reading {
	const struct selection *sel;
	const struct store_dict *dict;
	struct javawaits *out;
};

bool javawaits_is_idle(const char *kind, const char *class_name)
{
	/* where threads of pools and queues wait for work; java.util.concurrent's locks end in Sync
	 */
	static const char *const idle[] = {"ConditionObject", "ConditionNode", "SynchronousQueue",
					   "TransferStack",   "ForkJoinPool",  "TransferQueue",
					   "Exchanger"};

	if (!strcmp(kind, "wait") || (!strcmp(kind, "park") && !*class_name))
		return true;
	for (size_t i = 0; !strcmp(kind, "park") && i < ARRAY_SIZE(idle); i++)
		if (strstr(class_name, idle[i]))
			return true;
	return false;
}

static bool is_same(const struct javawait *x, const struct store_process_row *p, sqlite3_stmt *st)
{
	return x->pid == (int64_t)p->pid && !strcmp(x->comm, p->comm) &&
	       !strcmp(x->container, p->container) && !strcmp(x->kind, askrows_text(st, 1)) &&
	       !strcmp(x->class_name, askrows_text(st, 2)) &&
	       !strcmp(x->owner, askrows_text(st, 3)) && !strcmp(x->place, askrows_text(st, 4));
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const int64_t id = sqlite3_column_int64(st, 0);
	const struct store_process_row *p;
	struct javawaits *w = r->out;
	size_t i = 0;

	if (id <= 0 || (uint64_t)id >= r->dict->n_processes || !r->dict->processes[id].present)
		return;
	p = &r->dict->processes[id];
	if (!select_wants_process(r->sel, p))
		return;
	while (i < w->n && !is_same(&w->rows[i], p, st))
		i++;
	if (i == w->n) {
		mem_grow(w->rows, w->n, w->cap);
		w->rows[w->n++] = (struct javawait){
			.container = mem_strdup(p->container),
			.comm = mem_strdup(p->comm),
			.kind = mem_strdup(askrows_text(st, 1)),
			.class_name = mem_strdup(askrows_text(st, 2)),
			.owner = mem_strdup(askrows_text(st, 3)),
			.place = mem_strdup(askrows_text(st, 4)),
			.pid = p->pid,
			.idle = javawaits_is_idle(askrows_text(st, 1), askrows_text(st, 2))};
	}
	w->rows[i].n += (uint64_t)sqlite3_column_int64(st, 5);
	w->rows[i].ns += (uint64_t)sqlite3_column_int64(st, 6);
}

/* A monitor, or one of java.util.concurrent's locks. */
static bool is_lock(const struct javawait *x)
{
	return !strcmp(x->kind, "monitor") || (!x->idle && strstr(x->class_name, "Sync"));
}

static int tier(const struct javawait *x)
{
	return x->idle ? 2 : !is_lock(x);
}

static int by_matter(const void *a, const void *b)
{
	const struct javawait *x = a, *y = b;
	int c = tier(x) - tier(y);

	c = c ? c : (x->ns < y->ns) - (x->ns > y->ns);
	return c ? c : strcmp(x->place, y->place);
}

int javawaits_read(const struct selection *sel, struct javawaits *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	const struct askrows_part parts[] = {
		{WAITS, take, &r, {{NULL}, NULL}, "java_wait_row"},
	};
	int rc;

	*out = (struct javawaits){0};
	rc = askrows_each_day(sel, &r.dict, parts, ARRAY_SIZE(parts), e);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_matter);
	return rc;
}

void javawaits_release(struct javawaits *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->rows[i].container);
		free(w->rows[i].comm);
		free(w->rows[i].kind);
		free(w->rows[i].class_name);
		free(w->rows[i].owner);
		free(w->rows[i].place);
	}
	free(w->rows);
	*w = (struct javawaits){0};
}

/* ---- shown ---- */

static void row_of(struct row *o, const struct javawait *x)
{
	row_number(o, "PID", TABLE_RIGHT, "pid", x->pid, true);
	row_text(o, "NAME", TABLE_MIDDLE, "comm", x->comm);
	row_text(o, "CONTAINER", TABLE_MIDDLE, "container", x->container);
	row_text(o, "JAVA", TABLE_LEFT, "kind", x->kind);
	row_text(o, "OF CLASS", TABLE_MIDDLE, "class", x->class_name);
	row_text(o, "HELD BY", TABLE_MIDDLE, "owner", x->owner);
	row_count(o, "WAITS", TABLE_RIGHT, "waits", x->n, true);
	row_ns(o, "TOTAL", TABLE_RIGHT, "total_ns", (int64_t)x->ns, true);
	row_text(o, "WAITED IN", TABLE_SPARE, "place", x->place);
	row_json(o, "idle", json_boolean(x->idle));
	row_end(o);
}

void javawaits_print(const struct javawaits *w, uint64_t most, bool idle, int width)
{
	struct row o = row_of_table();
	bool any = false;

	for (size_t i = 0; i < w->n && most; i++)
		if (idle || !w->rows[i].idle) {
			row_of(&o, &w->rows[i]);
			any = true;
			most--;
		}
	if (any)
		table_print(o.table, stdout, width);
	table_free(o.table);
}

json_t *javawaits_json(const struct javawaits *w, bool idle)
{
	json_t *list = json_array();

	for (size_t i = 0; i < w->n; i++)
		if (idle || !w->rows[i].idle) {
			struct row o = row_of_json();

			row_of(&o, &w->rows[i]);
			json_array_append_new(list, o.json);
		}
	return list;
}

void javawaits_brief(struct strbuf *out, const struct javawaits *w)
{
	const struct javawait *x = w->n ? w->rows : NULL;
	char time[UNITS_MAX];

	if (!x || !is_lock(x))
		return;
	units_ns((int64_t)x->ns, time, sizeof(time));
	strbuf_addf(out, "threads of %s waited %s for %s%s", x->comm, time,
		    strcmp(x->kind, "monitor") ? "" : "monitor ", x->class_name);
	if (*x->owner)
		strbuf_addf(out, ", which thread %s had", x->owner);
	if (*x->place)
		strbuf_addf(out, ", in %s", x->place);
}
