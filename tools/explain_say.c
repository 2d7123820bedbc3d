/* SPDX-License-Identifier: Apache-2.0 */
/* explain_say: statements in words, the queries behind them, and the commands that show more. */
#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "tools/explain.h"
#include "tools/filter.h"
#include "tools/fold_kind.h"
#include "tools/term.h"
#include "tools/when.h"

/* How each kind is said: "used 0.3 cores more". */
static const struct words {
	const char *verb, *began, *gone;
} WORDS[STORE_KINDS] = {
	[STORE_KIND_CPU] = {"used", "began to use", "used before"},
	[STORE_KIND_OFFCPU] = {"was blocked for", "began to be blocked for", "was blocked before for"},
	[STORE_KIND_RUNQUEUE] = {"waited for a CPU", "began to wait for a CPU:", "waited for a CPU before:"},
	[STORE_KIND_ALLOC] = {"allocated", "began to allocate", "allocated before"},
	[STORE_KIND_INUSE] = {"held", "began to hold", "held before"},
	[STORE_KIND_MUTEX] = {"waited for locks", "began to wait for locks:", "waited for locks before:"},
	[STORE_KIND_BLOCK] = {"was blocked for", "began to be blocked for", "was blocked before for"},
	[STORE_KIND_STANDING] = {"had been waiting for", "had begun to wait:", "had been waiting before for"},
};

const char *explain_amount(const struct diff *d, double v, char *buf, size_t size)
{
	const struct fold *f = d->side[DIFF_AFTER].f;
	char bytes[32];

	if (fold_is_cores(f))
		snprintf(buf, size, "%.2f cores", v);
	else if (f->unit == STORE_BYTES)
		snprintf(buf, size, "%s%s", term_bytes((uint64_t)v, bytes, sizeof(bytes)), f->kind->class == STORE_GAUGE ? "" : "/s");
	else
		snprintf(buf, size, "%.2f s each second", v);
	return buf;
}

static void say_name(const struct explain_statement *s, struct strbuf *out)
{
	if (s->about == EXPLAIN_ALL) {
		strbuf_addstr(out, "all together");
		return;
	}
	strbuf_addshown(out, s->name, strlen(s->name));
	if (s->about == EXPLAIN_FUNCTION && *s->module) {
		strbuf_addstr(out, " of ");
		strbuf_addshown(out, s->module, strlen(s->module));
	}
}

static void say_change(const struct explain_statement *s, struct strbuf *out)
{
	const struct words *w = &WORDS[s->d->side[DIFF_AFTER].f->kind->kind];
	double difference = s->v.v[1] > s->v.v[0] ? s->v.v[1] - s->v.v[0] : s->v.v[0] - s->v.v[1];
	char change[48], before[48], after[48];

	explain_amount(s->d, s->v.v[0], before, sizeof(before));
	explain_amount(s->d, s->v.v[1], after, sizeof(after));
	explain_amount(s->d, difference, change, sizeof(change));
	if (s->change == EXPLAIN_BEGAN)
		strbuf_addf(out, " %s %s", w->began, after);
	else if (s->change == EXPLAIN_GONE)
		strbuf_addf(out, " %s %s, and no more", w->gone, before);
	else
		strbuf_addf(out, " %s %s %s: %s, before %s (%+.0f %%)", w->verb, change, s->change == EXPLAIN_MORE ? "more" : "less",
			    after, before, diff_percent(&s->v));
}

void explain_say(const struct explain_statement *s, struct strbuf *out)
{
	char before[48], after[48];

	say_name(s, out);
	say_change(s, out);
	if (!s->in)
		return;
	strbuf_addstr(out, s->about == EXPLAIN_FUNCTION ? "; mostly in " : "; mostly in the function ");
	strbuf_addshown(out, s->in, strlen(s->in));
	strbuf_addf(out, " (%s, before %s)", explain_amount(s->d, s->in_v[1], after, sizeof(after)),
		    explain_amount(s->d, s->in_v[0], before, sizeof(before)));
}

/* --- queries --- */

static void add_text(struct strbuf *out, const char *name, const char *value)
{
	strbuf_addf(out, " AND %s = '", name);
	for (; *value; value++) {
		if (*value == '\'')
			strbuf_addch(out, '\'');
		strbuf_addch(out, *value);
	}
	strbuf_addch(out, '\'');
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

bool explain_query(const struct explain *x, const struct explain_statement *s, int side, struct strbuf *out)
{
	static const char whole[] = "value * iif(rate > 1, 1 / (1 - exp(-1.0 * label / rate)), 1.0)";
	const struct selection *sel = x->sel[side];
	const enum store_kind kind = s->d->side[side].f->kind->kind;
	long long from = second_of(sel->from_ns), to = second_of(sel->to_ns);

	if (select_is_narrow(sel))
		return false;
	if (kind == STORE_KIND_CPU)
		strbuf_addf(out, "SELECT sum(cpu_ns) FROM cpu_samples WHERE ts >= %lld AND ts < %lld", from, to);
	else if (kind == STORE_KIND_INUSE) /* as it stands at the end; figures are means over the window */
		strbuf_addf(out, "SELECT sum(%s) FROM (SELECT *, row_number() OVER (PARTITION BY series_id ORDER BY ts DESC) AS age"
			    " FROM amounts WHERE type = 'inuse' AND ts < %lld) WHERE age = 1", whole, to);
	else
		strbuf_addf(out, "SELECT sum(%s) FROM amounts WHERE type = '%s' AND ts >= %lld AND ts < %lld", whole,
			    store_kind_info(kind)->name, from, to);
	if (!sel->self)
		strbuf_addstr(out, " AND NOT self");
	add_whose(s, out);
	return true;
}

/* --- commands --- */

static void add_range(struct strbuf *out, const char *prefix, const struct selection *sel)
{
	char from[40], to[40];

	strbuf_addf(out, " --%sfrom %s --%sto %s", prefix, when_zoned(sel->from_ns, from, sizeof(from)), prefix,
		    when_zoned(sel->to_ns, to, sizeof(to)));
}

/* What is on one side only has nothing to be compared with. */
void explain_command(const struct explain *x, const struct explain_statement *s, const char *store, struct strbuf *out)
{
	const bool both = s->change == EXPLAIN_MORE || s->change == EXPLAIN_LESS;
	const struct store_kind_info *kind = s->d->side[DIFF_AFTER].f->kind;
	const struct selection *sel = x->sel[s->change == EXPLAIN_GONE ? DIFF_BEFORE : DIFF_AFTER];
	const bool group = s->about == EXPLAIN_CONTAINER || s->about == EXPLAIN_COMMAND;
	const enum filter_kind filter = s->about == EXPLAIN_CONTAINER ? FILTER_CONTAINER : FILTER_COMM;
	const bool named = group && filter_can_say(s->name);

	strbuf_addstr(out, both ? "sonde diff" : "sonde flame");
	if (named)
		filter_option(filter, s->name, out);
	if (sel->filter_text[0] && !(named && filters_have(sel->filters, filter)))
		strbuf_addf(out, " %s", sel->filter_text);
	if (kind->kind != STORE_KIND_CPU)
		strbuf_addf(out, " --type %s", kind->name);
	add_range(out, "", sel);
	if (both)
		add_range(out, "vs-", x->sel[DIFF_BEFORE]);
	if (store) {
		strbuf_addstr(out, " --store ");
		filter_word(store, out);
	}
}
