/* SPDX-License-Identifier: Apache-2.0 */
/* explain_say: statements in words, and the commands that show more. */
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/typed.h"
#include "schema/base/units.h"
#include "tools/explain/explain.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/when.h"
#include "tools/select/filter.h"
#include "tools/waits/waitcells.h"

/* Of what waits were for. */
static const struct {
	const char *reason;
	struct store_kind_words words;
} REASONS[] = {
	{"lock", {"waited for locks", "began to wait for locks:", "waited for locks before:"}},
	{"disk",
	 {"waited for the disk", "began to wait for the disk:", "waited for the disk before:"}},
	{"network",
	 {"waited for the network",
	  "began to wait for the network:", "waited for the network before:"}},
	{"pipe", {"waited for pipes", "began to wait for pipes:", "waited for pipes before:"}},
	{"sleep", {"slept", "began to sleep", "slept before"}},
	{"page fault",
	 {"waited in page faults",
	  "began to wait in page faults:", "waited in page faults before:"}},
	{"memory", {"waited for memory", "began to wait for memory:", "waited for memory before:"}},
	{"stop", {"was stopped", "began to be stopped", "was stopped before"}},
	{"child",
	 {"waited for children", "began to wait for children:", "waited for children before:"}},
};

static const struct store_kind_words *words_of(const struct explain_statement *s)
{
	for (size_t i = 0; s->about == EXPLAIN_REASON && i < ARRAY_SIZE(REASONS); i++)
		if (!strcmp(REASONS[i].reason, s->name))
			return &REASONS[i].words;
	return &s->d->side[DIFF_AFTER].f->kind->words;
}

/* Digits behind the point: of a host that is all but idle more. */
static int digits(double v)
{
	return v >= 0.095 || v <= 0 ? 2 : v >= 0.0095 ? 3 : 4;
}

const char *explain_amount(const struct diff *d, double v, char *buf, size_t size)
{
	const struct fold *f = d->side[DIFF_AFTER].f;
	char bytes[32];

	if (fold_is_cores(f))
		snprintf(buf, size, "%.*f cores", digits(v), v);
	else if (f->unit == STORE_BYTES)
		snprintf(buf, size, "%s%s", units_bytes((uint64_t)v, bytes, sizeof(bytes)),
			 f->kind->class == STORE_GAUGE ? "" : "/s");
	else if (f->unit != STORE_TIME)
		snprintf(buf, size, "%.1f %s%s", v, store_kind_counted(f->kind),
			 f->kind->class == STORE_GAUGE ? "" : "/s");
	else
		snprintf(buf, size, "%.*f s each second", digits(v), v);
	return buf;
}

static void say_name(const struct explain_statement *s, struct strbuf *out)
{
	if (s->about == EXPLAIN_ALL || s->about == EXPLAIN_REASON) {
		if (*s->whole)
			strbuf_addshown(out, s->whole, strlen(s->whole));
		else
			strbuf_addstr(out, "all processes");
		return;
	}
	strbuf_addshown(out, s->name, strlen(s->name));
	if (s->about == EXPLAIN_FUNCTION && *s->module) {
		strbuf_addstr(out, " of ");
		strbuf_addshown(out, s->module, strlen(s->module));
	}
}

/* "all processes were", "web was" */
static void say_verb(const struct explain_statement *s, const char *verb, struct strbuf *out)
{
	const bool plural = (s->about == EXPLAIN_ALL || s->about == EXPLAIN_REASON) && !*s->whole;
	const bool were = plural && !strncmp(verb, "was ", 4);

	strbuf_addf(out, " %s%s", were ? "were " : "", were ? verb + 4 : verb);
}

static void say_change(const struct explain_statement *s, struct strbuf *out)
{
	const struct store_kind_words *w = words_of(s);
	double difference = s->v.v[1] > s->v.v[0] ? s->v.v[1] - s->v.v[0] : s->v.v[0] - s->v.v[1];
	char change[48], before[48], after[48];

	explain_amount(s->d, s->v.v[0], before, sizeof(before));
	explain_amount(s->d, s->v.v[1], after, sizeof(after));
	explain_amount(s->d, difference, change, sizeof(change));
	say_verb(s,
		 s->change == EXPLAIN_BEGAN ? w->began :
		 s->change == EXPLAIN_GONE  ? w->gone :
					      w->verb,
		 out);
	if (s->change == EXPLAIN_BEGAN)
		strbuf_addf(out, " %s", after);
	else if (s->change == EXPLAIN_GONE)
		strbuf_addf(out, " %s, now none", before);
	else
		strbuf_addf(out, " %s %s: %s, before %s (%+.0f %%)", change,
			    s->change == EXPLAIN_MORE ? "more" : "less", after, before,
			    diff_percent(&s->v));
}

/* Amounts that round to the same say nothing. */
static void say_inner(const struct explain_statement *s, struct strbuf *out)
{
	const bool group = s->about == EXPLAIN_CONTAINER || s->about == EXPLAIN_COMMAND;
	char before[48], after[48];

	strbuf_addf(out, "; %s in %s", s->mostly ? "mostly" : "the largest part",
		    group ? "the function " : "");
	strbuf_addshown(out, s->in, strlen(s->in));
	explain_amount(s->d, s->in_v[1], after, sizeof(after));
	explain_amount(s->d, s->in_v[0], before, sizeof(before));
	if (strcmp(after, before) != 0)
		strbuf_addf(out, " (%s, before %s)", after, before);
}

static void say_cause(const struct explain_statement *s, const struct explain_cause *c,
		      struct strbuf *out)
{
	static const char *const cause[][2] = {
		[EXPLAIN_NEIGHBOUR] = {"; while the CPU was taken by ",
				       "; while the CPU was taken by "},
		[EXPLAIN_QUOTA] = {"; held back by its CPU quota: ",
				   "; held back by its CPU quota: "},
		[EXPLAIN_WAKER] = {"; the largest part ended by ", "; ended mostly by "},
		[EXPLAIN_HOLDER] = {"; the largest part held by thread ",
				    "; held mostly by thread "},
	};
	const bool within = c->what == EXPLAIN_NEIGHBOUR || c->what == EXPLAIN_QUOTA ||
			    c->v[s->v.v[1] > s->v.v[0]] <= s->v.v[s->v.v[1] > s->v.v[0]];
	const int side = s->v.v[1] > s->v.v[0] ? DIFF_AFTER : DIFF_BEFORE;
	struct strbuf name cleanup_strbuf = STRBUF_INIT;
	char before[48], after[48];

	strbuf_addstr(out, cause[c->what][c->mostly]);
	waitcell_addname(&name, c->of ? c->of : c->name);
	strbuf_addshown(out, strbuf_str(&name), strlen(strbuf_str(&name)));
	if (c->pid)
		strbuf_addf(out, " %u", c->pid);
	if (!within) /* an estimate that is too large by chance */
		return;
	strbuf_addf(out, " (%s, before %s", explain_amount(s->d, c->v[1], after, sizeof(after)),
		    explain_amount(s->d, c->v[0], before, sizeof(before)));
	if (c->what == EXPLAIN_QUOTA)
		strbuf_addf(out, "; in %llu of %llu periods",
			    (unsigned long long)c->throttled[side],
			    (unsigned long long)c->periods[side]);
	strbuf_addstr(out, ")");
}

void explain_say(const struct explain_statement *s, struct strbuf *out)
{
	say_name(s, out);
	say_change(s, out);
	if (s->in && !(s->about == EXPLAIN_REASON && !strcmp(s->in, s->whole)))
		say_inner(s, out);
	for (size_t i = 0; i < s->n_causes; i++)
		say_cause(s, &s->causes[i], out);
}

/* --- commands --- */

static void add_range(struct strbuf *out, const char *prefix, const struct selection *sel)
{
	char from[40], to[40];

	strbuf_addf(out, " --%sfrom %s --%sto %s", prefix,
		    when_zoned(sel->from_ns, from, sizeof(from)), prefix,
		    when_zoned(sel->to_ns, to, sizeof(to)));
}

static void add_store(const char *store, struct strbuf *out)
{
	if (!store)
		return;
	strbuf_addstr(out, " --store ");
	filter_word(store, out);
}

/* `sonde waits` says what waits were for. */
static void waits_command(const struct selection *sel, const struct explain_statement *s,
			  const char *store, struct strbuf *out)
{
	const enum filter_kind filter =
		s->in && !strcmp(s->in_module, FOLD_CONTAINER) ? FILTER_CONTAINER : FILTER_COMM;

	strbuf_addf(out, "%s waits", typed_sonde(false));
	if (sel->filter_text[0])
		strbuf_addf(out, " %s", sel->filter_text);
	else if (s->in && s->mostly && filter_can_say(s->in))
		filter_option(filter, s->in, out);
	add_range(out, "", sel);
	add_store(store, out);
}

/* What is on one side only has nothing to be compared with. */
void explain_command(const struct explain *x, const struct explain_statement *s, const char *store,
		     struct strbuf *out)
{
	const bool both = s->change == EXPLAIN_MORE || s->change == EXPLAIN_LESS;
	const struct store_kind_info *kind = s->d->side[DIFF_AFTER].f->kind;
	const struct selection *sel = x->sel[s->change == EXPLAIN_GONE ? DIFF_BEFORE : DIFF_AFTER];
	const bool group = s->about == EXPLAIN_CONTAINER || s->about == EXPLAIN_COMMAND;
	const enum filter_kind filter =
		s->about == EXPLAIN_CONTAINER ? FILTER_CONTAINER : FILTER_COMM;
	const bool named = group && filter_can_say(s->name);

	if (s->about == EXPLAIN_REASON) {
		waits_command(sel, s, store, out);
		return;
	}
	strbuf_addf(out, "%s %s", typed_sonde(false), both ? "diff" : "flame");
	if (named)
		filter_option(filter, s->name, out);
	if (sel->filter_text[0] && !(named && filters_have(sel->filters, filter)))
		strbuf_addf(out, " %s", sel->filter_text);
	if (kind->kind != STORE_KIND_CPU)
		strbuf_addf(out, " --type %s", kind->name);
	add_range(out, "", sel);
	if (both)
		add_range(out, "vs-", x->sel[DIFF_BEFORE]);
	add_store(store, out);
}

/* ---- requests ---- */

static bool same_request(const struct reqrun *a, const struct reqrun *b)
{
	return !strcmp(a->operation, b->operation) && !strcmp(a->service, b->service);
}

static void add_who(struct strbuf *out, const struct reqrun_end *end, const char *address)
{
	const char *name = !end->comm ? address : *end->container ? end->container : end->comm;

	strbuf_addshown(out, name, strlen(name));
}

bool explain_say_hung(const struct explain *x, size_t i, struct strbuf *out)
{
	const struct reqrunning *hung = &x->hung[DIFF_AFTER], *before = &x->hung[DIFF_BEFORE];
	const struct reqrun *r = &hung->rows[i];
	char time[UNITS_MAX], least[UNITS_MAX];
	size_t n = 0, open = 0;
	bool was = false;

	for (size_t k = 0; k < hung->n; k++) {
		if (!same_request(r, &hung->rows[k]))
			continue;
		if (k < i)
			return false;
		n++;
		open += !hung->rows[k].over;
	}
	for (size_t k = 0; k < before->n; k++)
		was = was || (same_request(r, &before->rows[k]) && before->rows[k].over);
	strbuf_addf(out, "%zu request%s ran for %s or more, %s%s: ", n, n == 1 ? "" : "s",
		    units_ns(EXPLAIN_HUNG_NS, least, sizeof(least)),
		    n == 1 ? "it lasted " : "the longest ",
		    units_ns(r->lasts_ns, time, sizeof(time)));
	strbuf_addshown(out, r->operation, strlen(r->operation));
	strbuf_addstr(out, ", asked by ");
	if (r->client.comm || *r->peer)
		add_who(out, &r->client, r->peer);
	else
		strbuf_addstr(out, "an unknown client");
	strbuf_addstr(out, " of ");
	add_who(out, &r->server, r->service);
	if (open)
		strbuf_addf(out, "; %zu still ran at the end", open);
	if (was || x->l7_before)
		strbuf_addstr(out, was ? "; also before" : "; not before");
	return true;
}
