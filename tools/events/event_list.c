/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/events/event_list.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/select/askrows.h"
#include "tools/select/filter.h"

struct reading {
	const struct selection *sel;
	struct event_list *out;
	size_t cap;
};

static void release(struct listed_event *x)
{
	free(x->kind);
	free(x->subject);
	free(x->name);
	free(x->detail);
	free(x->which);
	free(x->comm);
	free(x->container);
	free(x->by);
}

void event_list_release(struct event_list *x)
{
	for (size_t i = 0; i < x->n; i++)
		release(&x->rows[i]);
	free(x->rows);
	*x = (struct event_list){0};
}

/* --- rows --- */

static bool is(const struct listed_event *x, const char *kind)
{
	return !strcmp(x->kind, kind);
}

static bool is_of(const struct listed_event *x, const char *subject)
{
	return !strcmp(x->subject, subject);
}

/* Filters are of processes: what is the host's or a file system's is in where nothing narrows. */
static bool wants(const struct selection *sel, const struct listed_event *x)
{
	const bool container = is_of(x, "container"), unit = is_of(x, "unit");
	struct store_process_row p =
		select_process_row(x->comm, x->container, container ? x->which : x->container);

	p.pid = x->pid;
	p.unit = unit ? x->name : "";
	p.cgroup = container || unit ? "" : x->which;
	return !select_is_narrow(sel) ||
	       ((*x->comm || *x->container || unit) && select_wants_process(sel, &p));
}

static char *text(sqlite3_stmt *st, int column)
{
	return mem_strdup(askrows_text(st, column));
}

static void take_row(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t at_ns = sqlite3_column_int64(st, 0);
	struct listed_event x = {.first_ns = at_ns,
				 .last_ns = at_ns,
				 .kind = text(st, 1),
				 .subject = text(st, 2),
				 .name = text(st, 3),
				 .detail = text(st, 4),
				 .which = text(st, 5),
				 .comm = text(st, 6),
				 .pid = (uint32_t)sqlite3_column_int64(st, 7),
				 .container = text(st, 8),
				 .by = text(st, 9),
				 .n = (uint64_t)sqlite3_column_int64(st, 10),
				 .lived_ns = sqlite3_column_type(st, 11) == SQLITE_NULL ?
						     -1 :
						     sqlite3_column_int64(st, 11)};

	if (at_ns < r->sel->from_ns || at_ns >= r->sel->to_ns || !wants(r->sel, &x)) {
		release(&x);
		return;
	}
	mem_grow(r->out->rows, r->out->n, r->cap);
	r->out->rows[r->out->n++] = x;
}

/* Of tables alone: was family host recorded, and has the view a row of other tables than event_row?
 * To make the view takes longer than to ask a file that has nothing of it. */
static const char ASK[] =
	"SELECT EXISTS (SELECT 1 FROM run WHERE family = 'host' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2),"
	" EXISTS (SELECT 1 FROM process WHERE end_ns > 0 AND end_ns / 1000000000 BETWEEN ?1 AND ?2 AND NOT self AND how IN (1, 2, 3))"
	" OR (SELECT max(boot_offset_ns) > min(boot_offset_ns) FROM clock)";

struct asked {
	bool answered, host, others;
};

static void take_asked(void *ctx, sqlite3_stmt *st)
{
	struct asked *x = ctx;

	*x = (struct asked){true, sqlite3_column_int(st, 0), sqlite3_column_int(st, 1)};
}

static int read_segment(struct reading *r, const char *path, struct err *e)
{
	struct asked asked = {0};
	struct store_segment *seg;
	int rc = select_segment(r->sel, path, &seg, e);

	if (!rc)
		rc = askrows(r->sel, seg, path, ASK, take_asked, &asked, e);
	r->out->recorded = r->out->recorded || asked.host;
	if (rc || (asked.answered && !asked.others && !store_segment_has(seg, "event_row")))
		return rc;
	return askrows(
		r->sel, seg, path,
		"SELECT at_ns, kind, subject, name, detail, which, comm, pid, container, caused_by, n, lived_ns"
		" FROM events WHERE ts BETWEEN ?1 AND ?2",
		take_row, r, e);
}

int event_list_read(const struct selection *sel, bool every, struct event_list *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	int rc = 0;

	*out = (struct event_list){0};
	for (size_t i = 0; !rc && i < sel->n_segments; i++)
		rc = read_segment(&r, sel->segments[i].path, e);
	if (rc)
		event_list_release(out);
	else
		event_list_fold(out, every);
	return rc;
}

/* --- events that are recorded twice --- */

static int by_time(const void *a, const void *b)
{
	const struct listed_event *x = a, *y = b;
	int c;

	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	c = strcmp(x->subject, y->subject); /* container before process */
	c = c ? c : strcmp(x->name, y->name);
	c = c ? c : strcmp(x->kind, y->kind);
	return c ? c : strcmp(x->detail, y->detail);
}

static void sort(struct event_list *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++) {
		if (x->rows[i].gone)
			release(&x->rows[i]);
		else
			x->rows[n++] = x->rows[i];
	}
	x->n = n;
	if (n)
		qsort(x->rows, n, sizeof(*x->rows), by_time);
}

/* an event's time is kept to the microsecond, and each segment has its own clock offset */
#define SAME_NS 1000000

/* Is there an event of a container by this process's end? */
static bool is_containers(const struct event_list *x, size_t at)
{
	const struct listed_event *p = &x->rows[at];

	for (size_t i = at; i-- > 0 && p->first_ns - x->rows[i].first_ns <= SAME_NS;)
		if (x->rows[i].pid == p->pid && !is_of(&x->rows[i], "process"))
			return true;
	for (size_t i = at + 1; i < x->n && x->rows[i].first_ns - p->first_ns <= SAME_NS; i++)
		if (x->rows[i].pid == p->pid && !is_of(&x->rows[i], "process"))
			return true;
	return false;
}

static bool is_repeated(const struct event_list *x, size_t at)
{
	return at && !by_time(&x->rows[at - 1], &x->rows[at]) &&
	       x->rows[at - 1].pid == x->rows[at].pid;
}

static void drop_told(struct event_list *x, bool every)
{
	for (size_t i = 0; i < x->n; i++) {
		struct listed_event *r = &x->rows[i];

		if (is_repeated(x, i)) /* a process's row is in each segment that has it */
			r->gone = r->lived_ns >= 0 || is(r, "clock set");
		else if (is_of(r, "process") && r->pid)
			r->gone = is_containers(x, i) ||
				  (!every && is(r, "failed") && r->lived_ns < EVENT_LIST_FAILED_NS);
	}
	sort(x);
}

/* --- restart loops --- */

/* The next restart of the same container after row `at`; x->n: none that belongs to the same loop.
 */
static size_t next_restart(const struct event_list *x, size_t at)
{
	for (size_t i = at + 1;
	     i < x->n && x->rows[i].first_ns - x->rows[at].first_ns <= EVENT_LIST_GAP_NS; i++)
		if (!x->rows[i].gone && is(&x->rows[i], "restarted") &&
		    !strcmp(x->rows[i].name, x->rows[at].name))
			return i;
	return x->n;
}

static bool is_of_loop(const struct listed_event *r, const char *name)
{
	return is_of(r, "container") && !r->gone && !strcmp(r->name, name) &&
	       (is(r, "restarted") || is(r, "started") || is(r, "stopped"));
}

/* How it stopped most often; borrowed. */
static const char *usual_end(const struct event_list *x, size_t first, size_t end, const char *name)
{
	struct idmap count = {0};
	const char *most = "";
	uint64_t most_n = 0;

	for (size_t i = first; i < end; i++) {
		const struct listed_event *r = &x->rows[i];
		uint64_t *n;
		bool fresh;

		if (!is_of_loop(r, name) || !is(r, "stopped"))
			continue;
		n = idmap_ref(&count, hash_bytes(HASH_SEED, r->detail, strlen(r->detail)), &fresh);
		*n += r->n;
		if (*n > most_n) {
			most_n = *n;
			most = r->detail;
		}
	}
	idmap_release(&count);
	return most;
}

static void loop_make(struct event_list *x, size_t first, size_t last, uint64_t n)
{
	struct listed_event *r = &x->rows[first];
	size_t begin = first, end = last + 1;
	char *detail;

	while (begin && r->first_ns - x->rows[begin - 1].first_ns <= EVENT_LIST_GAP_NS)
		begin--;
	while (end < x->n && x->rows[end].first_ns - x->rows[last].first_ns <= EVENT_LIST_GAP_NS)
		end++;
	detail = mem_strdup(usual_end(x, begin, end, r->name));
	for (size_t i = begin; i < end; i++)
		if (i != first && is_of_loop(&x->rows[i], r->name)) {
			x->rows[i].gone = true;
			r->last_ns =
				x->rows[i].last_ns > r->last_ns ? x->rows[i].last_ns : r->last_ns;
		}
	free(r->detail);
	free(r->kind);
	r->detail = detail;
	r->kind = mem_strdup("restart loop");
	r->n = n;
}

static void find_loops(struct event_list *x)
{
	for (size_t i = 0; i < x->n; i++) {
		uint64_t n = x->rows[i].n;
		size_t last = i;

		if (x->rows[i].gone || !is(&x->rows[i], "restarted"))
			continue;
		for (size_t k; (k = next_restart(x, last)) < x->n; last = k)
			n += x->rows[k].n;
		if (n >= EVENT_LIST_LOOP)
			loop_make(x, i, last, n);
	}
	sort(x);
}

/* --- the same again --- */

static uint64_t key_of(const struct listed_event *x)
{
	const char *const parts[] = {x->kind, x->subject, x->name, x->detail, x->container};
	uint64_t key = HASH_SEED;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		key = hash_bytes(key, parts[i], strlen(parts[i]) + 1);
	return key;
}

static void add(struct listed_event *to, struct listed_event *x)
{
	to->n += x->n;
	to->last_ns = x->last_ns;
	to->pid = to->pid == x->pid ? to->pid : 0;
	if (strcmp(to->by, x->by) != 0)
		to->by[0] = '\0'; /* not always the same */
	x->gone = true;
}

static void fold_same(struct event_list *x)
{
	struct idmap last = {0}; /* the newest row of its kind that is kept */

	for (size_t i = 0; i < x->n; i++) {
		bool fresh;
		uint64_t *at = idmap_ref(&last, key_of(&x->rows[i]), &fresh);

		if (!fresh && x->rows[i].first_ns - x->rows[*at].last_ns <= EVENT_LIST_GAP_NS)
			add(&x->rows[*at], &x->rows[i]);
		else
			*at = i;
	}
	idmap_release(&last);
	sort(x);
}

void event_list_fold(struct event_list *x, bool every)
{
	sort(x);
	drop_told(x, every);
	if (every)
		return;
	find_loops(x);
	fold_same(x);
}

/* --- words --- */

void listed_event_say(const struct listed_event *x, struct strbuf *out)
{
	if (is_of(x, "process") && *x->container)
		strbuf_addf(out, "%.64s: ", x->container);
	if (*x->name)
		strbuf_addf(out, "%.200s", x->name);
	if (is_of(x, "process") && x->pid)
		strbuf_addf(out, " (%u)", x->pid);
	strbuf_addf(out, "%s%s", *x->name ? ": " : "", x->kind);
	if (*x->detail)
		strbuf_addf(out, ", %.300s", x->detail);
	if (*x->by)
		strbuf_addf(out, " (%.80s)", x->by);
	if (x->n > 1)
		strbuf_addf(out, ", %llu times", (unsigned long long)x->n);
}

const char *listed_event_kind(const struct listed_event *x)
{
	static const char *const kinds[] = {
		"stopped",       "created",       "removed",   "throttled",    "not throttled",
		"limit changed", "image changed", "full",      "not full",     "fills",
		"read-only",     "writable",      "healthy",   "unhealthy",    "clock set",
		"suspended",     "started",       "oom kill",  "not resolved", "mounted",
		"unmounted",     "log burst",     "log errors"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (is(x, kinds[i]))
			return kinds[i];
	return !strncmp(x->kind, "restart", strlen("restart")) ? "restart" : "event";
}

bool listed_event_is_incident(const struct listed_event *x)
{
	static const char *const told[] = {"oom kill", "restarted", "restart loop", "started"};

	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		if (is(x, told[i]))
			return true;
	return is_of(x, "process");
}

bool listed_event_is_bad(const struct listed_event *x)
{
	static const char *const bad[] = {"oom kill",     "killed",    "failed",
					  "restart loop", "throttled", "full",
					  "read-only",    "unhealthy", "log errors"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (is(x, bad[i]))
			return true;
	return is(x, "stopped") && *x->detail && strcmp(x->detail, "exit 0") != 0;
}
