/* SPDX-License-Identifier: Apache-2.0 */
/* chain: the walk (chain.h). Its sentences: chain_say.c. */
#include "tools/explain/chain/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tools/explain/chain/chain_silent.h"
#include "tools/explain/chain/chain_walk.h"

#define DEEPEST    3   /* services on the way down */
#define ASKED_BACK 0.3 /* of the added time: then the one asked is not where it begins */
#define STARVED    0.5 /* of the time that answers took longer */
#define STOLEN     0.1 /* of all CPU time, by the hypervisor */
#define HUNG_NS    (5 * (int64_t)NSEC_PER_SEC) /* so long without an answer, a request hangs */

static const char *const WHATS[CHAIN_WHATS] = {[CHAIN_LOCK] = "lock",
					       [CHAIN_DISK] = "disk",
					       [CHAIN_NETWORK] = "network",
					       [CHAIN_PIPE] = "pipe",
					       [CHAIN_FAULT] = "page fault",
					       [CHAIN_SLEEP] = "sleep",
					       [CHAIN_CHILD] = "child",
					       [CHAIN_READY] = "cpu wait",
					       [CHAIN_QUOTA] = "quota",
					       [CHAIN_CPU] = "cpu",
					       [CHAIN_GC] = "gc",
					       [CHAIN_RECLAIM] = "memory"};

const char *chain_sure_name(enum chain_sure sure)
{
	static const char *const names[] = {"certain", "likely", "possible"};

	return names[sure];
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

static enum chain_sure less_sure(enum chain_sure a, enum chain_sure b)
{
	return a > b ? a : b;
}

struct chain_link *chain_link_add(struct chain_walk *w, const char *what, const struct chain_at *at,
				  double share, enum chain_sure sure)
{
	struct chain_link *l;

	if (w->out->n == CHAIN_LINKS)
		return NULL;
	l = &w->out->links[w->out->n++];
	*l = (struct chain_link){.what = what,
				 .who = mem_strdup(at->who),
				 .container = at->container,
				 .share = !w->r->known[DIFF_BEFORE] || share > CHAIN_TOO_MUCH ? -1 :
					  share > 1                                           ? 1 :
												share,
				 .sure = sure};
	return l;
}

/* ---- what it asked ---- */

bool chain_is_at(const struct chain_op *op, const struct chain_at *at)
{
	return op->container == at->container && !strcmp(op->who, at->who);
}

static double failed_more(const struct chain_requests *r, const struct chain_op *op)
{
	const double a = r->seconds[DIFF_AFTER], b = r->seconds[DIFF_BEFORE];

	return (a > 0 ? (double)op->w[DIFF_AFTER].failed / a : 0) -
	       (b > 0 ? (double)op->w[DIFF_BEFORE].failed / b : 0);
}

/* Does it ask itself? These are the requests that it answers, seen from their other end. */
static bool asks_itself(const struct chain_walk *w, const struct chain_at *at,
			const struct chain_op *asked)
{
	const struct chain_op *server = chain_server_of(w->r, asked);

	return server && chain_is_at(server, at) && !strcmp(server->service, asked->service);
}

/* The service of which it waited longest more than before, but for `except` (NULL: none); op NULL:
 * of none. */
static struct chain_asked asked_most(const struct chain_walk *w, const struct chain_at *at,
				     const struct chain_asked *except)
{
	const uint32_t place = chain_place_of(w->r, at->who, at->container);
	struct chain_asked best = {0};

	for (size_t i = 0; i < w->r->n; i++) {
		const struct chain_op *first = &w->r->ops[i];
		struct chain_asked sum = {0};
		double top = 0;

		if (first->server || first->place != place ||
		    (except && !strcmp(except->op->service, first->service)) ||
		    asks_itself(w, at, first))
			continue;
		for (size_t k = 0; k < w->r->n; k++) {
			const struct chain_op *op = &w->r->ops[k];
			double extra;

			if (op->server || op->place != place ||
			    strcmp(op->service, first->service) != 0)
				continue;
			extra = w->failing && !chain_is_slower(op) ? 0 :
								     chain_extra(w->r, op, true);
			if (chain_fails_more(op)) {
				sum.failed += most(0, failed_more(w->r, op));
				extra += CHAIN_FAILED_S * most(0, failed_more(w->r, op));
			}
			sum.extra += most(0, extra);
			sum.n += op->w[DIFF_AFTER].n;
			if (extra <= top)
				continue;
			top = extra;
			sum.op = op;
		}
		if (sum.op && sum.extra > best.extra)
			best = sum;
	}
	return best;
}

static const struct chain_op *server_of(const struct chain_walk *w, const struct chain_op *asked)
{
	return chain_server_of(w->r, asked);
}

/* Of all that it answered at that service, with failures. */
static double answered_extra(const struct chain_walk *w, const struct chain_op *server)
{
	double extra = 0;

	for (size_t i = 0; i < w->r->n; i++) {
		const struct chain_op *op = &w->r->ops[i];

		if (op->server && op->container == server->container &&
		    !strcmp(op->who, server->who) && !strcmp(op->service, server->service))
			extra += most(0, chain_extra(w->r, op, true) +
						 CHAIN_FAILED_S * most(0, failed_more(w->r, op)));
	}
	return extra;
}

/* ---- the walk ---- */

static enum chain_sure sure_of(const struct chain_walk *w, double share, double second)
{
	enum chain_sure sure = CHAIN_IS_POSSIBLE;

	if (share >= CHAIN_CERTAIN && share <= CHAIN_TOO_MUCH && second <= share / 2)
		sure = CHAIN_IS_CERTAIN;
	else if (share >= CHAIN_LIKELY)
		sure = CHAIN_IS_LIKELY;
	return less_sure(sure, w->sure);
}

static void walk(struct chain_walk *w, const struct chain_at *at, unsigned depth);

/* A container that restarts again and again is no news: by its rate before, of three restarts or
 * more, the window would have as many as it has (one more is chance). If they differ by less than
 * three, a loop may have just begun: such a loop slows down. */
static bool restarted_as_before(const struct chain_walk *w, const struct incident_container *before,
				uint64_t n)
{
	const double before_s = w->m->seconds[DIFF_BEFORE][CHAIN_HOST],
		     window_s = w->m->seconds[DIFF_AFTER][CHAIN_HOST],
		     had = before ? (double)incident_restarts(before)->n : 0,
		     by_rate = before_s > 0 && window_s > 0 ? had / before_s * window_s : had;

	return had >= 3 && by_rate + 1 >= (double)n && most(had, by_rate) >= (double)n + 3;
}

static bool restarts_more(const struct chain_walk *w, const struct incident_container *c)
{
	const uint64_t n = incident_restarts(c)->n;

	return n &&
	       !restarted_as_before(w, incidents_named(&w->x->incidents[DIFF_BEFORE], c->name), n);
}

static const struct incident_container *incident_at(const struct chain_walk *w,
						    const struct chain_at *at)
{
	const struct incident_container *c, *before;

	if (!w->x || !at->container)
		return NULL;
	c = incidents_named(&w->x->incidents[DIFF_AFTER], at->who);
	before = incidents_named(&w->x->incidents[DIFF_BEFORE], at->who);
	if (c && c->down_ns)
		return c;
	if (before && before->down_ns && !incident_restarts(before)->n &&
	    !(c && (c->up_ns || incident_restarts(c)->n)))
		return before; /* and still is */
	if (!c || (!incident_restarts(c)->n && !c->oom.n && !c->made_anew.n))
		return NULL;
	return restarted_as_before(w, before, incident_restarts(c)->n) ? NULL : c;
}

static bool link_incident(struct chain_walk *w, const struct chain_at *at)
{
	const struct incident_container *c = incident_at(w, at);
	struct chain_link *l;

	if (!c)
		return false;
	l = chain_link_add(w,
			   c->oom.n                ? "out of memory" :
			   incident_restarts(c)->n ? "restarted" :
			   c->down_ns              ? "stopped" :
						     "restarted",
			   at, -1, less_sure(CHAIN_IS_LIKELY, w->sure));
	if (l)
		chain_say_incident(w, l, c);
	return true;
}

static void link_unknown(struct chain_walk *w, const struct chain_at *at)
{
	struct chain_link *l = chain_link_add(w, "unknown", at, -1, CHAIN_IS_POSSIBLE);

	if (l)
		chain_say_unknown(w, l);
}

/* True: the client's added time is not that of the server's answers. */
static bool is_between(const struct chain_walk *w, const struct chain_asked *asked,
		       const struct chain_op *server)
{
	return server && answered_extra(w, server) < asked->extra / 2;
}

static void go_on(struct chain_walk *w, const struct chain_at *at, const struct chain_asked *asked,
		  double second, unsigned depth)
{
	const struct chain_op *server = server_of(w, asked->op);
	const double share = at->extra > 0 ? asked->extra / at->extra : -1;
	const bool names = !strcmp(asked->op->protocol, "dns");
	struct chain_at there = *at;
	struct chain_link *l;

	w->sure = sure_of(w, share, second);
	if (server)
		there = (struct chain_at){server->who, server->container, asked->extra};
	l = chain_link_add(w, names ? "resolving" : "asked", &there, share, w->sure);
	if (!l)
		return;
	chain_say_asked(w, l, asked, server);
	if (server && link_incident(w, &there))
		return;
	if (!server || is_between(w, asked, server)) {
		l = chain_link_add(w, "unknown", &there, -1, less_sure(CHAIN_IS_LIKELY, w->sure));
		if (l)
			l->what = chain_say_between(w, l, at, asked, server);
		return;
	}
	if (depth < DEEPEST && !chain_is_at(server, at))
		walk(w, &there, depth + 1);
}

/* Did it mostly fail, rather than take longer? What answers with failures at once lost no time. */
static bool is_failing(const struct chain_walk *w, const struct chain_at *at)
{
	double failed = 0;

	for (size_t i = 0; i < w->r->n; i++)
		if (w->r->ops[i].server && chain_is_at(&w->r->ops[i], at))
			failed += most(0, failed_more(w->r, &w->r->ops[i]));
	return CHAIN_FAILED_S * failed >= at->extra / 2;
}

static double not_opened(const struct chain_flow *f)
{
	const double before = f->refused[DIFF_BEFORE] + f->failed[DIFF_BEFORE],
		     after = f->refused[DIFF_AFTER] + f->failed[DIFF_AFTER];

	return after >= 3 && after >= 2 * before ? after - before : 0;
}

static double failures_of(const struct chain_walk *w, const struct chain_at *at)
{
	double n = 0;

	for (size_t i = 0; i < w->r->n; i++)
		if (chain_is_at(&w->r->ops[i], at) && w->r->ops[i].server)
			n += (double)w->r->ops[i].w[DIFF_AFTER].failed;
	return n;
}

/* Its requests failed since another did not take its connections: then no request was asked. */
static bool link_refused(struct chain_walk *w, const struct chain_at *at)
{
	const double failed = failures_of(w, at);
	const struct chain_flow *best = NULL;
	struct chain_at there = *at;
	struct chain_link *l;

	for (size_t i = 0; i < w->m->n_flows; i++) {
		const struct chain_flow *f = &w->m->flows[i];

		if (f->container == at->container && !strcmp(f->who, at->who) &&
		    not_opened(f) > 0 && (!best || not_opened(f) > not_opened(best)))
			best = f;
	}
	if (!best || failed <= 0 || not_opened(best) < CHAIN_COUNTS * failed)
		return false;
	for (size_t i = 0; i < w->r->n; i++)
		if (w->r->ops[i].server && !strcmp(w->r->ops[i].service, best->service))
			there = (struct chain_at){w->r->ops[i].who, w->r->ops[i].container, 0};
	w->sure = sure_of(w, not_opened(best) / failed, 0);
	l = chain_link_add(w, "refused", &there, -1, w->sure);
	if (l)
		chain_say_refused(w, l, at, best);
	if (strcmp(there.who, at->who) != 0)
		link_incident(w, &there);
	return true;
}

/* What the holder of a lock does meanwhile: it may have less of the added time than those that
 * wait. */
static void link_holder(struct chain_walk *w, const struct chain_at *at,
			const struct chain_cause *causes, size_t n, const struct chain_asked *asked,
			unsigned depth)
{
	for (size_t i = 0; i < n; i++) {
		struct chain_link *l;

		if (causes[i].what == CHAIN_LOCK || causes[i].extra < 0.1 * at->extra ||
		    (asked->op && asked->extra >= causes[i].extra))
			continue;
		l = chain_link_add(w, WHATS[causes[i].what], at, -1,
				   less_sure(CHAIN_IS_LIKELY, w->sure));
		if (l)
			chain_say_cause(w, l, &causes[i]);
		return;
	}
	if (asked->op && asked->extra >= 0.1 * at->extra)
		go_on(w, at, asked, 0, depth);
}

static void link_causes(struct chain_walk *w, const struct chain_at *at,
			const struct chain_cause *causes, size_t n, const struct chain_asked *asked,
			unsigned depth)
{
	const double share = causes[0].extra / at->extra;
	const double second = most(n > 1 ? causes[1].extra : 0, asked->extra) / at->extra;
	const bool lock = causes[0].what == CHAIN_LOCK;
	struct chain_link *l;

	w->sure = chain_is_apart(at, &causes[0]) ? CHAIN_IS_POSSIBLE :
						   sure_of(w, share, lock ? 0 : second);
	l = chain_link_add(w, WHATS[causes[0].what], at, share, w->sure);
	if (!l)
		return;
	chain_say_cause(w, l, &causes[0]);
	if (lock) {
		link_holder(w, at, causes, n, asked, depth);
	} else if (n > 1 && causes[1].extra >= CHAIN_COUNTS * at->extra) {
		l = chain_link_add(w, WHATS[causes[1].what], at, causes[1].extra / at->extra,
				   chain_is_apart(at, &causes[1]) ?
					   CHAIN_IS_POSSIBLE :
					   less_sure(CHAIN_IS_LIKELY, w->sure));
		if (l)
			chain_say_cause(w, l, &causes[1]);
	}
}

/* What else has a part of the added time, after what it asked most (rule 6). */
static void link_second(struct chain_walk *w, const struct chain_at *at,
			const struct chain_cause *cause, const struct chain_asked *first)
{
	const struct chain_asked other = asked_most(w, at, first);
	const double of_cause = cause ? cause->extra / at->extra : 0;
	const double of_other = other.op ? other.extra / at->extra : 0;
	struct chain_link *l;

	w->sure = less_sure(w->sure, of_cause >= CHAIN_LIKELY || of_other >= CHAIN_LIKELY ?
					     CHAIN_IS_LIKELY :
					     CHAIN_IS_POSSIBLE);
	if (of_other > of_cause && of_other >= CHAIN_COUNTS) {
		go_on(w, at, &other, 1, DEEPEST);
	} else if (of_cause >= CHAIN_COUNTS) {
		l = chain_link_add(w, WHATS[cause->what], at, of_cause,
				   chain_is_apart(at, cause) ? CHAIN_IS_POSSIBLE : w->sure);
		if (l)
			chain_say_cause(w, l, cause);
	}
}

/* It had no CPU: the answers that it did not come to read look late, though whom it asked was as
 * fast as before. */
static bool is_starved(const struct chain_walk *w, const struct chain_asked *asked,
		       const struct chain_cause *cause)
{
	const struct chain_op *server = server_of(w, asked->op);

	return (cause->what == CHAIN_READY || cause->what == CHAIN_QUOTA) &&
	       cause->extra >= STARVED * asked->extra && server && is_between(w, asked, server);
}

static void walk(struct chain_walk *w, const struct chain_at *at, unsigned depth)
{
	const struct chain_asked asked = asked_most(w, at, NULL);
	struct chain_cause causes[CHAIN_WHATS];
	const bool goes = asked.op && asked.extra >= CHAIN_GOES_ON * at->extra;
	const size_t n = chain_causes(w, at, goes, causes);
	const bool counts = n && causes[0].extra >= CHAIN_COUNTS * at->extra;

	if (goes && (!counts ||
		     (asked.extra >= causes[0].extra / 2 && !is_starved(w, &asked, &causes[0])))) {
		const enum chain_sure sure = w->sure;

		go_on(w, at, &asked, counts ? causes[0].extra / at->extra : 0, depth);
		w->sure = sure;
		link_second(w, at, counts ? causes : NULL, &asked);
	} else if (counts) {
		link_causes(w, at, causes, n, &asked, depth);
	} else if (asked.op && asked.extra >= CHAIN_COUNTS * at->extra) {
		go_on(w, at, &asked, 0, depth);
	} else if (!link_refused(w, at) && !link_incident(w, at) && !is_failing(w, at)) {
		link_unknown(w, at);
	}
}

/* ---- what is felt ---- */

struct felt {
	struct chain_at at;
	double added, failed;      /* seconds each second; failures each second */
	const struct chain_op *op; /* that was felt most */
	double of_op;
	bool slower, fails, wanted;   /* any of its operations */
	const struct chain_op *waits; /* what it waited for, if it waited for one above all */
};

static double felt_score(const struct felt *f)
{
	return f->added + CHAIN_FAILED_S * f->failed;
}

static void felt_add(struct felt *f, const struct chain_requests *r, const struct chain_op *op)
{
	const bool slower = chain_is_slower(op), fails = chain_fails_more(op);
	const double added = slower ? most(0, chain_extra(r, op, false)) : 0;
	const double failed = fails ? most(0, failed_more(r, op)) : 0;

	if (!slower && !fails)
		return;
	f->slower = f->slower || slower;
	f->fails = f->fails || fails;
	f->added += added;
	f->failed += failed;
	if (added + CHAIN_FAILED_S * failed <= f->of_op)
		return;
	f->of_op = added + CHAIN_FAILED_S * failed;
	f->op = op;
}

/* Of each who that answers (else asks) requests what was felt. The caller's. */
static struct felt *felt_all(const struct chain_requests *r, bool server, size_t *n)
{
	struct felt *all = mem_array(r->n_places + 1, sizeof(*all));
	cleanup_free uint32_t *of = mem_array(r->n_places + 1, sizeof(*of)); /* by place, + 1 */

	*n = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct chain_op *op = &r->ops[i];
		uint32_t *at = &of[op->place];

		if (op->server != server)
			continue;
		if (!*at) {
			all[*n] = (struct felt){.at = {op->who, op->container, 0}};
			*at = (uint32_t)++ * n;
		}
		felt_add(&all[*at - 1], r, op);
	}
	for (size_t i = 0; i < r->n; i++)
		if (r->ops[i].wanted && of[r->ops[i].place])
			all[of[r->ops[i].place] - 1].wanted = true;
	return all;
}

/* Whom it asked, and waited for. */
static void waits_find(const struct chain_walk *w, struct felt *f)
{
	const struct chain_asked asked = asked_most(w, &f->at, NULL);
	const struct chain_op *server = asked.op ? server_of(w, asked.op) : NULL;

	if (server && asked.extra >= ASKED_BACK * felt_score(f))
		f->waits = server;
}

static bool counts(const struct felt *f)
{
	return f->op && f->wanted;
}

static const struct felt *felt_first(const struct chain_walk *w, struct felt *all, size_t n)
{
	const struct felt *best = NULL, *any = NULL;

	for (size_t i = 0; i < n; i++)
		if (counts(&all[i]))
			waits_find(w, &all[i]);
	for (size_t i = 0; i < n; i++) {
		bool asked = false;

		if (!counts(&all[i]))
			continue;
		any = !any || felt_score(&all[i]) > felt_score(any) ? &all[i] : any;
		for (size_t k = 0; k < n && !asked; k++)
			asked = k != i && all[k].waits && chain_is_at(all[k].waits, &all[i].at);
		if (!asked && (!best || felt_score(&all[i]) > felt_score(best)))
			best = &all[i];
	}
	return best ? best : any;
}

static void others_add(struct chain *out, const struct felt *all, size_t n,
		       const struct felt *first)
{
	size_t said = 0;

	for (size_t i = 0; i < n; i++) {
		bool linked = &all[i] == first || !all[i].op;

		for (size_t k = 0; k < out->n && !linked; k++)
			linked = out->links[k].container == all[i].at.container &&
				 !strcmp(out->links[k].who, all[i].at.who);
		if (linked || ++said > 4)
			continue;
		strbuf_addstr(&out->others, out->others.len ? ", " : "");
		strbuf_addshown(&out->others, all[i].at.who, strlen(all[i].at.who));
	}
}

/* No requests changed: a container that restarted is felt, too; that it ended only where it was
 * asked about. */
static void felt_incident(struct chain_walk *w, const struct selection *narrow)
{
	const struct incidents *all = w->x ? &w->x->incidents[DIFF_AFTER] : NULL;

	for (size_t i = 0; all && i < all->n; i++) {
		const struct chain_at at = {all->rows[i].name, true, 0};
		const struct store_process_row p =
			select_process_row("", all->rows[i].name, all->rows[i].id);

		const struct incident_container *c = incident_at(w, &at);

		if (!c || !select_wants_process(narrow, &p))
			continue;
		if (c->down_ns && !c->oom.n && !restarts_more(w, c) &&
		    !(select_is_narrow(narrow) && incident_ended_badly(c)))
			continue;
		if (link_incident(w, &at))
			return;
	}
}

/* Requests that it answered, each second. */
static void rate_of(const struct chain_walk *w, const struct chain_at *at, double rate[2])
{
	for (int side = 0; side < 2; side++) {
		rate[side] = 0;
		for (size_t i = 0; i < w->r->n; i++)
			if (w->r->ops[i].server && chain_is_at(&w->r->ops[i], at) &&
			    w->r->seconds[side] > 0)
				rate[side] += (double)w->r->ops[i].w[side].n / w->r->seconds[side];
	}
}

/* Rule 7. */
static void link_load(struct chain_walk *w, const struct chain_at *at)
{
	double rate[2];
	struct chain_link *l;

	rate_of(w, at, rate);
	if (rate[0] <= 0 || rate[1] < CHAIN_LOAD * rate[0])
		return;
	w->sure = less_sure(CHAIN_IS_LIKELY, w->sure);
	l = chain_link_add(w, "load", at, -1, w->sure);
	if (l)
		chain_say_load(w, l, rate);
}

/* Rule 10. */
static void link_stolen(struct chain_walk *w)
{
	const struct chain_at host = {"host", false, 0};
	const double *share = w->m->stolen;
	struct chain_link *l;

	if (share[DIFF_AFTER] < STOLEN || share[DIFF_AFTER] < 2 * share[DIFF_BEFORE])
		return;
	w->sure = less_sure(CHAIN_IS_LIKELY, w->sure);
	l = chain_link_add(w, "steal", &host, -1, w->sure);
	if (l)
		chain_say_stolen(w, l);
}

/* Rule 8. */
static void link_full(struct chain_walk *w)
{
	for (size_t i = 0; i < w->m->n_disks; i++) {
		const struct chain_at at = {w->m->disks[i].mount, false, 0};
		struct chain_link *l;

		if (!chain_disk_stops(&w->m->disks[i]))
			continue;
		l = chain_link_add(w, "disk full", &at, -1, less_sure(CHAIN_IS_LIKELY, w->sure));
		if (l)
			chain_say_full(w, l, &w->m->disks[i]);
		return;
	}
}

static void begin(struct chain_walk *w, const struct felt *f)
{
	struct chain_at at = f->at;
	struct chain_link *l;

	if (!w->r->known[DIFF_BEFORE])
		w->sure = CHAIN_IS_LIKELY;
	l = chain_link_add(w, f->slower ? "slower" : "failing", &at, -1, w->sure);
	at.extra = felt_score(f);
	if (!l)
		return;
	chain_say_felt(w, l, f->op, f->slower, f->fails);
	w->failing = !f->slower;
	if (f->op->server && link_incident(w, &at))
		return;
	if (f->op->server && !f->fails)
		link_load(w, &at);
	if (f->slower)
		link_stolen(w);
	walk(w, &at, 0);
	if (f->fails)
		link_full(w);
}

/* Requests that have had no answer for long. */
static double link_hanging(struct chain_walk *w, const struct chain_at *at)
{
	struct reqrunning hung = {0};
	struct err ignored = {0};
	const struct reqrun *longest = NULL;
	struct chain_link *l;
	size_t n = 0;

	if (reqrunning_hung(w->m->wide[DIFF_AFTER], HUNG_NS, &hung, &ignored))
		hung.n = 0;
	for (size_t i = 0; i < hung.n; i++) {
		const struct reqrun_end *end = &hung.rows[i].server;

		if (!end->comm || at->container != (*end->container != '\0') ||
		    strcmp(at->container ? end->container : end->comm, at->who) != 0)
			continue;
		longest = !longest || hung.rows[i].lasts_ns > longest->lasts_ns ? &hung.rows[i] :
										  longest;
		n++;
	}
	l = longest ? chain_link_add(w, "hanging", at, -1, w->sure) : NULL;
	if (l)
		chain_say_hanging(w, l, longest, n);
	reqrunning_release(&hung);
	return (double)n;
}

/* Who had asked it, and asks nothing any longer either; NULL. */
static const struct chain_op *asker_gone(const struct chain_walk *w, const struct chain_at *at)
{
	const struct chain_op *best = NULL;

	for (size_t i = 0; i < w->r->n; i++) {
		const struct chain_op *op = &w->r->ops[i], *server;

		if (op->server || 10 * op->w[DIFF_AFTER].n > op->w[DIFF_BEFORE].n ||
		    (best && best->w[DIFF_BEFORE].n >= op->w[DIFF_BEFORE].n))
			continue;
		server = server_of(w, op);
		if (server && chain_is_at(server, at))
			best = op;
	}
	return best;
}

/* Rule 9. */
static void begin_silent(struct chain_walk *w, const struct chain_silence *s)
{
	struct chain_at at = {s->who, s->container, 0};
	struct chain_link *l = chain_link_add(w, "silent", &at, -1, CHAIN_IS_CERTAIN);
	struct chain_cause causes[CHAIN_WHATS];
	size_t n;

	if (!l)
		return;
	chain_say_silent(w, l, s);
	if (link_incident(w, &at))
		return;
	at.extra = link_hanging(w, &at);
	if (at.extra <= 0) {
		l = chain_link_add(w, "unknown", &at, -1, CHAIN_IS_POSSIBLE);
		if (l)
			chain_say_unasked(w, l, s->server ? asker_gone(w, &at) : NULL);
		return;
	}
	n = chain_causes(w, &at, false, causes);
	if (n && causes[0].extra >= CHAIN_COUNTS * at.extra)
		link_causes(w, &at, causes, n, &(struct chain_asked){0}, DEEPEST);
}

static bool answers(const struct chain_requests *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->ops[i].server && r->ops[i].wanted)
			return true;
	return false;
}

/* ---- what is missing ---- */

static void missing_add(struct chain_walk *w)
{
	static const char *const tells[CHAIN_FAMILIES] = {
		[CHAIN_CPUS] = "which function ran",
		[CHAIN_OFFCPU] = "locks, disks and CPUs that threads waited for",
		[CHAIN_HOST] = "memory, quotas, restarts",
		[CHAIN_NET] = "lost packets, refused connections",
		[CHAIN_L7] = "requests and their latency"};

	struct strbuf *out = &w->out->missing;
	const char *before = "in the time before: ";

	for (int f = 0; f < CHAIN_FAMILIES; f++)
		if (!w->m->families[DIFF_AFTER][f])
			strbuf_addf(out, "%s%s (%s)", out->len ? ", " : "", CHAIN_FAMILY_NAMES[f],
				    tells[f]);
	for (int f = 0; f < CHAIN_FAMILIES; f++) {
		if (!w->m->families[DIFF_AFTER][f] || w->m->families[DIFF_BEFORE][f])
			continue;
		strbuf_addf(out, "%s%s%s", out->len ? ", " : "", before, CHAIN_FAMILY_NAMES[f]);
		before = "";
	}
}

/* ---- all of it ---- */

/* The two windows of the whole host, without filters. */
static int wide_select(const char *store, struct selection *const narrow[2],
		       struct selection *wide[2], struct err *e)
{
	int rc = 0;

	if (!select_is_narrow(narrow[DIFF_AFTER])) {
		memcpy(wide, narrow, 2 * sizeof(*wide));
		return 0;
	}
	for (int side = 0; side < 2 && !rc; side++) {
		struct explain_span span;
		struct select_args args = {0};

		explain_span_set(&args, &span, narrow[side]->from_ns, narrow[side]->to_ns);
		rc = select_new(&args, store, NULL, 0, true, &wide[side], e);
		if (!rc)
			select_share(wide[side], narrow[side]);
	}
	return rc;
}

struct making {
	const char *store;
	struct selection *const *narrow, *wide[2];
	const struct explain *x;
	struct explain host; /* made here where `x` is not of the whole host */
	struct chain_requests requests;
	struct chain_measures measures;
	struct chain_walk walk;
};

/* What was lost to what, which takes longest to read: only where something was felt. */
static int measure(struct making *g, bool felt, struct err *e)
{
	const bool narrow = select_is_narrow(g->narrow[DIFF_AFTER]);
	int rc = 0;

	g->walk.x = g->x;
	if (felt && (!g->x || narrow)) {
		rc = explain_cpu(g->wide, &g->host, e);
		g->walk.x = rc ? NULL : &g->host;
	}
	return rc ? rc : chain_measures_read(g->wide, felt, g->walk.x, &g->measures, e);
}

static int find(struct making *g, struct err *e)
{
	struct chain_walk *w = &g->walk;
	const bool server = answers(w->r);
	size_t n;
	struct felt *all = felt_all(w->r, server, &n);
	const struct felt *first = felt_first(w, all, n);
	struct chain_silence silence;
	const bool silent = !first && chain_silence_find(w->r, server, &silence);
	int rc = measure(g, first || silent, e);

	for (size_t i = 0; i < w->r->n; i++)
		if (w->r->ops[i].wanted && w->r->ops[i].server == server)
			w->out->answered += w->r->ops[i].w[DIFF_AFTER].n;
	if (!rc && first)
		begin(w, first);
	else if (!rc && silent)
		begin_silent(w, &silence);
	else if (!rc)
		felt_incident(w, g->narrow[DIFF_AFTER]);
	others_add(w->out, all, n, first);
	missing_add(w);
	free(all);
	return rc;
}

static void requests_take(struct making *g, struct explain_asked *from)
{
	g->requests = from->requests;
	from->requests = (struct chain_requests){0};
	from->read = false;
}

int chain_make(const char *store, struct explain *windows, const struct explain *x,
	       const char *hint_store, struct chain *out, struct err *e)
{
	struct selection *const *narrow = windows->sel;
	struct making g = {.store = store, .narrow = narrow, .x = x};
	int rc;

	*out = (struct chain){0};
	g.walk = (struct chain_walk){
		.out = out, .r = &g.requests, .m = &g.measures, .hint_store = hint_store};
	rc = wide_select(store, narrow, g.wide, e);
	if (!rc && windows->asked.read)
		requests_take(&g, &windows->asked);
	else if (!rc)
		rc = chain_requests_read(g.wide, narrow[DIFF_AFTER], &g.requests, e);
	out->requests_known = g.requests.known[DIFF_BEFORE] && g.requests.known[DIFF_AFTER];
	if (!rc)
		rc = find(&g, e);
	chain_measures_release(&g.measures);
	chain_requests_release(&g.requests);
	explain_release(&g.host);
	for (int side = 0; side < 2; side++)
		if (g.wide[side] != narrow[side])
			select_free(g.wide[side]);
	return rc;
}

void chain_release(struct chain *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->links[i].who);
		free(c->links[i].text);
		free(c->links[i].command);
	}
	strbuf_release(&c->missing);
	strbuf_release(&c->others);
	*c = (struct chain){0};
}
