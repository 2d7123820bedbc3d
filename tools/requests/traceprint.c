/* SPDX-License-Identifier: Apache-2.0 */
/* traceprint: see the header. */
#include "tools/requests/traceprint.h"

#include <string.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "tools/print/json.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"

#define INDENT_MOST 40 /* levels that are drawn: a store that is wrong may have any number */

static const char *us_text(int64_t us, char buf[24])
{
	if (us < 0)
		return "-";
	if (us < 1000)
		snprintf(buf, 24, "%lld us", (long long)us);
	else if (us < 1000000)
		snprintf(buf, 24, "%.1f ms", (double)us / 1e3);
	else
		snprintf(buf, 24, "%.2f s", (double)us / 1e6);
	return buf;
}

static const struct trace_row *row_at(const struct traces *t, uint32_t row)
{
	return row == TRACE_NONE ? NULL : &t->rows[row];
}

static const struct trace_row *answered(const struct traces *t, uint32_t node)
{
	return row_at(t, t->nodes[node].answered);
}

static void who_cell(struct table *t, const struct trace_row *r)
{
	if (!r || (!*r->comm && !*r->container))
		table_cell(t, "-");
	else if (*r->container)
		table_cellf(t, "%s (%s %lld)", r->container, r->comm, (long long)r->pid);
	else
		table_cellf(t, "%s %lld", r->comm, (long long)r->pid);
}

static const char *how_of(const struct traces *t, uint32_t node)
{
	return t->nodes[node].by_header ? "header" : t->nodes[node].how;
}

/* ---- for people ---- */

static void node_text(const struct traces *all, struct table *t, uint32_t node, unsigned depth,
		      int64_t begin_ns)
{
	const struct trace_row *r = traces_row(all, node), *a = answered(all, node),
			       *q = row_at(all, all->nodes[node].asked);
	struct strbuf name cleanup_strbuf = STRBUF_INIT;
	char buf[24];

	for (unsigned i = 0; i < depth && i < INDENT_MOST; i++)
		strbuf_addstr(&name, "  ");
	strbuf_addstr(&name, *r->operation ? r->operation : r->protocol);
	table_cellf(t, "+%s", us_text(r->at_ns > begin_ns ? (r->at_ns - begin_ns) / 1000 : 0, buf));
	table_cell(t, us_text(traces_us(all, node), buf));
	table_cell(t, strbuf_str(&name));
	who_cell(t, q);
	who_cell(t, a);
	table_cell(t, a ? us_text(a->total_us, buf) : "-");
	table_cell(t, r->protocol);
	table_cell(t, *r->service ? r->service : "-");
	table_cell(t, *r->status ? r->status : "-");
	table_cell(t, strcmp(r->result, "ok") ? r->result : "-");
	table_cell(t, *how_of(all, node) ? how_of(all, node) : "-");
	if (!strcmp(r->result, "error") || !strcmp(r->result, "no-answer"))
		table_row_color(t, TERM_YELLOW);
}

struct table *traceprint_tree(const struct traces *t, uint32_t root)
{
	static const struct table_column columns[] = {
		{"START", TABLE_RIGHT},        {"TOOK", TABLE_RIGHT},
		{"REQUEST", TABLE_MIDDLE},     {"ASKED BY", TABLE_MIDDLE},
		{"ANSWERED BY", TABLE_MIDDLE}, {"IN", TABLE_RIGHT},
		{"PROTOCOL", TABLE_SPARE},     {"SERVICE", TABLE_SPARE},
		{"STATUS", TABLE_LEFT},        {"RESULT", TABLE_SPARE},
		{"LINKED BY", TABLE_SPARE},
	};
	struct table *out = table_new(columns, ARRAY_SIZE(columns));
	int64_t begin_ns = traces_row(t, root)->at_ns;
	unsigned depth = 0;

	for (uint32_t i = root; i != TRACE_NONE; i = traces_next(t, root, i, &depth))
		node_text(t, out, i, depth, begin_ns);
	table_omit_empty(out);
	return out;
}

void traceprint_head(const struct traces *t, uint32_t root, FILE *out)
{
	const struct trace_row *r = traces_row(t, root);
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char when[40], took[24];

	strbuf_addf(&text, "%llx%s%s: %s, %u request%s, at %s", (unsigned long long)r->span,
		    *r->trace ? ", trace " : "", r->trace, us_text(traces_us(t, root), took),
		    t->nodes[root].size, t->nodes[root].size == 1 ? "" : "s",
		    when_zoned(r->at_ns, when, sizeof(when)));
	wrap_print(out, strbuf_str(&text), 2);
}

struct noted {
	bool partial, go;
};

static struct noted notes_of(const struct traces *t, uint32_t root)
{
	struct noted n = {0};
	unsigned depth = 0;

	for (uint32_t i = root; i != TRACE_NONE; i = traces_next(t, root, i, &depth)) {
		const struct trace_row *a = answered(t, i), *q = row_at(t, t->nodes[i].asked);

		n.partial = n.partial || (a && a->partial) || (q && q->partial);
		n.go = n.go || (a && !strcmp(a->lang, "go"));
	}
	return n;
}

void traceprint_notes(const struct traces *t, uint32_t root, FILE *out)
{
	const struct trace_row *r = traces_row(t, root);
	struct noted n = notes_of(t, root);

	if (t->nodes[root].lost_parent)
		wrap_print(out, "it was asked for another request, which was not kept", 2);
	else if (t->nodes[root].asked == TRACE_NONE)
		wrap_print(
			out,
			r->caller ?
				"unlinked: who asked for it was not seen, but its header names one" :
				"unlinked: who asked for it was not seen",
			2);
	if (n.partial)
		wrap_print(out, "more was asked for it than was kept, or may have been", 2);
	if (n.go)
		wrap_print(
			out,
			"of what programs in Go asked that is in it which the goroutine asked that read the request: net/http's client asks from goroutines of its own",
			2);
}

/* ---- for machines ---- */

static json_t *end_json(const struct trace_row *r)
{
	if (!r)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "container", json_text(r->container), "comm",
			 json_text(r->comm), "pid", r->pid ? json_integer(r->pid) : json_null(),
			 "tid", r->tid ? json_integer(r->tid) : json_null(), "total_us",
			 r->total_us >= 0 ? json_integer(r->total_us) : json_null());
}

static json_t *id_json(uint64_t id)
{
	return id ? json_sprintf("%llx", (unsigned long long)id) : json_null();
}

static json_t *node_json(const struct traces *t, uint32_t root, uint32_t node, unsigned depth)
{
	const struct trace_row *r = traces_row(t, node), *a = answered(t, node);
	const struct trace_node *n = &t->nodes[node];
	int64_t us = traces_us(t, node);
	json_t *o = json_object();

	json_object_set_new(o, "depth", json_integer(depth));
	json_object_set_new(o, "span", id_json(r->span));
	json_object_set_new(o, "parent",
			    n->parent != TRACE_NONE ? id_json(traces_row(t, n->parent)->span) :
						      json_null());
	json_object_set_new(o, "root", id_json(traces_row(t, root)->span));
	json_object_set_new(o, "linked_by",
			    *how_of(t, node) ? json_text(how_of(t, node)) : json_null());
	json_object_set_new(o, "parent_lost", json_boolean(n->lost_parent));
	json_object_set_new(o, "trace",
			    *r->trace      ? json_text(r->trace) :
			    a && *a->trace ? json_text(a->trace) :
					     json_null());
	json_set_time(o, "time", r->at_ns);
	json_object_set_new(o, "start_us",
			    json_integer((r->at_ns - traces_row(t, root)->at_ns) / 1000));
	json_object_set_new(o, "total_us", us >= 0 ? json_integer(us) : json_null());
	json_object_set_new(o, "protocol", json_text(r->protocol));
	json_object_set_new(o, "service", json_text(r->service));
	json_object_set_new(o, "operation", json_text(r->operation));
	json_object_set_new(o, "status", json_text(r->status));
	json_object_set_new(o, "result", json_text(r->result));
	json_object_set_new(o, "asked_by", end_json(row_at(t, n->asked)));
	json_object_set_new(o, "answered_by", end_json(a));
	json_object_set_new(o, "partial", json_boolean((a && a->partial) || r->partial));
	return o;
}

void traceprint_json(const struct traces *t, uint32_t root, json_t *rows)
{
	unsigned depth = 0;

	for (uint32_t i = root; i != TRACE_NONE; i = traces_next(t, root, i, &depth))
		json_array_append_new(rows, node_json(t, root, i, depth));
}
