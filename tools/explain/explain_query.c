/* SPDX-License-Identifier: Apache-2.0 */
/* explain_query: the SELECTs behind a statement's numbers, over the views of docs/SCHEMA.md. */
#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/store/read/waits.h"
#include "tools/explain/explain.h"
#include "tools/fold/fold_kind.h"
#include "tools/waits/waitrules.h"

static void add_quoted(struct strbuf *out, const char *value)
{
	strbuf_addch(out, '\'');
	for (; *value; value++) {
		if (*value == '\'')
			strbuf_addch(out, '\'');
		strbuf_addch(out, *value);
	}
	strbuf_addch(out, '\'');
}

static void add_text(struct strbuf *out, const char *name, const char *value)
{
	strbuf_addf(out, " AND %s = ", name);
	add_quoted(out, value);
}

static void add_whose(const struct explain_statement *s, struct strbuf *out)
{
	if (s->about == EXPLAIN_CONTAINER) {
		add_text(out, "container", s->name);
	} else if (s->about == EXPLAIN_COMMAND) {
		add_text(out, "container", "");
		add_text(out, "comm", s->name);
	} else if (s->about == EXPLAIN_FUNCTION) {
		add_text(out, "function", s->name);
		add_text(out, "module", s->module);
	}
}

/* The first whole second not before it: buckets count that begin inside. */
static long long second_of(int64_t ns)
{
	return (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
}

static void add_span(struct strbuf *out, const struct selection *sel)
{
	strbuf_addf(out, " WHERE ts >= %lld AND ts < %lld", second_of(sel->from_ns),
		    second_of(sel->to_ns));
}

/* --- what waits were for: by class, and by the functions that decide --- */

static void add_stands(struct strbuf *out, const char *function)
{
	strbuf_addstr(out, "instr(';' || k.folded || ';', ';' || ");
	add_quoted(out, function);
	strbuf_addstr(out, " || ';')");
}

/* Of this class, and of no function that decides otherwise. */
static void add_plain(struct strbuf *out, const struct fold *f, const char *class)
{
	strbuf_addstr(out, "(w.reason = ");
	add_quoted(out, class);
	for (size_t i = 0; i < f->n_frames; i++) {
		const struct fold_frame *other = &f->frames[i];

		if (other->origin != FOLD_OFF || strcmp(other->file, class) || !*other->build_id)
			continue;
		strbuf_addstr(out, " AND NOT coalesce(");
		add_stands(out, other->build_id);
		strbuf_addstr(out, ", 0)");
	}
	strbuf_addstr(out, ")");
}

static void add_decided(struct strbuf *out, const struct fold_frame *by)
{
	strbuf_addstr(out, "(w.reason = ");
	add_quoted(out, by->file);
	strbuf_addstr(out, " AND ");
	add_stands(out, by->build_id);
	strbuf_addstr(out, ")");
}

static void reason_query(const struct explain_statement *s, int side, struct strbuf *out,
			 const struct selection *sel)
{
	const struct fold *f = s->d->side[side].f;
	const char * or = "";

	strbuf_addstr(
		out, "SELECT sum(w.total_ns) FROM waits w LEFT JOIN stacks k ON k.id = w.stack_id");
	add_span(out, sel);
	strbuf_addf(out, "%s AND (", sel->self ? "" : " AND NOT w.self");
	for (size_t i = 0; i < f->n_frames; i++) {
		const struct fold_frame *r = &f->frames[i];

		if (r->origin != FOLD_OFF || strcmp(r->module, FOLD_WAITS) ||
		    strcmp(r->name, s->name))
			continue;
		strbuf_addstr(out, or);
		if (*r->build_id)
			add_decided(out, r);
		else
			add_plain(out, f, r->file);
		or = " OR ";
	}
	strbuf_addstr(out, * or ? ")" : "0)");
}

bool explain_query(const struct explain *x, const struct explain_statement *s, int side,
		   struct strbuf *out)
{
	static const char whole[] =
		"value * iif(rate > 1, 1 / (1 - exp(-1.0 * label / rate)), 1.0)";
	const struct selection *sel = x->sel[side];
	const enum store_kind kind = s->d->side[side].f->kind->kind;
	long long from = second_of(sel->from_ns), to = second_of(sel->to_ns);

	if (select_is_narrow(sel))
		return false;
	if (s->about == EXPLAIN_REASON)
		reason_query(s, side, out, sel);
	else if (kind == STORE_KIND_CPU)
		strbuf_addf(out,
			    "SELECT sum(cpu_ns) FROM cpu_samples WHERE ts >= %lld AND ts < %lld",
			    from, to);
	else if (kind ==
		 STORE_KIND_INUSE) /* value at the end; the figures are means over the window */
		strbuf_addf(
			out,
			"SELECT sum(%s) FROM (SELECT *, row_number() OVER (PARTITION BY series_id ORDER BY ts DESC) AS age"
			" FROM amounts WHERE type = 'inuse' AND ts < %lld) WHERE age = 1",
			whole, to);
	else
		strbuf_addf(
			out,
			"SELECT sum(%s) FROM amounts WHERE type = '%s' AND ts >= %lld AND ts < %lld",
			whole, store_kind_info(kind)->name, from, to);
	if (s->about == EXPLAIN_REASON)
		return true;
	if (!sel->self)
		strbuf_addstr(out, " AND NOT self");
	add_whose(s, out);
	return true;
}

/* --- causes --- */

static void add_waiting(struct strbuf *out, const struct explain_statement *s)
{
	const bool inner = s->about == EXPLAIN_REASON || s->about == EXPLAIN_FUNCTION;
	const char *who = !inner ? s->name : s->mostly ? s->in : NULL;
	const bool container = inner ? who && !strcmp(s->in_module, FOLD_CONTAINER) :
				       s->about == EXPLAIN_CONTAINER;

	if (s->about == EXPLAIN_ALL || !who)
		return;
	add_text(out, "container", container ? who : "");
	if (!container)
		add_text(out, "comm", who);
}

/* The classes that may be for that reason: those of its statement's waits. */
static void add_classes(struct strbuf *out, const struct explain_statement *s)
{
	const char *comma = "";

	strbuf_addstr(out, " AND reason IN (");
	for (uint32_t class = 0; class < 16; class ++) {
		const char *name = store_wait_reason(class);

		if (!waitrule_may(name, s->name))
			continue;
		strbuf_addstr(out, comma);
		add_quoted(out, name);
		comma = ", ";
	}
	strbuf_addstr(out, ")");
}

bool explain_cause_query(const struct explain *x, const struct explain_statement *s,
			 const struct explain_cause *c, int side, struct strbuf *out)
{
	static const char *const from[] = {
		[EXPLAIN_NEIGHBOUR] = "total_ns) FROM neighbours",
		[EXPLAIN_QUOTA] = "throttled_ns) FROM throttling",
		[EXPLAIN_WAKER] = "total_ns) FROM wakers",
		[EXPLAIN_HOLDER] = "ns) FROM java_waits",
	};
	const struct selection *sel = x->sel[side];

	if (select_is_narrow(sel))
		return false;
	strbuf_addf(out, "SELECT sum(%s", from[c->what]);
	add_span(out, sel);
	if (c->what == EXPLAIN_QUOTA) {
		add_text(out, "cgroup", c->name);
		return true;
	}
	if (!sel->self)
		strbuf_addstr(out, " AND NOT self");
	add_waiting(out, s);
	if (c->what == EXPLAIN_HOLDER) {
		strbuf_addstr(out, " AND kind = 'monitor'");
		add_text(out, "owner", c->name);
	} else if (c->what == EXPLAIN_WAKER) {
		strbuf_addf(out, " AND context = 'thread' AND by_pid = %u", c->pid);
		add_text(out, "by_comm", c->name);
		add_classes(out, s);
	} else {
		add_text(out, "by_container", c->container ? c->name : "");
		if (!c->container)
			add_text(out, "by_comm", c->name);
	}
	return true;
}
