/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/traceprint.h"

#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"

#define INDENT_MOST 40 /* levels that are drawn: a store that is wrong may have any number */

static const char *us_text(int64_t us, char buf[UNITS_MAX])
{
	return us < 0 ? "-" : units_ns(us * 1000, buf, UNITS_MAX);
}

static const struct trace_row *row_at(const struct traces *t, uint32_t row)
{
	return row == TRACE_NONE ? NULL : &t->rows[row];
}

static const struct trace_row *answered(const struct traces *t, uint32_t node)
{
	return row_at(t, t->nodes[node].answered);
}

/* By what it is linked to the request above; of a root, its two sides to each other. */
static const char *how_of(const struct traces *t, uint32_t node)
{
	const struct trace_node *n = &t->nodes[node];

	return n->parent == TRACE_NONE && n->by_header ? "header" : n->how;
}

static const char *joined_of(const struct trace_node *n)
{
	return n->asked == TRACE_NONE || n->answered == TRACE_NONE ? NULL :
	       n->by_header                                        ? "header" :
								     "bytes";
}

/* ---- a request of a tree, for people and for machines ---- */

static void row_who(struct row *o, const char *title, const struct trace_row *r)
{
	struct strbuf who cleanup_strbuf = STRBUF_INIT;

	if (r && *r->container)
		strbuf_addf(&who, "%s (%s %lld)", r->container, r->comm, (long long)r->pid);
	else if (r && *r->comm)
		strbuf_addf(&who, "%s %lld", r->comm, (long long)r->pid);
	row_text(o, title, TABLE_MIDDLE, NULL, strbuf_str(&who));
}

static json_t *end_json(const struct trace_row *r)
{
	if (!r)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "container", json_text(r->container), "comm",
			 json_text(r->comm), "pid", json_number_or_null(r->pid, r->pid), "tid",
			 json_number_or_null(r->tid, r->tid), "total_us",
			 json_number_or_null(r->total_us, r->total_us >= 0));
}

static json_t *id_json(uint64_t id)
{
	return id ? json_sprintf("%llx", (unsigned long long)id) : json_null();
}

/* Where the request is in its tree: only in JSON. */
static void row_place(struct row *o, const struct traces *t, uint32_t root, uint32_t node,
		      unsigned depth)
{
	const struct trace_row *r = traces_row(t, node), *a = answered(t, node);
	const struct trace_node *n = &t->nodes[node];

	if (!o->json)
		return;
	row_json(o, "depth", json_integer(depth));
	row_json(o, "span", id_json(r->span));
	row_json(o, "parent",
		 n->parent != TRACE_NONE ? id_json(traces_row(t, n->parent)->span) : json_null());
	row_json(o, "root", id_json(traces_row(t, root)->span));
	row_json(o, "parent_lost", json_boolean(n->lost_parent));
	row_json(o, "joined_by", json_text_or_null(joined_of(n)));
	row_json(o, "unlinked_why", json_text_or_null(*n->lone ? n->lone : NULL));
	row_json(o, "trace", json_text_or_null(*r->trace ? r->trace : a ? a->trace : NULL));
	json_set_time(o->json, "time", r->at_ns);
	row_json(o, "operation", json_text(r->operation));
	row_json(o, "result", json_text(r->result));
	row_json(o, "partial", json_boolean((a && a->partial) || r->partial));
}

static void node_row(struct row *o, const struct traces *t, uint32_t root, uint32_t node,
		     unsigned depth)
{
	const struct trace_row *r = traces_row(t, node), *a = answered(t, node),
			       *q = row_at(t, t->nodes[node].asked);
	const int64_t start_us = (r->at_ns - traces_row(t, root)->at_ns) / 1000,
		      us = traces_us(t, node);
	struct strbuf name cleanup_strbuf = STRBUF_INIT, start cleanup_strbuf = STRBUF_INIT;
	char buf[UNITS_MAX];

	for (unsigned i = 0; i < depth && i < INDENT_MOST; i++)
		strbuf_addstr(&name, "  ");
	strbuf_addstr(&name, *r->operation ? r->operation : r->protocol);
	strbuf_addf(&start, "+%s", us_text(start_us > 0 ? start_us : 0, buf));
	row_place(o, t, root, node, depth);
	row_cell(o, "START", TABLE_RIGHT, strbuf_str(&start));
	row_json(o, "start_us", json_integer(start_us));
	row_us(o, "TOOK", TABLE_RIGHT, "total_us", us, us >= 0);
	row_cell(o, "REQUEST", TABLE_TEXT, strbuf_str(&name));
	row_who(o, "ASKED BY", q);
	row_json(o, "asked_by", end_json(q));
	row_who(o, "ANSWERED BY", a);
	row_json(o, "answered_by", end_json(a));
	row_us(o, "IN", TABLE_RIGHT, NULL, a ? a->total_us : -1, a && a->total_us >= 0);
	row_word(o, "PROTOCOL", TABLE_SPARE, "protocol", r->protocol);
	row_word(o, "SERVICE", TABLE_SPARE, "service", r->service);
	row_word(o, "STATUS", TABLE_SPARE, "status", r->status);
	row_text(o, "RESULT", TABLE_SPARE, NULL, strcmp(r->result, "ok") ? r->result : NULL);
	row_text(o, "LINKED BY", TABLE_SPARE, "linked_by", how_of(t, node));
	if (!strcmp(r->result, "error") || !strcmp(r->result, "no-answer"))
		row_color(o, TERM_YELLOW);
	row_end(o);
}

struct table *traceprint_tree(const struct traces *t, uint32_t root)
{
	struct row o = row_of_table();
	unsigned depth = 0;

	for (uint32_t i = root; i != TRACE_NONE; i = traces_next(t, root, i, &depth))
		node_row(&o, t, root, i, depth);
	table_omit_empty(o.table);
	return o.table;
}

void traceprint_json(const struct traces *t, uint32_t root, size_t most, json_t *rows)
{
	unsigned depth = 0;

	for (uint32_t i = root; i != TRACE_NONE && json_array_size(rows) < most;
	     i = traces_next(t, root, i, &depth)) {
		struct row o = row_of_json();

		node_row(&o, t, root, i, depth);
		json_array_append_new(rows, o.json);
	}
}

/* ---- around it, for people ---- */

void traceprint_head(const struct traces *t, uint32_t root, FILE *out)
{
	const struct trace_row *r = traces_row(t, root);
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char when[40], took[UNITS_MAX];

	strbuf_addf(&text, "%llx%s%s: %s, %u request%s, at %s", (unsigned long long)r->span,
		    *r->trace ? ", trace " : "", r->trace, us_text(traces_us(t, root), took),
		    t->nodes[root].size, t->nodes[root].size == 1 ? "" : "s",
		    when_local(r->at_ns, clock_utc_ns(), when, sizeof(when)));
	wrap_print(out, strbuf_str(&text), 2);
}

struct noted {
	bool partial, go, thread, opener, goroutine, header;
};

static struct noted notes_of(const struct traces *t, uint32_t root)
{
	struct noted n = {0};
	unsigned depth = 0;

	for (uint32_t i = root; i != TRACE_NONE; i = traces_next(t, root, i, &depth)) {
		const struct trace_row *a = answered(t, i), *q = row_at(t, t->nodes[i].asked);

		n.partial = n.partial || (a && a->partial) || (q && q->partial);
		n.go = n.go || (a && !strcmp(a->lang, "go"));
		n.thread = n.thread || !strcmp(t->nodes[i].how, "thread");
		n.opener = n.opener || !strcmp(t->nodes[i].how, "opener");
		n.goroutine = n.goroutine || !strcmp(t->nodes[i].how, "goroutine");
		n.header = n.header || t->nodes[i].by_header;
	}
	return n;
}

/* How much each of the grounds that occur says. */
static void grounds_print(const struct noted *n, FILE *out)
{
	if (n->thread)
		wrap_print(
			out,
			"thread: the thread that sent it had no other request open than the one above",
			2);
	if (n->goroutine)
		wrap_print(out, "goroutine: the goroutine that sent it had read the one above", 2);
	if (n->opener)
		wrap_print(
			out,
			"opener: the thread opened the connection for it while it served the one above; if it had others open, right after it had read this one (the order of system calls shows no more)",
			2);
	if (n->header)
		wrap_print(out,
			   "header: only the trace headers say that both sides are one request", 2);
}

static const char *lone_words(const struct traces *t, uint32_t root)
{
	const struct trace_node *n = &t->nodes[root];

	if (!strcmp(n->lone, "several"))
		return "unlinked: the thread that sent it had several requests open, any of which may be its parent";
	if (!strcmp(n->lone, "order"))
		return "unlinked: the request that its thread had read was not being served when it was sent";
	if (n->asked == TRACE_NONE)
		return traces_row(t, root)->caller ?
			       "unlinked: no known parent request, but its header names one" :
			       "unlinked: no known parent request";
	return NULL;
}

void traceprint_notes(const struct traces *t, uint32_t root, FILE *out)
{
	const char *lone = lone_words(t, root);
	struct noted n = notes_of(t, root);

	if (t->nodes[root].lost_parent)
		wrap_print(out, "it is part of another request, which was not kept", 2);
	else if (lone)
		wrap_print(out, lone, 2);
	grounds_print(&n, out);
	if (n.partial)
		wrap_print(out, "some requests made for it may not have been kept", 2);
	if (n.go)
		wrap_print(
			out,
			"of Go programs only requests made by the goroutine that read this request are included: net/http's client uses other goroutines",
			2);
}
