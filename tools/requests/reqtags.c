/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/reqtags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/cli/quantity.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "schema/facts/l7.h"
#include "tools/requests/reqrows.h"
#include "tools/select/askrows.h"

static const char TAGS[] =
	"SELECT x.process, x.tag, coalesce(o.value, ''), coalesce(x.total_us, 0) FROM request_tag_row x JOIN meta t0 ON t0.key = 't0'"
	" LEFT JOIN text o ON o.id = x.operation WHERE x.ts + t0.value BETWEEN ?1 AND ?2";

/* Its whole name, or its method and path: a host may be between them. */
bool reqtags_meant(const char *request, const char *operation)
{
	const char *path = strchr(request, ' ');
	size_t method = path ? (size_t)(path - request) + 1 : 0, n = strlen(operation);

	if (!strcmp(request, operation))
		return true;
	if (!path || path[1] != '/' || strncmp(request, operation, method))
		return false;
	return n > method + strlen(path + 1) &&
	       !strcmp(operation + n - strlen(path + 1), path + 1) &&
	       !memchr(operation + method, '/', n - method - strlen(path + 1));
}

/* ---- how slow ---- */

static int64_t quantile_us(const struct reqrows *r, const char *request, double q)
{
	struct reqrows_row sum = {0};
	uint64_t ns;

	for (size_t i = 0; i < r->n; i++) {
		const struct reqrows_row *x = &r->rows[i];

		if (!reqtags_meant(request, x->operation))
			continue;
		hist_merge(&sum.latency, &x->latency);
		sum.answered += x->answered;
		sum.max_ns = x->max_ns > sum.max_ns ? x->max_ns : sum.max_ns;
	}
	ns = reqrows_quantile(&sum, q);
	hist_release(&sum.latency);
	return (int64_t)(ns / 1000);
}

static int slower_of(const struct selection *sel, const char *request, const char *slower,
		     int64_t *us, struct err *e)
{
	char *end = NULL;
	double q = *slower == 'p' ? strtod(slower + 1, &end) : 0;
	struct reqrows rows;
	int64_t ns;
	int rc;

	if (*slower != 'p') {
		if (quantity_ns(slower, &ns) || ns < 0)
			return err_set(
				e, -EINVAL, EXIT_USAGE,
				"--slower-than is a time (50ms) or a quantile (p99), not '%s'",
				slower);
		*us = ns / 1000;
		return 0;
	}
	if (end == slower + 1 || *end || !(q > 0 && q < 100))
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--slower-than is a time (50ms) or a quantile (p99), not '%s'",
			       slower);
	rc = reqrows_read(sel, REQROWS_BY_OPERATION, "server", false, &rows, e);
	if (!rc)
		*us = quantile_us(&rows, request, q / 100);
	reqrows_release(&rows);
	return rc;
}

/* ---- which ---- */

struct finding {
	const struct selection *sel;
	const struct store_dict *dict;
	const char *request;
	struct reqtags *out;
	const struct idmap *pids;                                              /* NULL: all */
	void (*each)(void *ctx, uint64_t key, uint32_t pid, int64_t total_us); /* NULL: not asked */
	void *ctx;
};

static void take(void *ctx, sqlite3_stmt *st)
{
	struct finding *f = ctx;
	int64_t us = sqlite3_column_int64(st, 3);
	const struct store_process_row *p =
		store_dict_process(f->dict, sqlite3_column_int64(st, 0));
	uint64_t key;
	bool fresh;

	if (!p || us <= f->out->slower_us || (f->out->most_us >= 0 && us > f->out->most_us) ||
	    !reqtags_meant(f->request, askrows_text(st, 2)) || !select_wants_process(f->sel, p) ||
	    (f->pids && !idmap_get(f->pids, p->pid, &(uint64_t){0})))
		return;
	if (!strcmp(p->lang, "go")) {
		f->out->go++;
		if (!((uint64_t)sqlite3_column_int64(st, 1) & REQUEST_TAG_GOROUTINE))
			return;
		f->out->goroutines++;
	}
	key = store_tag_key((uint64_t)sqlite3_column_int64(st, 1), p->pid);
	*idmap_ref(&f->out->tags, key, &fresh) = 1;
	if (f->each)
		f->each(f->ctx, key, p->pid, us);
	f->out->n++;
	f->out->total_us += us;
}

/* ---- none ---- */

static const char LOGGED[] =
	"SELECT coalesce(o.value, ''), coalesce(sd.value, ''), coalesce(x.total_us, -1) FROM request_log_row x JOIN meta t0 ON t0.key = 't0'"
	" LEFT JOIN text o ON o.id = x.operation LEFT JOIN text sd ON sd.id = x.side WHERE x.ts + t0.value BETWEEN ?1 AND ?2";

struct logged {
	const char *request;
	const struct reqtags *than;
	size_t n, server;
};

static void logged_take(void *ctx, sqlite3_stmt *st)
{
	struct logged *l = ctx;
	int64_t us = sqlite3_column_int64(st, 2);

	if (!reqtags_meant(l->request, askrows_text(st, 0)) || us <= l->than->slower_us ||
	    (l->than->most_us >= 0 && us > l->than->most_us))
		return;
	l->n++;
	l->server += !strcmp(askrows_text(st, 1), "server");
}

/* How many were counted, kept or not, and how many are kept without a tag. */
static int looked_for(const struct reqtags *t, const struct selection *sel, const char *request,
		      uint64_t *counted, struct logged *kept, struct err *e)
{
	const struct store_dict *dict;
	const struct askrows_part part = {LOGGED, logged_take, kept};
	struct reqrows rows;
	uint64_t by[2] = {0};
	int rc;

	*kept = (struct logged){.request = request, .than = t};
	*counted = 0;
	rc = askrows_each(sel, &dict, &part, 1, e);
	if (rc)
		return rc;
	rc = reqrows_read(sel, REQROWS_BY_OPERATION, "", false, &rows, e);
	for (size_t i = 0; !rc && i < rows.n; i++)
		if (reqtags_meant(request, rows.rows[i].operation))
			by[!strcmp(rows.rows[i].side, "server")] += rows.rows[i].requests;
	*counted = by[1] ? by[1] : by[0]; /* both sides of one are not two */
	reqrows_release(&rows);
	return rc;
}

int reqtags_nothing(const struct reqtags *t, const struct selection *sel, const char *request,
		    struct err *e)
{
	uint64_t counted;
	struct logged kept;
	int rc = looked_for(t, sel, request, &counted, &kept, e);

	if (rc)
		return rc;
	if (!t->go && kept.n) {
		err_set(e, -ENODATA, EXIT_NOTHING,
			kept.server ?
				"%zu requests '%s' were kept in %s, but no sample can be theirs: others were open on their connections, or they had no answer" :
				"%zu requests '%s' were kept in %s, but only as their clients saw them: samples are those of servers",
			kept.n, request, sel->range);
		err_fix(e, "sonde requests --slowest");
		return -ENODATA;
	}
	if (!t->go && counted && t->slower_us < 0 && t->most_us < 0) {
		err_set(e, -ENODATA, EXIT_NOTHING,
			"%llu requests '%s' were counted in %s, but none was kept by itself: the slowest of each bucket are, those that failed, and a sample of the others",
			(unsigned long long)counted, request, sel->range);
		err_fix(e, "sonde requests");
		return -ENODATA;
	}
	if (t->go) {
		err_set(e, -ENODATA, EXIT_NOTHING,
			"'%s' was served by Go programs, and the goroutine that read it is unknown",
			request);
		err_fix(e, "sonde stacks");
	} else {
		err_set(e, -ENODATA, EXIT_NOTHING, "no request '%s'%s was kept in %s", request,
			t->slower_us >= 0 ? " that took that long" :
			t->most_us >= 0   ? " that took less time" :
					    "",
			sel->range);
		err_fix(e, "sonde requests --side server");
	}
	return -ENODATA;
}

static int finding_read(struct finding *f, struct err *e)
{
	const struct selection *sel = f->sel;
	int rc = 0;

	for (size_t i = 0; !rc && i < sel->n_segments; i++) {
		const char *path = sel->segments[i].path;
		struct store_segment *seg;

		rc = select_segment(sel, path, &seg, e);
		if (!rc)
			rc = store_segment_processes(seg, &f->dict, e);
		if (!rc)
			rc = askrows(sel, seg, path, TAGS, take, f, e);
	}
	return rc;
}

static int read_tags(const struct selection *sel, const char *request, struct reqtags *out,
		     struct err *e)
{
	struct finding f = {.sel = sel, .request = request, .out = out};
	int rc = finding_read(&f, e);

	return rc ? rc : out->n ? 0 : reqtags_nothing(out, sel, request, e);
}

int reqtags_of(const struct selection *sel, const char *request, const struct idmap *pids,
	       void (*each)(void *ctx, uint64_t key, uint32_t pid, int64_t total_us), void *ctx,
	       struct reqtags *out, struct err *e)
{
	struct finding f = {
		.sel = sel, .request = request, .out = out, .pids = pids, .each = each, .ctx = ctx};

	return finding_read(&f, e);
}

int reqtags_slower(const struct selection *sel, const char *request, const char *slower,
		   int64_t *us, struct err *e)
{
	*us = -1;
	return slower ? slower_of(sel, request, slower, us, e) : 0;
}

int reqtags_find(const struct selection *sel, const char *request, const char *slower,
		 struct reqtags *out, struct err *e)
{
	int rc = 0;

	*out = (struct reqtags){.slower_us = -1, .most_us = -1};
	if (!request)
		return slower ? err_set(e, -EINVAL, EXIT_USAGE, "--slower-than needs --request") :
				0;
	if (slower)
		rc = slower_of(sel, request, slower, &out->slower_us, e);
	return rc ? rc : read_tags(sel, request, out, e);
}

int reqtags_others(const struct selection *sel, const char *request, const struct reqtags *than,
		   struct reqtags *out, struct err *e)
{
	*out = (struct reqtags){.slower_us = -1, .most_us = than->slower_us};
	return read_tags(sel, request, out, e);
}

void reqtags_release(struct reqtags *t)
{
	idmap_release(&t->tags);
}

char *reqtags_text(const struct reqtags *t, const char *request)
{
	struct strbuf out = STRBUF_INIT;
	char total[32], limit[32];
	int64_t us = t->slower_us >= 0 ? t->slower_us : t->most_us;

	strbuf_addf(&out, "%zu kept request%s '%s'", t->n, t->n == 1 ? "" : "s", request);
	if (us >= 0)
		strbuf_addf(&out, " %sslower than %s", t->slower_us >= 0 ? "" : "not ",
			    units_ns(us * 1000, limit, sizeof(limit)));
	strbuf_addf(&out, ": %s together", units_ns(t->total_us * 1000, total, sizeof(total)));
	return strbuf_take(&out);
}

void reqtags_tell(const struct reqtags *t, const char *request)
{
	cleanup_free char *text = reqtags_text(t, request);

	fprintf(stderr, "%s; time in none of its kinds (--type) has no tag or no sample\n", text);
	if (t->goroutines)
		fputs("in Go: what the goroutine that read the request did; while it waits for a lock, a channel or a connection, no thread waits\n",
		      stderr);
}
