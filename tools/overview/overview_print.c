/* SPDX-License-Identifier: Apache-2.0 */
/* overview_print: the overview as one screen of text: a label, what there is to say, and at the
 * right the verb that says more, where there is room, else on the next line. */
#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/typed.h"
#include "schema/base/units.h"
#include "tools/cli/verb.h"
#include "tools/overview/overview.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/requests/runprint.h"
#include "tools/waits/waitcells.h"

#define FSYNC_SLOW_NS 10e6 /* on average */
#define LABEL         8
#define LINES         24
#define CHECKS        4
#define HANGS_NS      (10 * 1000000000ll) /* a request that runs so long */
#define CHECK_LINES   2                   /* of a terminal, for what a stranger may have named */
#define OPS           2
#define ROWS_LEAST    4
#define ROWS_MOST     12

struct screen {
	const struct overview *o;
	const struct verb_call *call;
	FILE *out;
	unsigned width;
};

/* ---- lines ---- */

/* "load    1.9 of 4 CPUs busy                              sonde timeline" */
static void line(const struct screen *s, const char *label, const char *text, const char *command)
{
	struct strbuf row cleanup_strbuf = STRBUF_INIT, typed cleanup_strbuf = STRBUF_INIT;
	size_t used;

	strbuf_addf(&row, "%s%-*s%s", term_on(s->out, TERM_BOLD), LABEL, label, term_off(s->out));
	strbuf_addstr(&row, text);
	used = LABEL + term_columns(text);
	if (command)
		typed_add(&typed, command);
	if (typed.len && used + 2 + term_columns(strbuf_str(&typed)) <= s->width) {
		strbuf_addf(&row, "%*s%s",
			    (int)(s->width - used - term_columns(strbuf_str(&typed))), "",
			    strbuf_str(&typed));
		fprintf(s->out, "%s\n", strbuf_str(&row));
		return;
	}
	wrap_print(s->out, strbuf_str(&row), LABEL);
	if (typed.len)
		fprintf(s->out, "%*s%s\n", LABEL, "", strbuf_str(&typed));
}

static void not_recorded(const struct screen *s, const char *label, const char *what,
			 const char *family)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, command cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&text, "%snot recorded", what);
	strbuf_addf(&command, "sudo sonde up %s", family);
	line(s, label, strbuf_str(&text), strbuf_str(&command));
}

/* ", before 1.2": if it differs by a tenth and `least`. */
static void add_before(struct strbuf *out, const double v[2], double least, const char *unit)
{
	const double change = v[OVERVIEW_NOW] - v[OVERVIEW_BEFORE];

	if (v[OVERVIEW_BEFORE] < 0)
		return;
	if ((change < 0 ? -change : change) >= least &&
	    (change < 0 ? -change : change) >= v[OVERVIEW_BEFORE] / 10)
		strbuf_addf(out, " (before %.1f%s)", v[OVERVIEW_BEFORE], unit);
}

static const char *load_word(double share, double waited)
{
	if (share >= 0.85 || waited >= 0.4)
		return "full";
	if (share >= 0.5 || waited >= 0.15)
		return "busy";
	return share >= 0.1 ? "moderate" : "quiet";
}

static void print_load(const struct screen *s)
{
	const struct overview_host *h = &s->o->host;
	const double waited = h->waited_cpu[OVERVIEW_NOW];
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	if (h->cores[OVERVIEW_NOW] < 0) {
		if (!s->o->known[OVERVIEW_NOW][OVERVIEW_HOST])
			not_recorded(s, "load", "", "host");
		return;
	}
	strbuf_addf(&text, "%s: %.1f ",
		    load_word(h->cores[OVERVIEW_NOW] / (h->cpus > 0 ? h->cpus : 1), waited),
		    h->cores[OVERVIEW_NOW]);
	strbuf_addf(&text, h->cpus > 0 ? "of %.0f CPUs used" : "CPUs used", h->cpus);
	add_before(&text, h->cores, 0.1, "");
	if (waited >= 0.01)
		strbuf_addf(&text, "; threads waited for one %.0f %% of the time", 100 * waited);
	else if (waited < 0)
		strbuf_addstr(&text, ", by samples");
	line(s, "load", strbuf_str(&text), "sonde timeline");
}

static void print_memory(const struct screen *s)
{
	const struct overview_host *h = &s->o->host;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char used[UNITS_MAX], total[UNITS_MAX], before[UNITS_MAX];

	if (h->mem_used[OVERVIEW_NOW] < 0)
		return;
	strbuf_addf(&text, "%s of %s used",
		    units_bytes((uint64_t)h->mem_used[OVERVIEW_NOW], used, sizeof(used)),
		    units_bytes((uint64_t)h->mem_total, total, sizeof(total)));
	if (h->mem_used[OVERVIEW_BEFORE] >= 0 &&
	    h->mem_used[OVERVIEW_NOW] - h->mem_used[OVERVIEW_BEFORE] >= h->mem_total / 50)
		strbuf_addf(&text, " (before %s)",
			    units_bytes((uint64_t)h->mem_used[OVERVIEW_BEFORE], before,
					sizeof(before)));
	if (h->waited_mem[OVERVIEW_NOW] >= 0.01)
		strbuf_addf(&text, "; threads waited for it %.0f %% of the time",
			    100 * h->waited_mem[OVERVIEW_NOW]);
	else if (h->swapped[OVERVIEW_NOW] >= 10)
		strbuf_addf(&text, "; swapped %.0f pages a second", h->swapped[OVERVIEW_NOW]);
	line(s, "memory", strbuf_str(&text), "sonde timeline --of mem");
}

/* What family disk says: calls that waited long for a disk, and requests that failed. */
static void add_disk_calls(struct strbuf *text, const struct overview_host *h)
{
	char now[UNITS_MAX], before[UNITS_MAX];
	double ns[2];

	for (int w = 0; w < 2; w++)
		ns[w] = h->fsyncs[w] > 0 ? 1000 * h->fsync_us[w] / h->fsyncs[w] : 0;
	if (ns[OVERVIEW_NOW] >= FSYNC_SLOW_NS) {
		strbuf_addf(text, "%san fsync took %s", text->len ? "; " : "",
			    units_ns((int64_t)ns[OVERVIEW_NOW], now, sizeof(now)));
		if (ns[OVERVIEW_BEFORE] > 0)
			strbuf_addf(text, " (before %s)",
				    units_ns((int64_t)ns[OVERVIEW_BEFORE], before, sizeof(before)));
	}
	if (h->disk_errors[OVERVIEW_NOW] > 0)
		strbuf_addf(text, "%s%.0f requests failed", text->len ? "; " : "",
			    h->disk_errors[OVERVIEW_NOW]);
}

static void print_disks(const struct screen *s)
{
	const struct overview_host *h = &s->o->host;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	const double busy[2] = {100 * h->disk_busy[0], 100 * h->disk_busy[1]};

	if (*h->disk) {
		strbuf_addshown(&text, h->disk, strlen(h->disk));
		strbuf_addf(&text, " busy %.0f %% of the time", busy[OVERVIEW_NOW]);
		add_before(&text, busy, 2, " %");
	}
	if (h->waited_io[OVERVIEW_NOW] >= 0.01)
		strbuf_addf(&text, "%sthreads waited for disks %.0f %% of the time",
			    text.len ? "; " : "", 100 * h->waited_io[OVERVIEW_NOW]);
	add_disk_calls(&text, h);
	if (text.len)
		line(s, "disks", strbuf_str(&text),
		     h->fsyncs[OVERVIEW_NOW] >= 0 || h->disk_errors[OVERVIEW_NOW] >= 0 ?
			     "sonde disk" :
			     "sonde timeline --of io");
}

/* ---- what is wrong ---- */

/* Returns how many, `most` at most. */
static unsigned print_failed_checks(const struct screen *s, enum check_state state, bool critical,
				    unsigned most)
{
	const struct check_results *c = &s->o->checks;
	const char *word = state == CHECK_PENDING ? "pending  " :
			   critical               ? "CRITICAL " :
						    "WARNING  ";
	unsigned said = 0;

	for (size_t i = 0; i < c->n && said < most; i++) {
		const struct check_result *r = &c->rows[i];
		struct strbuf one cleanup_strbuf = STRBUF_INIT, cut cleanup_strbuf = STRBUF_INIT;

		if (r->state != state || r->check->critical != critical)
			continue;
		strbuf_addf(&one, "%*s%s", LABEL, "", word);
		check_say(r, &one);
		term_add_middle(&cut, strbuf_str(&one), CHECK_LINES * (s->width - LABEL));
		wrap_print(s->out, strbuf_str(&cut), LABEL + (unsigned)strlen(word));
		said++;
	}
	return said;
}

static unsigned print_checks(const struct screen *s)
{
	const struct check_results *c = &s->o->checks;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	unsigned said = 0;

	if (c->bad)
		strbuf_addf(&text, "%s%zu of %zu checks failed%s", term_on(s->out, TERM_RED),
			    c->bad, c->n_checks, term_off(s->out));
	else if (c->pending)
		strbuf_addf(&text, "nothing yet: of %zu checks %zu fail%s, but not for long",
			    c->n_checks - c->unmeasured, c->pending, c->pending == 1 ? "s" : "");
	else
		strbuf_addf(&text, "nothing: %zu check%s found no fault",
			    c->n_checks - c->unmeasured,
			    c->n_checks - c->unmeasured == 1 ? "" : "s");
	if (2 * c->unmeasured > c->n_checks)
		strbuf_addf(&text, "; %zu %s not measured", c->unmeasured,
			    c->unmeasured == 1 ? "is" : "are");
	line(s, "wrong", strbuf_str(&text), "sonde check");
	said += print_failed_checks(s, CHECK_BAD, true, CHECKS);
	said += print_failed_checks(s, CHECK_BAD, false, CHECKS - said);
	said += print_failed_checks(s, CHECK_PENDING, true, CHECKS - said);
	said += print_failed_checks(s, CHECK_PENDING, false, CHECKS - said);
	if (c->bad + c->pending > said)
		fprintf(s->out, "%*s%zu more\n", LABEL, "", c->bad + c->pending - said);
	return said;
}

/* ---- who ---- */

static bool changed(const double v[2], double least)
{
	const double change = v[OVERVIEW_NOW] - v[OVERVIEW_BEFORE];

	return (change < 0 ? -change : change) >= least &&
	       (change < 0 ? -change : change) >= 0.2 * v[OVERVIEW_BEFORE];
}

/* `has`: that it was read, in each window; `there`: that there was something to read. */
static void cell_bytes(struct table *t, const double v[2], const bool has[2], const bool there[2],
		       double least, bool before)
{
	const double change = v[OVERVIEW_NOW] - v[OVERVIEW_BEFORE];
	char now[UNITS_MAX], more[UNITS_MAX];

	before = before && (has[OVERVIEW_BEFORE] || !there[OVERVIEW_BEFORE]);
	if (!has[OVERVIEW_NOW])
		table_cell(t, "-");
	else if (before && changed(v, least))
		table_cellf(
			t, "%s %c%s", units_bytes((uint64_t)v[OVERVIEW_NOW], now, sizeof(now)),
			change > 0 ? '+' : '-',
			units_bytes((uint64_t)(change > 0 ? change : -change), more, sizeof(more)));
	else
		table_cell(t, units_bytes((uint64_t)v[OVERVIEW_NOW], now, sizeof(now)));
}

static void cell_cores(struct table *t, const struct overview_row *r, bool before)
{
	if (!r->has_cpu)
		table_cell(t, "-");
	else if (before && changed(r->cpu, 0.05))
		table_cellf(t, "%.2f %+.2f", r->cpu[OVERVIEW_NOW],
			    r->cpu[OVERVIEW_NOW] - r->cpu[OVERVIEW_BEFORE]);
	else
		table_cellf(t, "%.2f", r->cpu[OVERVIEW_NOW]);
}

static void cell_count(struct table *t, uint64_t n)
{
	char text[UNITS_MAX];

	table_cell(t, n ? units_count(n, text, sizeof(text)) : "-");
}

static void print_rows(const struct screen *s, unsigned lines)
{
	static const struct table_column columns[] = {
		{"", TABLE_MIDDLE},       {"CPU", TABLE_RIGHT},         {"MEMORY", TABLE_RIGHT},
		{"DISK/s", TABLE_RIGHT},  {"NET/s", TABLE_SPARE_RIGHT}, {"FAILED", TABLE_RIGHT},
		{"RESTARTS", TABLE_RIGHT}};
	const struct overview *o = s->o;
	const bool host = o->known[OVERVIEW_BEFORE][OVERVIEW_HOST],
		   before = host || o->known[OVERVIEW_BEFORE][OVERVIEW_CPU];
	size_t n = lines > ROWS_MOST ? ROWS_MOST : lines < ROWS_LEAST ? ROWS_LEAST : lines;
	struct table *t = table_new(columns, sizeof(columns) / sizeof(*columns));
	struct strbuf head cleanup_strbuf = STRBUF_INIT;
	bool marked = false;

	n = n < o->n ? n : o->n;
	for (size_t i = 0; i < n; i++)
		marked = marked || o->rows[i].container;
	strbuf_addf(&head, "CPU in cores%s%s", before ? "; +, -: against before" : "",
		    marked ? "; *: in no container" : "");
	line(s, "who", strbuf_str(&head), "sonde containers");
	for (size_t i = 0; i < n; i++) {
		const struct overview_row *r = &o->rows[i];
		struct strbuf name cleanup_strbuf = STRBUF_INIT;

		waitcell_addname(&name, r->name);
		table_cellf(t, "  %s%s", strbuf_str(&name), marked && !r->container ? " *" : "");
		cell_cores(t, r, before);
		cell_bytes(t, r->mem, r->has_mem, r->alive, 8 << 20, host);
		cell_bytes(t, r->io, r->has_io, r->there, 1 << 20, host);
		cell_bytes(t, r->net, r->has_net, r->there, 1 << 20, host);
		cell_count(t, (uint64_t)r->failed[OVERVIEW_NOW]);
		if (r->oom[OVERVIEW_NOW] && !r->restarts[OVERVIEW_NOW])
			table_cellf(t, "oom %llu", (unsigned long long)r->oom[OVERVIEW_NOW]);
		else if (r->oom[OVERVIEW_NOW])
			table_cellf(t, "%llu, oom %llu",
				    (unsigned long long)r->restarts[OVERVIEW_NOW],
				    (unsigned long long)r->oom[OVERVIEW_NOW]);
		else
			cell_count(t, r->restarts[OVERVIEW_NOW]);
	}
	table_omit_empty(t);
	table_print(t, s->out, s->width);
	table_free(t);
}

/* ---- requests ---- */

static void add_op(struct strbuf *out, const struct screen *s, const struct reqrows_row *r,
		   size_t room)
{
	struct strbuf cut cleanup_strbuf = STRBUF_INIT;

	term_add_middle(&cut, r->operation, s->call->wide ? 1000 : room);
	strbuf_addf(out, "%s", strbuf_str(&cut));
	if (*r->container || *r->comm) {
		strbuf_addstr(out, " of ");
		waitcell_addname(out, *r->container ? r->container : r->comm);
	}
}

static size_t op_room(const struct screen *s)
{
	return s->width > 100 ? s->width - 56 : s->width / 2 > 24 ? s->width / 2 - 6 : 24;
}

static void print_slow(const struct screen *s)
{
	struct overview_op ops[OPS];
	const size_t n = overview_slowest(s->o, ops, OPS);
	bool was = false;

	for (size_t i = 0; i < n; i++) {
		const struct overview_op *x = &ops[i];
		const bool slower = overview_is_slower(x);
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		char now[UNITS_MAX], before[UNITS_MAX];

		add_op(&text, s, x->now, op_room(s));
		strbuf_addf(&text, ": p95 %s",
			    units_ns((int64_t)reqrows_quantile(x->now, 0.95), now, sizeof(now)));
		if (x->before && x->before->answered)
			strbuf_addf(&text, " (before %s)",
				    units_ns((int64_t)reqrows_quantile(x->before, 0.95), before,
					     sizeof(before)));
		line(s,
		     !i            ? slower ? "slower" : "slowest" :
		     was != slower ? "slowest" :
				     "",
		     strbuf_str(&text),
		     i      ? NULL :
		     slower ? "sonde explain" :
			      "sonde requests --slowest");
		was = slower;
	}
	if (!n)
		line(s, "slow", "no requests were answered", NULL);
}

static void print_failing(const struct screen *s)
{
	struct overview_op ops[OPS];
	const size_t n = overview_failing(s->o, ops, OPS);

	for (size_t i = 0; i < n; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		char count[UNITS_MAX], share[UNITS_MAX];

		add_op(&text, s, ops[i].now, op_room(s));
		strbuf_addf(&text, ": %s failed, %s",
			    units_count(ops[i].now->errors, count, sizeof(count)),
			    units_share((double)ops[i].now->errors, (double)ops[i].now->requests,
					share, sizeof(share)));
		line(s, i ? "" : "failing", strbuf_str(&text),
		     i ? NULL : "sonde requests --failed");
	}
}

static void print_running(const struct screen *s)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, shown cleanup_strbuf = STRBUF_INIT;

	if (!s->o->running.n)
		return;
	runprint_say(&s->o->running, &text);
	term_add_middle(&shown, strbuf_str(&text),
			s->call->wide ? 1000 : 2 * (s->width - LABEL) - 30);
	line(s, s->o->running.rows[0].lasts_ns >= HANGS_NS ? "hanging" : "running",
	     strbuf_str(&shown), "sonde requests --running");
}

static void print_requests(const struct screen *s)
{
	if (!s->o->known[OVERVIEW_NOW][OVERVIEW_L7]) {
		not_recorded(s, "slow", "requests: ", "l7");
		return;
	}
	print_slow(s);
	print_failing(s);
	print_running(s);
}

/* ---- all of it ---- */

static void print_head(const struct screen *s)
{
	const struct selection *sel = s->o->sel[OVERVIEW_NOW];
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char ago[UNITS_MAX];
	const int64_t since = clock_utc_ns() - sel->to_ns;

	strbuf_addstr(&text, sel->range);
	if (s->o->ended && !sel->range_given && since > 60 * NSEC_PER_SEC)
		strbuf_addf(&text, ", %s ago; nothing records now: sudo sonde up",
			    units_ns(since, ago, sizeof(ago)));
	wrap_print(s->out, strbuf_str(&text), LABEL);
}

void overview_print(const struct overview *o, const struct verb_call *call, unsigned lines)
{
	const unsigned width = term_width(stdout);
	const struct screen s = {o, call, stdout, width < 40 ? 40 : width};
	unsigned used = 15;

	lines = lines ? lines : LINES;
	print_head(&s);
	print_load(&s);
	print_memory(&s);
	print_disks(&s);
	used += print_checks(&s);
	print_rows(&s, lines > used ? lines - used : 0);
	if (!o->known[OVERVIEW_NOW][OVERVIEW_HOST])
		not_recorded(&s, "", "memory, disks, restarts: ", "host");
	print_requests(&s);
	if (!o->known[OVERVIEW_NOW][OVERVIEW_NET])
		not_recorded(&s, "talks", "who talks to whom: ", "net");
	line(&s, "more", "why it was slow: sonde explain; in a browser: sonde serve", "sonde help");
	if (call->hint_store)
		fprintf(s.out, "%*sthese ask this store after: export SONDE_STORE=%s\n", LABEL, "",
			call->hint_store);
}
