/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitbrief.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "schema/store/model/stored.h"
#include "tools/waits/waitcells.h"

#define FACTS       3        /* told at most, and as many quotas */
#define LEAST_NS    10000000 /* a fact of less is not told: 10 ms */
#define TIMER_PART  10       /* what a timer ended is added from this part of the others on */
#define LEAST_SHARE 20       /* nor one of less than this part of the largest */

static const struct {
	const char *reason, *what;
} IN_THE_WAY[] = {
	{"run queue", "a CPU"},        {"lock", "locks"},          {"disk", "the disk"},
	{"page fault", "page faults"}, {"network", "the network"}, {"memory", "memory"},
};

struct fact {
	const char *who, *what;
	bool own;              /* "its WAL" */
	uint64_t ns, timer_ns; /* timer_ns: more of it, which a timer ended */
};

struct facts {
	struct fact *v;
	size_t n, cap;
};

static void fact_add(struct facts *f, const struct waitsum_row *r, const char *what, bool own,
		     uint64_t ns, uint64_t timer_ns)
{
	const char *who = *r->container ? r->container : r->comm;

	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->v[i].who, who) && !strcmp(f->v[i].what, what)) {
			f->v[i].ns += ns;
			f->v[i].timer_ns += timer_ns;
			return;
		}
	mem_grow(f->v, f->n, f->cap);
	f->v[f->n++] =
		(struct fact){.who = who, .what = what, .own = own, .ns = ns, .timer_ns = timer_ns};
}

static void fact_of(struct facts *f, const struct waitsum_row *r)
{
	const char *what = NULL;
	uint64_t ns = r->total_ns;

	if (r->idle || r->partial)
		return;
	const uint64_t timer_ns = r->timer_ns < ns ? r->timer_ns : ns;

	ns -= timer_ns;
	for (size_t i = 0; i < ARRAY_SIZE(IN_THE_WAY); i++)
		if (!strcmp(IN_THE_WAY[i].reason, r->reason))
			what = IN_THE_WAY[i].what;
	if (r->purpose && what) {
		fact_add(f, r, r->purpose, true, r->purpose_ns < ns ? r->purpose_ns : ns, 0);
		ns -= r->purpose_ns < ns ? r->purpose_ns : ns;
	}
	if (what && !strcmp(r->reason, "lock")) {
		uint64_t ruled_ns = r->ruled_ns < ns ? r->ruled_ns : ns;

		fact_add(f, r, what, false, ruled_ns, ruled_ns ? timer_ns : 0);
		fact_add(f, r, "futexes", false, ns - ruled_ns, ruled_ns ? 0 : timer_ns);
	} else if (what) {
		fact_add(f, r, what, false, ns, timer_ns);
	}
}

static int most_time(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return strcmp(x->who, y->who) ? strcmp(x->who, y->who) : strcmp(x->what, y->what);
}

static void say_facts(struct strbuf *out, struct facts *f)
{
	char time[24];

	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), most_time);
	for (size_t i = 0; i < f->n && i < FACTS; i++) {
		const struct fact *x = &f->v[i];

		if (x->ns < LEAST_NS || x->ns * LEAST_SHARE < f->v[0].ns)
			return;
		strbuf_addstr(out, i ? ", " : "");
		if (!i || strcmp(x->who, f->v[i - 1].who)) {
			waitcell_addname(out, *x->who ? x->who : "the host");
			strbuf_addstr(out, i ? " " : " waited ");
		}
		strbuf_addf(out, "%s %s %s%s", units_ns(x->ns, time, sizeof(time)),
			    strcmp(x->what, "page faults") && strcmp(x->what, "futexes") ? "for" :
											   "in",
			    x->own ? "its " : "", x->what);
		if (x->timer_ns && x->timer_ns >= x->ns / TIMER_PART)
			strbuf_addf(out, " (and %s that a timer ended)",
				    units_ns(x->timer_ns, time, sizeof(time)));
	}
}

void waitbrief_held_name(struct strbuf *out, const struct waitheld_row *h)
{
	waitcell_addname(out, *h->container ? h->container : h->cgroup);
}

static void say_held(struct strbuf *out, const struct waitheld *h)
{
	bool any = strbuf_str(out)[0];
	char time[24];

	for (size_t i = 0, told = 0; i < h->n && told < FACTS; i++) {
		const struct waitheld_row *r = &h->rows[i];

		if (!r->wanted || r->throttled_ns < LEAST_NS)
			continue;
		strbuf_addstr(out, told ? ", " : any ? "; " : "");
		waitbrief_held_name(out, r);
		strbuf_addf(out, " lost %s to its CPU quota, in %llu of %llu periods",
			    units_ns(r->throttled_ns, time, sizeof(time)),
			    (unsigned long long)r->throttled, (unsigned long long)r->periods);
		told++;
	}
}

void waitbrief_waits(struct strbuf *out, const struct waitsum *w)
{
	struct facts f = {0};

	for (size_t i = 0; i < w->n; i++)
		fact_of(&f, &w->rows[i]);
	say_facts(out, &f);
	say_held(out, &w->held);
	free(f.v);
}

static void say_end(struct strbuf *out, const struct waitpairs_end *x)
{
	waitcell_addname(out, x->comm);
	if (*x->container) {
		strbuf_addstr(out, " of ");
		waitcell_addname(out, x->container);
	}
}

static bool is_same(const struct waitpairs_end *a, const struct waitpairs_end *b)
{
	return !strcmp(a->comm, b->comm) && !strcmp(a->container, b->container);
}

/* Those of the first who waited, as far as they are threads and had a twentieth of it. */
static void say_others(struct strbuf *out, const struct waitpairs *w, const char *did)
{
	const struct waitpairs_row *first = &w->rows[0];
	size_t told = 0;

	for (size_t i = 0; i < w->n && told < FACTS; i++) {
		const struct waitpairs_row *r = &w->rows[i];

		if (!is_same(&r->who, &first->who) || strcmp(r->reason, first->reason))
			return;
		if (!*r->by.comm || r->kind != STORE_WAKE_THREAD ||
		    r->total_ns * LEAST_SHARE < r->whole_ns)
			continue;
		strbuf_addstr(out, told++ ? ", " : did);
		if (is_same(&r->who, &r->by))
			strbuf_addstr(out, r->who.n_processes == 1 ? "its own threads" :
								     "processes of its name");
		else
			say_end(out, &r->by);
		strbuf_addf(out, " (%.0f %%)", 100 * (double)r->total_ns / (double)r->whole_ns);
	}
}

void waitbrief_neighbours(struct strbuf *out, const struct waitpairs *w)
{
	char time[24];

	if (w->n && w->rows[0].whole_ns >= LEAST_NS) {
		say_end(out, &w->rows[0].who);
		strbuf_addf(out, " waited %s %s for a CPU", w->estimated ? "about" : "at least",
			    units_ns(w->rows[0].whole_ns, time, sizeof(time)));
		say_others(out, w, ", meanwhile had by ");
	}
	say_held(out, &w->held);
}

void waitbrief_wakers(struct strbuf *out, const struct waitpairs *w)
{
	struct strbuf by cleanup_strbuf = STRBUF_INIT;
	char time[24];

	if (!w->n || w->rows[0].whole_ns < LEAST_NS)
		return;
	say_others(&by, w, ", ended by ");
	if (!strbuf_str(&by)[0])
		return;
	say_end(out, &w->rows[0].who);
	strbuf_addf(out, "'s waits (%s): %s%s", w->rows[0].reason,
		    units_ns(w->rows[0].whole_ns, time, sizeof(time)), strbuf_str(&by));
}
