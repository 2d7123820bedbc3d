/* SPDX-License-Identifier: Apache-2.0 */
/* chain_say: the links of a chain in words, each with its number before and in the window, and the
 * command that shows more. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/typed.h"
#include "schema/base/units.h"
#include "tools/explain/chain/chain_walk.h"
#include "tools/print/when.h"
#include "tools/select/filter.h"
#include "tools/waits/waitcells.h"

#define OPERATION_COLUMNS 160

/* ---- parts ---- */

static void add_shown(struct strbuf *out, const char *before, const char *name)
{
	if (!name || !*name)
		return;
	strbuf_addstr(out, before);
	strbuf_addshown(out, name, strlen(name));
}

static void add_who(struct strbuf *out, const char *name)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	waitcell_addname(&text, name);
	add_shown(out, "", strbuf_str(&text));
}

static void add_operation(struct strbuf *out, const char *operation)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	term_add_middle(&text, operation, OPERATION_COLUMNS);
	strbuf_addstr(out, strbuf_str(&text));
}

static void add_time(struct strbuf *out, double ns)
{
	char text[UNITS_MAX];

	strbuf_addstr(out, units_ns((int64_t)ns, text, sizeof(text)));
}

static void add_share(struct strbuf *out, double part, double whole)
{
	char text[UNITS_MAX];

	strbuf_addstr(out, units_share(part, whole, text, sizeof(text)));
}

static double per_second(const struct chain_requests *r, int w, double n)
{
	return r->seconds[w] > 0 ? n / r->seconds[w] : 0;
}

static void set_values(struct chain_link *l, double before, double after, const char *unit)
{
	l->before = before;
	l->after = after;
	l->unit = unit;
}

/* Of `n` things of the time before; NAN: nothing was there, or it was not recorded. */
static double known(const struct chain_walk *w, double before, double n)
{
	return w->r->known[DIFF_BEFORE] && n > 0 ? before : NAN;
}

/* NAN: that family did not record the time before. */
static double recorded(const struct chain_walk *w, enum chain_family family, double before)
{
	return w->m->families[DIFF_BEFORE][family] ? before : NAN;
}

/* ": 2.4 s each second, before 0.1 s" */
static void add_seconds(struct strbuf *out, const double s[2])
{
	strbuf_addf(out, "%.2f s each second, before %.2f s", s[1], s[0]);
}

static void add_range(struct strbuf *out, const char *prefix, const struct selection *sel)
{
	char from[40], to[40];

	strbuf_addf(out, " --%sfrom %s --%sto %s", prefix,
		    when_zoned(sel->from_ns, from, sizeof(from)), prefix,
		    when_zoned(sel->to_ns, to, sizeof(to)));
}

static bool disk_is_known(const struct chain_walk *w)
{
	return w->m->files.seconds[DIFF_AFTER] > 0;
}

/* "sonde VERB --container web MORE --from ... --to ..." */
static void set_command(const struct chain_walk *w, struct chain_link *l, const char *verb,
			const char *who, bool container, const char *more, bool both)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&out, "%s %s", typed_sonde(false), verb);
	if (who && filter_can_say(who))
		filter_option(container ? FILTER_CONTAINER : FILTER_COMM, who, &out);
	strbuf_addf(&out, "%s%s", *more ? " " : "", more);
	add_range(&out, "", w->m->wide[DIFF_AFTER]);
	if (both)
		add_range(&out, "vs-", w->m->wide[DIFF_BEFORE]);
	if (w->hint_store) {
		strbuf_addstr(&out, " --store ");
		filter_word(w->hint_store, &out);
	}
	l->command = strbuf_take(&out);
}

/* ---- what is felt ---- */

/* The quantile that is said with the median: p95, or if neither it nor the median tells the change,
 * the one that does; 0: only the mean does. */
static double telling(const struct chain_op *op)
{
	static const double quantiles[] = {0.95, 0.99, 0.999};
	const struct hist *before = &op->w[DIFF_BEFORE].spread, *after = &op->w[DIFF_AFTER].spread;
	const bool slower =
		chain_mean(&op->w[DIFF_AFTER]) >= CHAIN_RATIO * chain_mean(&op->w[DIFF_BEFORE]);

	if (!slower || !op->w[DIFF_BEFORE].answered ||
	    hist_quantile(after, 0.5) >= CHAIN_RATIO * hist_quantile(before, 0.5))
		return quantiles[0];
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++)
		if (hist_quantile(after, quantiles[i]) >=
		    CHAIN_RATIO * hist_quantile(before, quantiles[i]))
			return quantiles[i];
	return 0;
}

static void add_latency(struct strbuf *out, const struct chain_count *c, double quantile)
{
	if (quantile <= 0) {
		add_time(out, chain_mean(c));
		strbuf_addstr(out, " on average");
		return;
	}
	add_time(out, hist_quantile(&c->spread, 0.5));
	strbuf_addf(out, " (p%g ", 100 * quantile);
	add_time(out, hist_quantile(&c->spread, quantile));
	strbuf_addstr(out, ")");
}

/* Where it was, the numbers say so. */
static void add_unrecorded(const struct chain_walk *w, struct strbuf *out)
{
	if (!w->r->known[DIFF_BEFORE])
		strbuf_addstr(out, "; the time before was not recorded");
}

/* "2.55 s (p95 3.1 s), before 320 ms (p95 400 ms)": medians. Nothing is said of a time before
 * without answers (add_new). */
static void add_latencies(const struct chain_walk *w, struct strbuf *out, const struct chain_op *op)
{
	const double quantile = telling(op);

	add_latency(out, &op->w[DIFF_AFTER], quantile);
	if (!w->r->known[DIFF_BEFORE] || !op->w[DIFF_BEFORE].answered)
		return;
	strbuf_addstr(out, ", before ");
	add_latency(out, &op->w[DIFF_BEFORE], quantile);
}

/* Nothing before to compare with. */
static void add_new(const struct chain_walk *w, struct strbuf *out, const struct chain_op *op)
{
	if (!w->r->known[DIFF_BEFORE])
		return;
	if (!op->w[DIFF_BEFORE].n)
		strbuf_addstr(out, "; it was not asked before");
	else if (!op->w[DIFF_BEFORE].answered && op->w[DIFF_AFTER].answered)
		strbuf_addstr(out, "; before, it was asked and not answered");
}

static void add_failures(const struct chain_walk *w, struct strbuf *out, const struct chain_op *op)
{
	const struct chain_count *before = &op->w[DIFF_BEFORE], *after = &op->w[DIFF_AFTER];
	const struct chain_status *top = NULL;

	for (size_t i = 0; i < op->n_statuses; i++)
		if (!top || op->statuses[i].failed > top->failed)
			top = &op->statuses[i];
	strbuf_addf(out, "%llu of %llu failed", (unsigned long long)after->failed,
		    (unsigned long long)after->n);
	add_shown(out, " with ", top ? top->name : NULL);
	strbuf_addstr(out, " (");
	add_share(out, (double)after->failed, (double)after->n);
	if (w->r->known[DIFF_BEFORE] && before->n) {
		strbuf_addstr(out, ", before ");
		add_share(out, (double)before->failed, (double)before->n);
	}
	strbuf_addstr(out, ")");
}

void chain_say_felt(const struct chain_walk *w, struct chain_link *l, const struct chain_op *op,
		    bool slower, bool fails)
{
	const struct chain_count *before = &op->w[DIFF_BEFORE], *after = &op->w[DIFF_AFTER];
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	slower = slower && (!fails || chain_is_slower(op));
	fails = fails && chain_fails_more(op);
	strbuf_addstr(&out, op->server ? "" : "what ");
	add_who(&out, op->who);
	strbuf_addstr(&out, op->server ? " answered " : " asked, ");
	add_operation(&out, op->operation);
	if (slower) {
		strbuf_addstr(&out, op->server ? " in " : ", took ");
		add_latencies(w, &out, op);
		strbuf_addf(&out, ", %llu requests", (unsigned long long)after->n);
	}
	if (fails) {
		strbuf_addstr(&out, slower ? "; " : ": ");
		add_failures(w, &out, op);
	}
	add_new(w, &out, op);
	add_unrecorded(w, &out);
	if (slower)
		set_values(l, known(w, chain_mean(before) / 1e9, (double)before->answered),
			   chain_mean(after) / 1e9, "seconds");
	else
		set_values(l,
			   known(w, (double)before->failed / (double)before->n, (double)before->n),
			   after->n ? (double)after->failed / (double)after->n : 0, "share");
	l->text = strbuf_take(&out);
	set_command(w, l, "requests", op->who, op->container, slower ? "--slowest" : "--failed",
		    false);
}

/* ---- what it asked ---- */

void chain_say_asked(const struct chain_walk *w, struct chain_link *l,
		     const struct chain_asked *asked, const struct chain_op *server)
{
	const struct chain_op *op = asked->op;
	const struct chain_count *before = &op->w[DIFF_BEFORE], *after = &op->w[DIFF_AFTER];
	const bool names = !strcmp(op->protocol, "dns");
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&out, names ? "it waited for names to be resolved by " : "it waited for ");
	if (server)
		add_who(&out, server->who);
	else
		add_shown(&out, "", op->service);
	strbuf_addstr(&out, ": ");
	add_operation(&out, op->operation);
	strbuf_addstr(&out, " ");
	if (asked->failed > 0 && chain_fails_more(op)) {
		add_failures(w, &out, op);
		if (after->answered)
			strbuf_addstr(&out, "; it took ");
	} else if (after->answered) {
		strbuf_addstr(&out, "took ");
	}
	if (after->answered)
		add_latencies(w, &out, op);
	else if (!after->failed)
		strbuf_addstr(&out, "without an answer");
	strbuf_addf(&out, ", %.1f times a second", per_second(w->r, DIFF_AFTER, (double)after->n));
	if (w->r->known[DIFF_BEFORE] && before->n)
		strbuf_addf(&out, ", before %.1f",
			    per_second(w->r, DIFF_BEFORE, (double)before->n));
	add_new(w, &out, op);
	add_unrecorded(w, &out);
	set_values(l, known(w, chain_mean(before) / 1e9, (double)before->answered),
		   chain_mean(after) / 1e9, "seconds");
	l->text = strbuf_take(&out);
	set_command(w, l, "requests", op->who, op->container, "--side client", false);
}

/* ---- between the two ---- */

static const char *say_network(struct strbuf *out, struct chain_link *l, const struct chain_flow *f)
{
	const double n = f->segments[DIFF_AFTER], n_before = f->segments[DIFF_BEFORE];

	strbuf_addstr(out, "packets were lost between them: ");
	add_share(out, f->retrans[DIFF_AFTER], n > 0 ? n : 1);
	strbuf_addstr(out, " of the segments were sent again (");
	strbuf_addf(out, "%.0f)", f->retrans[DIFF_AFTER]);
	if (n_before > 0) {
		strbuf_addstr(out, ", before ");
		add_share(out, f->retrans[DIFF_BEFORE], n_before);
	}
	set_values(l, n_before > 0 ? f->retrans[DIFF_BEFORE] / n_before : NAN,
		   n > 0 ? f->retrans[DIFF_AFTER] / n : 0, "share");
	return "network";
}

/* "of the connections to db ": what it says follows that. */
static const char *say_refused(const struct chain_walk *w, struct strbuf *out, struct chain_link *l,
			       const struct chain_flow *f)
{
	const double failed = f->refused[1] + f->failed[1], before = f->refused[0] + f->failed[0];

	strbuf_addf(out, "%.0f of %.0f were not opened (%.0f refused, %.0f without an answer)",
		    failed, f->attempts[1], f->refused[1], f->failed[1]);
	if (w->m->families[DIFF_BEFORE][CHAIN_NET] && f->attempts[0] > 0)
		strbuf_addf(out, ", before %.0f of %.0f", before, f->attempts[0]);
	else if (w->m->families[DIFF_BEFORE][CHAIN_NET])
		strbuf_addstr(out, "; none was tried before");
	set_values(l, recorded(w, CHAIN_NET, before), failed, "events");
	return "refused";
}

void chain_say_refused(const struct chain_walk *w, struct chain_link *l,
		       const struct chain_at *from, const struct chain_flow *f)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&out, "of the connections to ");
	add_who(&out, strcmp(l->who, from->who) ? l->who : f->service);
	strbuf_addstr(&out, " ");
	say_refused(w, &out, l, f);
	l->text = strbuf_take(&out);
	set_command(w, l, "net", from->who, from->container, "--failed", false);
}

static const char *say_far(struct strbuf *out, struct chain_link *l, const struct chain_flow *f)
{
	const double rtt[2] = {f->rtt_n[0] > 0 ? f->rtt_us[0] / f->rtt_n[0] : 0,
			       f->rtt_n[1] > 0 ? f->rtt_us[1] / f->rtt_n[1] : 0};

	strbuf_addstr(out, "packets took longer between them: a round trip ");
	add_time(out, rtt[1] * 1000);
	strbuf_addstr(out, ", before ");
	add_time(out, rtt[0] * 1000);
	set_values(l, rtt[0] / 1e6, rtt[1] / 1e6, "seconds");
	return "network";
}

static const char *say_queue(struct strbuf *out, struct chain_link *l, const struct chain_op *s)
{
	const double queue[2] = {s->w[0].n ? (double)s->w[0].queue_ns / (double)s->w[0].n : 0,
				 s->w[1].n ? (double)s->w[1].queue_ns / (double)s->w[1].n : 0};

	strbuf_addstr(out, "the requests lay in the queue of ");
	add_who(out, s->who);
	strbuf_addstr(out, " until it read them: ");
	add_time(out, queue[1]);
	strbuf_addstr(out, " each");
	if (s->w[0].n) {
		strbuf_addstr(out, ", before ");
		add_time(out, queue[0]);
	}
	set_values(l, s->w[0].n ? queue[0] / 1e9 : NAN, queue[1] / 1e9, "seconds");
	return "queue";
}

static bool loses_more(const struct chain_flow *f)
{
	const double share[2] = {f->segments[0] > 0 ? f->retrans[0] / f->segments[0] : 0,
				 f->segments[1] > 0 ? f->retrans[1] / f->segments[1] : 0};

	return f->retrans[1] >= 3 && share[1] >= 0.002 && share[1] >= 2 * share[0];
}

/* At least a fourth of the mean added time of a request. */
static bool is_farther(const struct chain_flow *f, const struct chain_op *op)
{
	const double more = chain_mean(&op->w[1]) - chain_mean(&op->w[0]);

	return more > CHAIN_LEAST_NS / 2 && f->rtt_n[0] > 0 && f->rtt_n[1] > 0 &&
	       (f->rtt_us[1] / f->rtt_n[1] - f->rtt_us[0] / f->rtt_n[0]) * 1000 >= more / 4;
}

static double queue_more(const struct chain_walk *w, const struct chain_op *server)
{
	return (per_second(w->r, 1, (double)server->w[1].queue_ns) -
		per_second(w->r, 0, (double)server->w[0].queue_ns)) /
	       1e9;
}

const char *chain_say_between(const struct chain_walk *w, struct chain_link *l,
			      const struct chain_at *from, const struct chain_asked *asked,
			      const struct chain_op *server)
{
	const struct chain_op *op = asked->op;
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	struct chain_flow f;
	const bool flows = chain_flow_of(w->m, from->who, from->container, op->service, &f);
	const char *what = "unknown";

	if (flows && loses_more(&f)) {
		what = say_network(&out, l, &f);
	} else if (flows && f.refused[1] + f.failed[1] >= 3 &&
		   f.refused[1] + f.failed[1] > 2 * (f.refused[0] + f.failed[0])) {
		strbuf_addstr(&out, "of the connections between them ");
		what = say_refused(w, &out, l, &f);
	} else if (flows && is_farther(&f, op)) {
		what = say_far(&out, l, &f);
	} else if (server && w->r->known[DIFF_BEFORE] &&
		   queue_more(w, server) >= asked->extra / 3) {
		what = say_queue(&out, l, server);
	} else if (server) {
		add_who(&out, server->who);
		strbuf_addstr(
			&out,
			" itself did not take so long: the rest is between the two, and is not recorded");
	} else {
		strbuf_addstr(&out, "what ");
		add_shown(&out, "", op->service);
		strbuf_addstr(
			&out,
			" did meanwhile is not known: it is not on this host, or was not recorded");
	}
	l->text = strbuf_take(&out);
	if (!strcmp(what, "queue"))
		set_command(w, l, "requests", server->who, server->container, "--side server",
			    false);
	else
		set_command(w, l, "net", from->who, from->container,
			    strcmp(what, "network") ? "--failed" : "--retrans", false);
	return what;
}

/* ---- causes ---- */

static void add_place(struct strbuf *out, const struct chain_measure *m)
{
	add_shown(out, ", in ", m->function);
	if (m->object && *m->object != '[') /* [others]: not one of them */
		add_shown(out, ", on ", m->object);
	add_shown(out, " of ", m->peer);
}

/* "mostly" of half of what was added or more (explain.h, rule 8). */
static const char *part_name(const double part[2], const double whole[2])
{
	return part[1] - part[0] >= EXPLAIN_MOSTLY * (whole[1] - whole[0]) ? "mostly" :
									     "the largest part";
}

static void say_lock(const struct chain_walk *w, const struct chain_link *l, struct strbuf *out,
		     const struct chain_measure *m)
{
	struct chain_holder holder;
	struct chain_other by;

	add_who(out, l->who);
	strbuf_addstr(out, " waited for locks: ");
	add_seconds(out, m->s);
	add_place(out, m);
	chain_waker(w->m, l->who, l->container, "lock", &by);
	if (!by.name || by.v[1] > EXPLAIN_BEYOND * m->s[1])
		return;
	chain_holder_find(w->m->wide[DIFF_AFTER], w->r, l->who, l->container,
			  chain_waker_pid(w->m, l->who, l->container, "lock"), &holder);
	if (holder.operation) {
		strbuf_addstr(out, "; mostly held by a process of it that served ");
		add_operation(out, holder.operation);
		add_shown(out, ", asked by ", holder.asker);
		chain_holder_release(&holder);
		return;
	}
	strbuf_addf(out, "; %s held by ", part_name(by.v, m->s));
	add_who(out, by.name);
	if (m->by_tid && by.container == l->container && !strcmp(by.name, l->who))
		strbuf_addf(out, " %u", m->by_tid);
	add_shown(out, ", which let go in ", by.function);
}

static void say_ready(const struct chain_walk *w, struct chain_link *l, struct strbuf *out,
		      const struct chain_measure *m)
{
	struct chain_other by;
	bool guessed;

	add_who(out, l->who);
	strbuf_addstr(out, " was ready and had no CPU: ");
	add_seconds(out, m->s);
	chain_neighbour(w->m, l->who, l->container, &by, &guessed);
	if (!by.name || by.v[1] - by.v[0] < (m->s[1] - m->s[0]) / 2)
		l->sure = l->sure == CHAIN_IS_CERTAIN ? CHAIN_IS_LIKELY : l->sure;
	if (!by.name || (!guessed && by.v[1] - by.v[0] < (m->s[1] - m->s[0]) / 4))
		return;
	strbuf_addstr(out,
		      guessed ? "; more CPU time than before had " : "; the CPU was taken by ");
	add_who(out, by.name);
	strbuf_addf(out,
		    guessed ? " (%.2f cores, before %.2f)" : " (%.2f s each second, before %.2f s)",
		    by.v[1], by.v[0]);
	if (guessed && l->sure == CHAIN_IS_CERTAIN)
		l->sure = CHAIN_IS_LIKELY;
}

static void say_quota(const struct chain_walk *w, const struct chain_link *l, struct strbuf *out,
		      const struct chain_measure *m)
{
	const struct chain_use *u = chain_use_of(w->m, l->who, l->container);

	strbuf_addstr(out, "the CPU quota of ");
	add_who(out, l->who);
	strbuf_addstr(out, " held it back: ");
	add_seconds(out, m->s);
	if (u && u->periods[DIFF_AFTER] > 0)
		strbuf_addf(out, ", in %.0f of %.0f periods", u->throttled[DIFF_AFTER],
			    u->periods[DIFF_AFTER]);
}

static void say_cpu(const struct chain_link *l, struct strbuf *out, const struct chain_measure *m,
		    bool collector)
{
	add_who(out, l->who);
	strbuf_addf(out, "%s %.2f s each second, before %.2f s",
		    collector ? " collected garbage:" : " ran longer:", m->s[1], m->s[0]);
	if (!m->function)
		return;
	strbuf_addf(out, "; %s", part_name(m->of_function, m->s));
	add_shown(out, " in the function ", m->function);
	add_shown(out, " of ", m->module);
	strbuf_addf(out, " (%.2f, before %.2f)", m->of_function[1], m->of_function[0]);
}

/* "; fsync of /data/wal took 240 ms each, before 12 ms"; `said`: what it waited on. */
static void add_sync(struct strbuf *out, const struct chain_file *x, const char *said)
{
	char before[UNITS_MAX], after[UNITS_MAX];

	if (!x || x->n[1] <= 0)
		return;
	add_shown(out, "; fsync of ", said && !strcmp(said, x->file) ? "it" : x->file);
	strbuf_addf(out, " took %s each",
		    units_ns((int64_t)(1000 * x->v[1] / x->n[1]), after, sizeof(after)));
	if (x->n[0] > 0)
		strbuf_addf(out, ", before %s",
			    units_ns((int64_t)(1000 * x->v[0] / x->n[0]), before, sizeof(before)));
}

static void add_rates(struct strbuf *out, double now, double was)
{
	char before[UNITS_MAX], after[UNITS_MAX];

	strbuf_addf(out, " (%s/s, before %s/s)", units_bytes((uint64_t)now, after, sizeof(after)),
		    units_bytes((uint64_t)was, before, sizeof(before)));
}

/* ", behind writeback of /backup.tar, written by tar of backup (...)"; without a call that waited
 * `lead` is "; behind". */
static void add_behind(struct strbuf *out, const char *lead, const struct chain_file *x)
{
	bool reads = x->read[1] > x->v[1] / 2;

	strbuf_addstr(out, lead);
	add_shown(out, reads ? " reads of " : " writeback of ", x->file);
	strbuf_addstr(out, reads ? ", read by " : ", written by ");
	add_who(out, x->comm);
	if (x->container && strcmp(x->comm, x->who)) {
		strbuf_addstr(out, " of ");
		add_who(out, x->who);
	}
}

/* Of a slow disk a quarter of what others moved is much; less than a twentieth of all
 * that was moved there is no cause. */
static bool is_much(const struct chain_behind *b, double now, double was)
{
	if (b->same_disk && b->of_disk < 0.05)
		return false;
	return now - was >= 1 << 20 ||
	       (b->of_others >= 0.25 && b->of_disk >= 0.05 && now >= 2 * was);
}

/* false: no other one read or wrote much more. */
static bool add_other_file(struct strbuf *out, const struct chain_files *f,
			   const struct chain_file *sync, const struct chain_behind *b)
{
	const struct chain_file *x = b->x;
	double now, was;

	if (!x)
		return false;
	now = x->v[1] / f->seconds[1];
	was = x->v[0] / f->seconds[0];
	if (!is_much(b, now, was))
		return false;
	if (b->same_disk) {
		add_behind(out, sync ? ", behind" : "; behind", x);
	} else {
		strbuf_addstr(out, "; most more was read and written by ");
		add_who(out, x->who);
		add_shown(out, ", of its file ", x->file);
	}
	add_rates(out, now, was);
	return true;
}

static void say_disk(const struct chain_walk *w, const struct chain_link *l, struct strbuf *out,
		     const struct chain_measure *m)
{
	const struct chain_files *f = &w->m->files;
	const struct chain_file *sync = chain_files_sync(f, l->who, l->container);
	struct chain_behind behind = chain_files_other(f, l->who, l->container, sync);
	struct chain_other by;

	add_who(out, l->who);
	strbuf_addstr(out, " waited for the disk: ");
	add_seconds(out, m->s);
	add_place(out, m);
	add_sync(out, sync, m->object);
	if (add_other_file(out, f, sync, &behind))
		return;
	chain_reader(w->m, l->who, l->container, &by);
	if (!by.name || by.v[1] - by.v[0] < 1 << 20)
		return;
	strbuf_addstr(out, "; most more was read and written by ");
	add_who(out, by.name);
	add_rates(out, by.v[1], by.v[0]);
}

static void say_memory(const struct chain_walk *w, const struct chain_link *l, struct strbuf *out,
		       const struct chain_measure *m)
{
	const struct chain_use *u = chain_use_of(w->m, l->who, l->container);
	char mem[UNITS_MAX], limit[UNITS_MAX];

	add_who(out, l->who);
	strbuf_addstr(out, " waited for memory: ");
	add_seconds(out, m->s);
	if (u && u->mem_limit > 0)
		strbuf_addf(out, "; it had %s of the %s that its limit allows",
			    units_bytes((uint64_t)u->mem, mem, sizeof(mem)),
			    units_bytes((uint64_t)u->mem_limit, limit, sizeof(limit)));
	if (u && u->met_limit[1] > u->met_limit[0])
		strbuf_addf(out, ", and met that %.0f times", u->met_limit[1]);
	else if (w->m->swapped[1] > 2 * w->m->swapped[0] + 100)
		strbuf_addf(out, "; the host swapped %.0f pages, before %.0f", w->m->swapped[1],
			    w->m->swapped[0]);
}

static void say_wait(const struct chain_link *l, struct strbuf *out, const struct chain_measure *m,
		     enum chain_what what)
{
	static const char *const words[CHAIN_WHATS] = {[CHAIN_NETWORK] =
							       " waited for the network: ",
						       [CHAIN_PIPE] = " waited for a pipe: ",
						       [CHAIN_FAULT] = " waited in page faults: ",
						       [CHAIN_SLEEP] = " slept: ",
						       [CHAIN_CHILD] = " waited for a child: "};

	add_who(out, l->who);
	strbuf_addstr(out, words[what]);
	add_seconds(out, m->s);
	add_place(out, m);
}

static void set_cause_command(const struct chain_walk *w, struct chain_link *l,
			      enum chain_what what)
{
	switch (what) {
	case CHAIN_READY:
		set_command(w, l, "waits --neighbours", l->who, l->container, "", false);
		break;
	case CHAIN_CPU:
	case CHAIN_GC:
		set_command(w, l, "diff", l->who, l->container, "", true);
		break;
	case CHAIN_QUOTA:
		set_command(w, l, "containers", l->who, l->container, "--sort throttled", false);
		break;
	case CHAIN_RECLAIM:
		set_command(w, l, "timeline --of mem", l->who, l->container, "", false);
		break;
	case CHAIN_DISK: /* of all who use it: it is often another one's writing */
		if (disk_is_known(w)) {
			set_command(w, l, "disk --files", NULL, false, "", false);
			break;
		}
		set_command(w, l, "waits", l->who, l->container, "", false);
		break;
	default:
		set_command(w, l, "waits", l->who, l->container, "", false);
	}
}

void chain_say_cause(const struct chain_walk *w, struct chain_link *l, const struct chain_cause *c)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	set_values(l, c->m.s[0], c->m.s[1], "seconds each second");
	switch (c->what) {
	case CHAIN_LOCK:
		say_lock(w, l, &out, &c->m);
		break;
	case CHAIN_READY:
		say_ready(w, l, &out, &c->m);
		break;
	case CHAIN_QUOTA:
		say_quota(w, l, &out, &c->m);
		break;
	case CHAIN_CPU:
	case CHAIN_GC:
		say_cpu(l, &out, &c->m, c->what == CHAIN_GC);
		break;
	case CHAIN_DISK:
		say_disk(w, l, &out, &c->m);
		break;
	case CHAIN_RECLAIM:
		say_memory(w, l, &out, &c->m);
		break;
	default:
		say_wait(l, &out, &c->m, c->what);
	}
	l->text = strbuf_take(&out);
	set_cause_command(w, l, c->what);
}

static void add_clock(const struct chain_walk *w, struct strbuf *out, int64_t ns)
{
	char at[32];

	strbuf_addstr(out, when_local(ns, w->m->wide[DIFF_AFTER]->to_ns, at, sizeof(at)));
}

static void say_stopped(const struct chain_walk *w, struct chain_link *l,
			const struct incident_container *c)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	add_who(&out, c->name);
	strbuf_addstr(&out, " stopped at ");
	add_clock(w, &out, c->down_ns);
	if (c->down_how && *c->down_how) {
		add_shown(&out, " (", c->down_how);
		strbuf_addstr(&out, ")");
	}
	strbuf_addstr(&out, " and has not started again");
	set_values(l, recorded(w, CHAIN_HOST, 0), 1, "events");
	l->text = strbuf_take(&out);
	set_command(w, l, "events", c->name, true, "", false);
}

void chain_say_silent(const struct chain_walk *w, struct chain_link *l,
		      const struct chain_silence *s)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	char time[UNITS_MAX];

	add_who(&out, s->who);
	strbuf_addstr(&out, s->server ? " answered no request" : " got no answer");
	if (s->ends) {
		strbuf_addf(&out, " for %s, from ",
			    units_ns(s->to_ns - s->from_ns, time, sizeof(time)));
		add_clock(w, &out, s->from_ns);
		strbuf_addstr(&out, " to ");
		add_clock(w, &out, s->to_ns);
	} else if (!s->whole) {
		strbuf_addstr(&out, " any more since ");
		add_clock(w, &out, s->from_ns);
	}
	strbuf_addf(&out, "; before, %.1f a second", s->rate);
	set_values(l, s->rate, 0, "requests a second");
	l->text = strbuf_take(&out);
	set_command(w, l, "requests", s->who, s->container, "", false);
}

void chain_say_hanging(const struct chain_walk *w, struct chain_link *l,
		       const struct reqrun *longest, size_t n)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	char time[UNITS_MAX];

	strbuf_addf(&out, "%zu request%s to ", n, n == 1 ? "" : "s");
	add_who(&out, l->who);
	strbuf_addf(&out, " got no answer for %s%s: ", n == 1 ? "" : "up to ",
		    units_ns(longest->lasts_ns, time, sizeof(time)));
	add_operation(&out, longest->operation);
	set_values(l, NAN, (double)n, "requests");
	l->text = strbuf_take(&out);
	set_command(w, l, "requests --running", l->who, l->container, "", false);
}

void chain_say_unasked(const struct chain_walk *w, struct chain_link *l,
		       const struct chain_op *gone)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&out, "nothing that was recorded stopped ");
	add_who(&out, l->who);
	if (gone) {
		strbuf_addstr(&out, ": ");
		add_who(&out, gone->who);
		strbuf_addstr(&out, ", which asked it before, asked it no more");
	} else {
		strbuf_addstr(&out, ": it may not have been asked");
	}
	l->text = strbuf_take(&out);
	set_command(w, l, "net", l->who, l->container, "--failed", false);
}

void chain_say_incident(const struct chain_walk *w, struct chain_link *l,
			const struct incident_container *c)
{
	const struct incident_container *before =
		incidents_named(&w->x->incidents[DIFF_BEFORE], c->name);
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	char at[32];
	const struct incident_count *n = c->oom.n ? &c->oom : incident_restarts(c);
	const uint64_t n_before = !before  ? 0 :
				  c->oom.n ? before->oom.n :
					     incident_restarts(before)->n;

	if (c->down_ns && !c->oom.n && !incident_restarts(c)->n) {
		say_stopped(w, l, c);
		return;
	}
	incidents_say(c, &out);
	strbuf_addf(&out, ", first at %s",
		    when_local(n->first_ns, w->m->wide[DIFF_AFTER]->to_ns, at, sizeof(at)));
	if (n_before)
		strbuf_addf(&out, "; before %llu time%s", (unsigned long long)n_before,
			    n_before == 1 ? "" : "s");
	else if (w->m->families[DIFF_BEFORE][CHAIN_HOST])
		strbuf_addstr(&out, "; not before");
	if (c->down_ns && !incident_restarts(c)->n)
		strbuf_addstr(&out, "; it has not started again");
	set_values(l, n_before ? (double)n_before : recorded(w, CHAIN_HOST, 0), (double)n->n,
		   "events");
	l->text = strbuf_take(&out);
	set_command(w, l, c->oom.n ? "oom" : "events", c->name, true, "", false);
}

void chain_say_load(const struct chain_walk *w, struct chain_link *l, const double rate[2])
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	add_who(&out, l->who);
	strbuf_addf(&out, " was asked %.1f times as often: %.1f requests a second, before %.1f",
		    rate[1] / rate[0], rate[1], rate[0]);
	set_values(l, rate[0], rate[1], "requests a second");
	l->text = strbuf_take(&out);
	set_command(w, l, "requests", l->who, l->container, "--side server", false);
}

void chain_say_stolen(const struct chain_walk *w, struct chain_link *l)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&out, "the hypervisor of this virtual machine gave ");
	add_share(&out, w->m->stolen[DIFF_AFTER], 1);
	strbuf_addstr(&out, " of its CPU time to others");
	if (w->m->families[DIFF_BEFORE][CHAIN_HOST]) {
		strbuf_addstr(&out, ", before ");
		add_share(&out, w->m->stolen[DIFF_BEFORE], 1);
	}
	set_values(l, recorded(w, CHAIN_HOST, w->m->stolen[DIFF_BEFORE]), w->m->stolen[DIFF_AFTER],
		   "share");
	l->text = strbuf_take(&out);
	set_command(w, l, "sql 'SELECT time, steal_us, cpus FROM win_host_stats'", NULL, false, "",
		    false);
}

void chain_say_full(const struct chain_walk *w, struct chain_link *l, const struct chain_disk *d)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	char before[UNITS_MAX], after[UNITS_MAX];

	strbuf_addstr(&out, "the file system ");
	add_shown(&out, "", d->mount);
	if (d->read_only[1] && !d->read_only[0])
		strbuf_addstr(&out, " became read-only");
	else if (d->inodes_left[1] == 0 && d->inodes_left[0] > 0)
		strbuf_addf(&out, " has no inodes left, before %.0f", d->inodes_left[0]);
	else
		strbuf_addf(&out, " is full: %s left, before %s",
			    units_bytes((uint64_t)d->left[1], after, sizeof(after)),
			    units_bytes((uint64_t)d->left[0], before, sizeof(before)));
	set_values(l, d->left[0], d->left[1], "bytes");
	l->text = strbuf_take(&out);
	set_command(w, l, "disk --full", NULL, false, "", false);
}

void chain_say_unknown(const struct chain_walk *w, struct chain_link *l)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&out, "why ");
	add_who(&out, l->who);
	strbuf_addstr(
		&out,
		" took longer is not known: nothing that was recorded of it changed by as much");
	l->text = strbuf_take(&out);
	set_command(w, l, "waits", l->who, l->container, "", false);
}
