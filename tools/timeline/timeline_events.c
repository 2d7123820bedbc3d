/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_events: what happened besides: gaps of the capture, its begin and end, what was lost,
 * processes whose end is on record, what happened to containers (tools/timeline/incidents.h). Only
 * what is on record: a process that just has no samples any more may sleep. What happened again and
 * again is one line with how often, and from when to when.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/families/families.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/stored.h"
#include "tools/select/askrows.h"
#include "tools/timeline/ended.h"
#include "tools/timeline/timeline_parts.h"

#define HOUR_NS      (3600 * NSEC_PER_SEC)
#define MANY         3      /* recordings that began or ended so often are one line */
#define CUT          '\x1f' /* in `many`: where "N times" goes */
#define KEPT_TEXT    "kept by the second: "
#define KEPT_SAYS    (sizeof(KEPT_TEXT) - 1)
#define KEPT_NEAR_NS (30 * NSEC_PER_SEC)

static struct timeline_event *event_add(struct timelining *l, const char *kind, int64_t from_ns,
					int64_t to_ns, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

static struct timeline_event *event_add(struct timelining *l, const char *kind, int64_t from_ns,
					int64_t to_ns, const char *who, const char *fmt, ...)
{
	struct timeline *t = &l->pub;
	struct strbuf s = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&s, fmt, ap);
	va_end(ap);
	mem_grow(t->events, t->n_events, l->cap_events);
	t->events[t->n_events] = (struct timeline_event){.from_ns = from_ns,
							 .to_ns = to_ns,
							 .kind = kind,
							 .text = strbuf_take(&s),
							 .who = who ? mem_strdup(who) : NULL};
	return &t->events[t->n_events++];
}

static void many_set(struct timeline_event *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void many_set(struct timeline_event *v, const char *fmt, ...)
{
	struct strbuf s = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&s, fmt, ap);
	va_end(ap);
	v->many = strbuf_take(&s);
}

static bool is_inside(const struct timelining *l, int64_t ns)
{
	return ns >= l->pub.sel->from_ns && ns < l->pub.sel->to_ns;
}

static void tell_run(void *ctx, sqlite3_stmt *st)
{
	struct timelining *l = ctx;
	const char *family = askrows_text(st, 0);
	int64_t from = sqlite3_column_int64(st, 1), to = sqlite3_column_int64(st, 2);
	int state = sqlite3_column_int(st, 3);

	/* the stacks of what still waited as a recording ended are no recording */
	if (!family_named(family))
		return;
	if (is_inside(l, from)) /* the same in each segment: told once in the end */
		many_set(
			event_add(l, "began", from, from, NULL, "recording of %.40s began", family),
			"recording of %.40s began%c", family, CUT);
	if (is_inside(l, to) && (state == 1 || state == 2))
		many_set(event_add(l, state == 1 ? "ended" : "killed", to, to, NULL,
				   state == 1 ? "recording of %.40s ended" :
						"recording of %.40s was killed",
				   family),
			 state == 1 ? "recording of %.40s ended%c" :
				      "recording of %.40s was killed%c",
			 family, CUT);
}

/* A window of the flight ring: some files of two minutes, with the same reason. */
static void tell_kept(void *ctx, sqlite3_stmt *st)
{
	struct timelining *l = ctx;
	const char *why = askrows_text(st, 2);
	int64_t from = sqlite3_column_int64(st, 0), to = sqlite3_column_int64(st, 1);
	struct timeline_event *v;

	from = from > l->pub.sel->from_ns ? from : l->pub.sel->from_ns;
	to = to < l->pub.sel->to_ns ? to : l->pub.sel->to_ns;
	if (strlen(why) < sizeof(STORE_KEPT) - 1 || from >= to)
		return;
	why += sizeof(STORE_KEPT) - 1;
	for (size_t i = 0; i < l->pub.n_events; i++) {
		v = &l->pub.events[i];
		if (strcmp(v->kind, "kept") != 0 || strcmp(v->text + KEPT_SAYS, why) != 0 ||
		    from > v->to_ns + KEPT_NEAR_NS || to < v->from_ns - KEPT_NEAR_NS)
			continue;
		v->from_ns = from < v->from_ns ? from : v->from_ns;
		v->to_ns = to > v->to_ns ? to : v->to_ns;
		return;
	}
	event_add(l, "kept", from, to, NULL, KEPT_TEXT "%s", why);
}

static bool is_kept(const struct timelining *l, const struct listed_event *x)
{
	for (size_t i = 0; i < l->pub.n_events && !strcmp(x->kind, "kept"); i++)
		if (!strcmp(l->pub.events[i].kind, "kept") &&
		    !strcmp(l->pub.events[i].text + KEPT_SAYS, x->detail))
			return true;
	return false;
}

/* The losses of the same hour, family and reason in another segment: an hour may be split between
 * segments. */
static struct timeline_event *loss_known(struct timelining *l, int64_t from_ns, const char *of)
{
	for (size_t i = 0; i < l->pub.n_events; i++) {
		struct timeline_event *v = &l->pub.events[i];

		if (!strcmp(v->kind, "lost") && v->from_ns / HOUR_NS == from_ns / HOUR_NS &&
		    !strcmp(strstr(v->text, " of "), of))
			return v;
	}
	return NULL;
}

static void tell_loss(void *ctx, sqlite3_stmt *st)
{
	struct timelining *l = ctx;
	int64_t from = sqlite3_column_int64(st, 2) * NSEC_PER_SEC,
		to = sqlite3_column_int64(st, 3) * NSEC_PER_SEC;
	uint64_t n = (uint64_t)sqlite3_column_int64(st, 4);
	struct strbuf of cleanup_strbuf = STRBUF_INIT, text = STRBUF_INIT;
	struct timeline_event *v;

	strbuf_addf(&of, " of %.40s: %.60s", askrows_text(st, 0), askrows_text(st, 1));
	v = loss_known(l, from, strbuf_str(&of));
	if (!v)
		v = event_add(l, "lost", from, to, NULL, "lost 0%s", strbuf_str(&of));
	v->n += n;
	v->from_ns = from < v->from_ns ? from : v->from_ns;
	v->to_ns = to > v->to_ns ? to : v->to_ns;
	strbuf_addf(&text, "lost %llu%s", (unsigned long long)v->n, strbuf_str(&of));
	free(v->text);
	v->text = strbuf_take(&text);
}

/* Kills for memory in a container are counted for it as a whole. Of others that have the same words
 * there may be more: those that nothing else was recorded of have no row. `pid` 0: several. */
static struct timeline_event *tell_ended(struct timelining *l, const char *container,
					 const char *who, const char *comm, uint32_t pid,
					 int64_t first_ns, int64_t last_ns, const char *how)
{
	const bool oom = *container && !strcmp(how, "out of memory");
	const struct incident_container *c = oom ? incidents_named(&l->incidents, container) : NULL;
	const char *colon = *container ? ": " : "";
	struct strbuf name cleanup_strbuf = STRBUF_INIT;
	struct timeline_event *v;

	if (c && c->oom.n)
		return NULL;
	strbuf_addf(&name, "%.64s", comm);
	if (pid)
		strbuf_addf(&name, " (%u)", pid);
	v = event_add(l, "process ended", first_ns, last_ns, who, "%.64s%s%s ended: %.80s",
		      container, colon, strbuf_str(&name), how);
	many_set(v, "%.64s%s%.64s ended at least%c: %.80s", container, colon, comm, CUT, how);
	return v;
}

static const char *container_of(const struct store_process_row *row)
{
	return *row->container ? row->container : row->container_id;
}

/* Is its end one of the events (view `events`), which are counted there? */
static bool is_event(const struct store_process_row *row)
{
	return row->how == STORE_END_SIGNAL || row->how == STORE_END_OOM ||
	       (row->how == STORE_END_EXIT && row->status);
}

/* When: at its last reading of memory, which is known after all is read. */
static void tell_end(void *ctx, sqlite3_stmt *st)
{
	struct timelining *l = ctx;
	sqlite3_int64 id = sqlite3_column_int64(st, 0);
	struct timeline *t = &l->pub;
	const struct store_process_row *row;
	struct timeline_process *p;
	uint32_t at;

	if (id <= 0 || (size_t)id >= l->dict->n_processes)
		return;
	row = &l->dict->processes[id];
	if (!select_wants_process(t->sel, row) || !strcmp(askrows_text(st, 1), "exit 0"))
		return;
	if (is_event(row) && is_inside(l, row->end_ns))
		return;
	if (row->how && is_inside(l, row->end_ns)) {
		const char *container = container_of(row);

		tell_ended(l, container, *container ? container : row->comm, row->comm, row->pid,
			   row->end_ns, row->end_ns, askrows_text(st, 1));
		return;
	}
	at = timelining_process(l, (uint32_t)id); /* may move the processes */
	p = &t->processes[at];
	free(p->ended);
	p->ended = mem_strdup(askrows_text(st, 1));
}

int timelining_events(struct timelining *l, const char *path, struct err *e)
{
	static const struct {
		const char *table; /* as askrows_part's; NULL: it asks tables alone */
		const char *sql;
		void (*tell)(void *ctx, sqlite3_stmt *st);
	} questions[] = {
		{NULL,
		 "SELECT family, from_ns, to_ns, state FROM run WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2"
		 " AND options NOT GLOB '" STORE_KEPT "*'",
		 tell_run},
		{NULL,
		 "SELECT min(from_ns), max(to_ns), options FROM run WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2"
		 " AND options GLOB '" STORE_KEPT "*' AND state <> 4 GROUP BY options",
		 tell_kept},
		{"loss_row",
		 "SELECT family, reason, min(ts), max(ts), sum(lost) FROM loss WHERE ts BETWEEN ?1 AND ?2 GROUP BY 1, 2, ts / 3600",
		 tell_loss},
		{"process_note",
		 "SELECT process_id, value FROM process_notes WHERE key = 'last' AND value <> ''",
		 tell_end},
	};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(questions) && !rc; i++) {
		if (!questions[i].table)
			rc = askrows(l->pub.sel, l->seg, path, questions[i].sql, questions[i].tell,
				     l, e);
		else if (store_segment_has(l->seg, questions[i].table))
			rc = askrows(l->pub.sel, l->seg, path, questions[i].sql, questions[i].tell,
				     l, e);
	}
	return rc;
}

/* --- when all is read --- */

static int64_t last_told(const struct timeline *t, uint32_t process)
{
	int64_t last = 0;

	for (int of = TIMELINE_ALLOC; of <= TIMELINE_INUSE; of++) {
		size_t first = t->first_cell[of][process], end = t->first_cell[of][process + 1];

		if (end > first && timeline_time(t, t->cells[of][end - 1].step) > last)
			last = timeline_time(t, t->cells[of][end - 1].step);
	}
	return last;
}

static void add_ends(struct timelining *l)
{
	for (uint32_t i = 0; i < l->pub.n_processes; i++) {
		const struct timeline_process *p = &l->pub.processes[i];
		const struct timeline_group *g = &l->pub.groups[p->group];
		int64_t at = p->ended ? last_told(&l->pub, i) : 0;

		if (at)
			tell_ended(l, g->kind == FILTER_CONTAINER ? g->name : "", g->name, p->comm,
				   p->pid, at, at, p->ended);
	}
}

static void add_incidents(struct timelining *l)
{
	static const char *const kinds[] = {[INCIDENT_OOM] = "oom",
					    [INCIDENT_RESTART] = "restart",
					    [INCIDENT_MADE_ANEW] = "new container"};

	for (size_t i = 0; i < l->incidents.n; i++)
		for (int what = 0; what < INCIDENTS; what++) {
			const struct incident_container *c = &l->incidents.rows[i];
			const struct incident_count *n = incident_count(c, (enum incident)what);
			struct strbuf text cleanup_strbuf = STRBUF_INIT;

			if (!n->n)
				continue;
			incident_say(c, (enum incident)what, &text);
			event_add(l, kinds[what], n->first_ns, n->last_ns, c->name, "%.64s: %s",
				  c->name, strbuf_str(&text))
				->n = n->n > 1 ? n->n : 0;
		}
}

/* Restarts come from the containers' instances, of containers with recorded processes. */
static bool is_unknown_restart(const struct timelining *l, const struct listed_event *x)
{
	const struct incident_container *c = incidents_named(&l->incidents, x->name);

	return !strncmp(x->kind, "restart", strlen("restart")) && (!c || !c->restarts.n);
}

/* Of a process that ended, how: "signal 11 (SEGV)", "exit 1", "out of memory". */
static void end_say(const struct listed_event *x, char how[ENDED_MAX])
{
	unsigned signal;

	if (!strcmp(x->kind, "oom kill"))
		ended_say(STORE_END_OOM, 0, how);
	else if (sscanf(x->detail, "signal %u", &signal) == 1)
		ended_say(STORE_END_SIGNAL, signal, how);
	else
		snprintf(how, ENDED_MAX, "%s", x->detail);
}

/* As often as `events` counts them. */
static void add_end(struct timelining *l, const struct listed_event *x)
{
	struct timeline_event *v;
	char how[ENDED_MAX];

	end_say(x, how);
	v = tell_ended(l, x->container, *x->container ? x->container : x->comm, x->comm,
		       x->n > 1 ? 0 : x->pid, x->first_ns, x->last_ns, how);
	if (v)
		v->n = x->n > 1 ? x->n : 0;
}

static void add_happenings(struct timelining *l)
{
	for (size_t i = 0; i < l->happenings.n; i++) {
		const struct listed_event *x = &l->happenings.rows[i];
		struct strbuf text cleanup_strbuf = STRBUF_INIT;

		if (!strcmp(x->subject, "process"))
			add_end(l, x);
		if ((listed_event_is_incident(x) && !is_unknown_restart(l, x)) || is_kept(l, x))
			continue;
		listed_event_say(x, &text);
		event_add(l, listed_event_kind(x), x->first_ns, x->last_ns,
			  *x->name ? x->name : NULL, "%s", strbuf_str(&text))
			->n = x->n > 1 ? x->n : 0;
	}
}

static bool is_gap(const struct timeline *t, size_t step)
{
	return !t->covered_ns[step];
}

static void add_gaps(struct timelining *l)
{
	const struct timeline *t = &l->pub;

	for (size_t i = 0, end; i < t->n_steps; i = end + 1) {
		int64_t from, to;

		for (end = i; end < t->n_steps && is_gap(t, end); end++)
			;
		if (end == i)
			continue;
		/* the steps at its ends may be covered in part */
		from = timeline_time(t, i) - (i ? t->step_ns - (int64_t)t->covered_ns[i - 1] : 0);
		to = timeline_time(t, end) +
		     (end < t->n_steps ? t->step_ns - (int64_t)t->covered_ns[end] : 0);
		from = from > t->sel->from_ns ? from : t->sel->from_ns;
		to = to < t->sel->to_ns ? to : t->sel->to_ns;
		/* at the ends of the range buckets are cut, and the newest ones are not stored yet
		 */
		if (to - from <= 2 * l->bucket_ns &&
		    (from == t->sel->from_ns || to == t->sel->to_ns))
			continue;
		if (to > from)
			event_add(l, "gap", from, to, NULL, "nothing recorded");
	}
}

static int by_time(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;
	int c;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	c = strcmp(x->kind, y->kind);
	return c ? c : strcmp(x->text, y->text);
}

static int by_what(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;
	int c;

	if (!x->many || !y->many)
		return !x->many - !y->many;
	c = strcmp(x->kind, y->kind);
	if (!c)
		c = strcmp(x->many, y->many);
	return c ? c : by_time(x, y);
}

static void event_release(struct timeline_event *v)
{
	free(v->text);
	free(v->many);
	free(v->who);
}

static bool says_the_same(const struct timeline_event *a, const struct timeline_event *b)
{
	return a->many && b->many && !strcmp(a->kind, b->kind) && !strcmp(a->many, b->many);
}

/* Events [first, end) become the first of them, which says how often. */
static void make_one(struct timeline *t, size_t first, size_t end)
{
	struct timeline_event *one = &t->events[first];
	const char *cut = strchr(one->many, CUT);
	struct strbuf s = STRBUF_INIT;
	uint64_t n = 0;

	for (size_t i = first; i < end; i++) {
		n += t->events[i].n ? t->events[i].n : 1;
		one->to_ns = t->events[i].to_ns > one->to_ns ? t->events[i].to_ns : one->to_ns;
	}
	strbuf_addf(&s, "%.*s %llu times%s", (int)(cut - one->many), one->many,
		    (unsigned long long)n, cut + 1);
	free(one->text);
	one->text = strbuf_take(&s);
	one->n = n;
	for (size_t i = first + 1; i < end; i++)
		event_release(&t->events[i]);
}

/* What segments repeat is one; what happened often is one line. */
static void fold_events(struct timeline *t)
{
	size_t n = 0;

	qsort(t->events, t->n_events, sizeof(*t->events), by_what);
	for (size_t i = 0, first = 0; i < t->n_events; i++) {
		struct timeline_event *v = &t->events[i];
		size_t least;

		if (n > first && !by_time(&t->events[n - 1], v))
			event_release(v);
		else
			t->events[n++] = *v;
		if (i + 1 < t->n_events && says_the_same(&t->events[first], &t->events[i + 1]))
			continue;
		least = strcmp(t->events[first].kind, "process ended") ? MANY :
			t->events[first].n                             ? 1 :
									 2;
		if (t->events[first].many && n - first >= least) {
			make_one(t, first, n);
			n = first + 1;
		}
		first = n;
	}
	t->n_events = n;
}

void timelining_events_end(struct timelining *l)
{
	struct timeline *t = &l->pub;

	add_ends(l);
	add_incidents(l);
	add_happenings(l);
	add_gaps(l);
	if (!t->n_events)
		return;
	fold_events(t);
	qsort(t->events, t->n_events, sizeof(*t->events), by_time);
}
