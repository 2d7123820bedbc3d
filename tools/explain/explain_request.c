/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/explain_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "schema/store/model/kinds.h"
#include "tools/explain/explain_java.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold.h"
#include "tools/fold/ranking/top.h"
#include "tools/requests/traces.h"
#include "tools/select/askrows.h"
#include "tools/waits/waitcells.h"
#include "tools/waits/waitpairs.h"
#include "tools/waits/waitsum.h"

#define READY "run queue"

static struct reqpart *part_add(struct reqexplain *x, enum reqpart_what what, uint64_t ns,
				uint64_t n)
{
	mem_grow(x->parts, x->n, x->cap);
	x->parts[x->n] = (struct reqpart){.what = what, .ns = ns, .n = n};
	return &x->parts[x->n++];
}

static char *text(const char *s)
{
	return s && *s ? mem_strdup(s) : NULL;
}

/* ---- on the CPU ---- */

static int add_cpu(struct reqexplain *x, const struct selection *sel, struct err *e)
{
	const struct fold_opts opts = {.kind = STORE_KIND_CPU, .tags = &x->tags.tags, .flat = true};
	struct flame_tree tree = {0};
	struct fold *f = NULL;
	struct reqpart *p;
	struct top top;
	int rc = fold_make(sel, &opts, &f, e);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	top_of_flat(&top, &tree, f);
	p = part_add(x, REQPART_CPU, f->nodes[0].total_ns, f->nodes[0].total_samples);
	p->function = top.n_rows ? text(tree.frames[top.rows[0].frame].name) : NULL;
	top_release(&top);
	flame_tree_release(&tree);
	fold_free(f);
	return 0;
}

/* ---- waits ---- */

/* Who had the CPU while threads of this command were ready: the one that had most of it. */
static int neighbour_find(struct reqpart *p, const struct selection *sel, struct err *e)
{
	const struct waitpairs_row *best = NULL;
	struct waitpairs *w = NULL;
	int rc = waitpairs_make(sel, WAITPAIRS_NEIGHBOURS, &w, e);

	if (rc == -ENOENT || rc == -ENODATA)
		return 0;
	for (size_t i = 0; !rc && i < w->n; i++)
		if (!strcmp(w->rows[i].who.comm, p->who) && *w->rows[i].by.comm &&
		    (!best || w->rows[i].total_ns > best->total_ns))
			best = &w->rows[i];
	if (best)
		p->by = text(*best->by.container ? best->by.container : best->by.comm);
	if (!rc)
		waitpairs_free(w);
	return rc;
}

static int add_waits(struct reqexplain *x, const struct selection *sel, struct err *e)
{
	struct waitsum *w = NULL;
	int rc = waitsum_make_tagged(sel, WAITSUM_BY_COMMAND, &x->tags.tags, &w, e);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; !rc && i < w->n; i++) {
		const struct waitsum_row *r = &w->rows[i];
		bool ready = !strcmp(r->reason, READY);
		struct reqpart *p =
			part_add(x, ready ? REQPART_READY : REQPART_WAIT, r->total_ns, r->n);

		p->who = mem_strdup(r->comm);
		p->reason = mem_strdup(r->reason);
		p->function = text(r->function);
		p->object = text(r->object);
		p->peer = text(r->peer);
		p->by = text(r->object ? r->by : NULL);
		p->by_tid = p->by ? r->by_tid : 0;
		if (ready)
			rc = neighbour_find(p, sel, e);
	}
	waitsum_free(w);
	return rc;
}

/* ---- what no sample tells ---- */

static const char SAMPLED[] =
	"SELECT DISTINCT x.tag, t.process FROM request_sample_row x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task"
	" WHERE x.ts + t0.value BETWEEN ?1 AND ?2";
static const char FAMILIES[] =
	"SELECT DISTINCT family FROM run WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";

struct tagged { /* what it took, of each tag; in the end of those that have no sample */
	struct idmap us, pid;
	const struct store_dict *dict;
	struct reqexplain *x;
};

static void tag_take(void *ctx, uint64_t key, uint32_t pid, int64_t total_us)
{
	struct tagged *g = ctx;

	idmap_set(&g->us, key, (uint64_t)total_us);
	idmap_set(&g->pid, key, pid);
}

static void sampled_take(void *ctx, sqlite3_stmt *st)
{
	struct tagged *g = ctx;
	int64_t id = sqlite3_column_int64(st, 1);
	uint64_t key, us, pid, ns;

	if (id <= 0 || (uint64_t)id >= g->dict->n_processes)
		return;
	key = store_tag_key((uint64_t)sqlite3_column_int64(st, 0), g->dict->processes[id].pid);
	if (!idmap_get(&g->us, key, &us) || !idmap_get(&g->pid, key, &pid))
		return;
	idmap_del(&g->us, key);
	if (!idmap_get(&g->x->chosen.answering, explain_chosen_key((uint32_t)pid, (int64_t)us),
		       &ns))
		return;
	if (!g->x->n || g->x->parts[0].what != REQPART_ANSWERING)
		part_add(g->x, REQPART_ANSWERING, 0, 0);
	g->x->parts[0].ns += ns;
	g->x->parts[0].n++;
}

static void family_take(void *ctx, sqlite3_stmt *st)
{
	struct tagged *g = ctx;

	g->x->cpu = g->x->cpu || !strcmp(askrows_text(st, 0), "cpu");
	g->x->offcpu = g->x->offcpu || !strcmp(askrows_text(st, 0), "offcpu");
}

/* Called first: the part of answers comes before all others. */
static int add_unsampled(struct reqexplain *x, const struct selection *sel, struct tagged *g,
			 struct err *e)
{
	const struct askrows_part parts[] = {{SAMPLED, sampled_take, g},
					     {FAMILIES, family_take, g}};
	int rc = askrows_each(sel, &g->dict, parts, ARRAY_SIZE(parts), e);
	uint64_t ns = 0, n = 0;

	for (size_t i = 0; i < g->us.cap; i++)
		if (g->us.slots[i].used) {
			ns += g->us.slots[i].value * 1000;
			n++;
		}
	if (n && !x->tags.goroutines) /* which wait without a thread */
		part_add(x, REQPART_UNSAMPLED, ns, n);
	return rc;
}

static void add_shared(struct reqexplain *x)
{
	uint64_t tagged = (uint64_t)x->tags.total_us * 1000;
	struct reqpart *p;

	if (x->chosen.n <= x->tags.n || x->took_ns <= tagged)
		return;
	p = part_add(x, x->chosen.server ? REQPART_SHARED : REQPART_ELSEWHERE, x->took_ns - tagged,
		     x->chosen.n - x->tags.n);
	if (!x->chosen.server)
		p->service = text(traces_row(&x->chosen.traces, x->chosen.nodes[0])->service);
}

static uint64_t limit_to(uint64_t *ns, uint64_t left)
{
	*ns = *ns < left ? *ns : left;
	return left - *ns;
}

/* Nothing is missing: these were short. */
static void unsampled_drop(struct reqexplain *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->parts[i].what == REQPART_UNSAMPLED && !x->parts[i].ns) {
			x->parts[i] = x->parts[--x->n];
			return;
		}
}

/* Waits are exact, and so is the time of whole requests. CPU time is an estimate, and a short
 * request may well have no sample: neither is more than what is left. The rest is untagged. */
static void add_untagged(struct reqexplain *x)
{
	static const enum reqpart_what limited[] = {REQPART_CPU, REQPART_ANSWERING,
						    REQPART_UNSAMPLED};
	uint64_t left = x->took_ns;

	for (size_t i = 0; i < x->n; i++)
		if (x->parts[i].what == REQPART_WAIT || x->parts[i].what == REQPART_READY ||
		    x->parts[i].what == REQPART_SHARED || x->parts[i].what == REQPART_ELSEWHERE)
			left -= x->parts[i].ns < left ? x->parts[i].ns : left;
	for (size_t k = 0; k < ARRAY_SIZE(limited); k++)
		for (size_t i = 0; i < x->n; i++)
			if (x->parts[i].what == limited[k])
				left = limit_to(&x->parts[i].ns, left);
	unsampled_drop(x);
	if (left)
		part_add(x, REQPART_UNTAGGED, left, 0);
}

/* ---- what was asked ---- */

static struct reqpart *asked_part(struct reqexplain *x, const struct trace_row *q)
{
	struct reqpart *p;

	for (size_t i = 0; i < x->n; i++) {
		p = &x->parts[i];
		if (p->what == REQPART_ASKED && !strcmp(p->operation, q->operation) &&
		    !strcmp(p->service, q->service) && !strcmp(p->protocol, q->protocol))
			return p;
	}
	p = part_add(x, REQPART_ASKED, 0, 0);
	p->operation = mem_strdup(q->operation);
	p->service = mem_strdup(q->service);
	p->protocol = mem_strdup(q->protocol);
	return p;
}

static void add_asked(struct reqexplain *x)
{
	const struct traces *t = &x->chosen.traces;

	for (size_t i = 0; i < x->chosen.n; i++) {
		const struct trace_node *n = &t->nodes[x->chosen.nodes[i]];

		for (uint32_t c = n->child; c != TRACE_NONE; c = t->nodes[c].next) {
			const struct trace_node *child = &t->nodes[c];
			struct reqpart *p = asked_part(x, &t->rows[child->asked]);

			p->n++;
			p->ns += traces_us(t, c) > 0 ? (uint64_t)traces_us(t, c) * 1000 : 0;
			if (!p->who && child->answered != TRACE_NONE)
				p->who = text(t->rows[child->answered].comm);
		}
	}
}

/* ---- what Java says that it waited for ---- */

static int add_java(struct reqexplain *x, const struct selection *sel, struct err *e)
{
	struct explain_java java;
	int rc = explain_java(sel, &x->chosen, &java, e);

	for (size_t i = 0; !rc && i < java.n; i++) {
		const struct explain_java_lock *l = &java.locks[i];
		struct reqpart *p = part_add(x, REQPART_JAVA, l->ns, l->n);

		p->who = mem_strdup(l->comm);
		p->reason = mem_strdup(l->monitor ? "monitor" : "lock");
		p->object = text(l->class_name);
		p->by = text(l->owner);
		p->function = text(l->place);
	}
	explain_java_release(&java);
	return rc;
}

/* ---- whole ---- */

int explain_request_within(enum reqpart_what what)
{
	return what == REQPART_JAVA ? 1 : what == REQPART_ASKED ? 2 : 0;
}

static int most_first(const void *a, const void *b)
{
	const struct reqpart *x = a, *y = b;
	const int xa = explain_request_within(x->what), ya = explain_request_within(y->what);

	if (xa != ya)
		return xa - ya;
	return x->ns != y->ns ? x->ns < y->ns ? 1 : -1 : (int)x->what - (int)y->what;
}

int explain_request(const struct selection *sel, const char *request, const char *slower,
		    struct reqexplain *out, struct err *e)
{
	struct tagged g = {.x = out};
	int rc;

	*out = (struct reqexplain){.tags = {.slower_us = -1, .most_us = -1}};
	rc = reqtags_slower(sel, request, slower, &out->tags.slower_us, e);
	if (!rc)
		rc = explain_chosen(sel, request, out->tags.slower_us, -1, &out->chosen, e);
	if (!rc)
		rc = reqtags_of(sel, request, &out->chosen.pids, tag_take, &g, &out->tags, e);
	if (!rc && (!out->chosen.n || (out->tags.go && !out->tags.n)))
		rc = reqtags_nothing(&out->tags, sel, request, e);
	out->took_ns = out->chosen.took_ns;
	if (!rc)
		rc = add_unsampled(out, sel, &g, e);
	if (!rc && out->tags.n)
		rc = add_cpu(out, sel, e);
	if (!rc && out->tags.n)
		rc = add_waits(out, sel, e);
	if (!rc) {
		add_shared(out);
		add_untagged(out);
		add_asked(out);
		rc = add_java(out, sel, e);
	}
	idmap_release(&g.us);
	idmap_release(&g.pid);
	if (out->n)
		qsort(out->parts, out->n, sizeof(*out->parts), most_first);
	return rc;
}

void explain_request_release(struct reqexplain *x)
{
	for (size_t i = 0; i < x->n; i++) {
		struct reqpart *p = &x->parts[i];
		char *const texts[] = {p->who, p->reason,    p->function, p->object,  p->peer,
				       p->by,  p->operation, p->service,  p->protocol};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			free(texts[k]);
	}
	free(x->parts);
	reqtags_release(&x->tags);
	explain_chosen_release(&x->chosen);
	*x = (struct reqexplain){0};
}

/* ---- words ---- */

const char *explain_request_what(enum reqpart_what what)
{
	static const char *const words[] = {"cpu",   "wait",      READY,       "untagged",
					    "asked", "answering", "unsampled", "shared",
					    "java",  "elsewhere"};

	return words[what];
}

static void add_shown(struct strbuf *out, const char *before, const char *name)
{
	if (!name)
		return;
	strbuf_addstr(out, before);
	strbuf_addshown(out, name, strlen(name));
}

/* Reasons as schema/store/read/waits.h and tools/waits/waitrules.h call them; any other one follows
 * "waited:". */
static void say_wait(const struct reqpart *p, struct strbuf *out)
{
	/* clang-format off */
	static const char *const words[][2] = {
		{"lock", "waited for a lock"}, {"disk", "waited for the disk"}, {"network", "waited for the network"}, {"pipe", "waited for a pipe"},
		{"poll", "waited in poll"}, {"sleep", "slept"}, {"page fault", "waited for a page fault"}, {"stop", "was stopped"},
		{"child", "waited for a child"}, {"memory", "waited for memory"}, {"other", "waited"},
	};
	/* clang-format on */
	const char *said = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(p->reason, words[i][0]))
			said = words[i][1];
	strbuf_addf(out, "%s %s", p->who, said ? said : "waited: ");
	if (!said)
		strbuf_addshown(out, p->reason, strlen(p->reason));
	if (p->function || p->object || p->by)
		strbuf_addstr(out, "; the largest part");
	add_shown(out, " in ", p->function);
	add_shown(out, " on ", p->object);
	add_shown(out, " of ", p->peer);
	add_shown(out, ", ended by ", p->by);
	if (p->by_tid)
		strbuf_addf(out, " %u", p->by_tid);
}

static void say_java(const struct reqpart *p, struct strbuf *out)
{
	strbuf_addf(out, "%s waited %llu time%s for ", p->who, (unsigned long long)p->n,
		    p->n == 1 ? "" : "s");
	add_shown(out, strcmp(p->reason, "monitor") ? "" : "monitor ", p->object);
	add_shown(out, ", which thread ", p->by);
	if (p->by)
		strbuf_addstr(out, " had");
	add_shown(out, ", in ", p->function);
}

static void say_asked(const struct reqpart *p, struct strbuf *out)
{
	strbuf_addf(out, "asked %llu time%s: ", (unsigned long long)p->n, p->n == 1 ? "" : "s");
	strbuf_addshown(out, p->operation, strlen(p->operation));
	add_shown(out, ", of ", p->who ? p->who : p->service);
	strbuf_addf(out, " (%s", p->protocol);
	add_shown(out, ", ", p->who ? p->service : NULL);
	strbuf_addstr(out, ")");
}

static void say_untagged(const struct reqexplain *x, struct strbuf *out)
{
	strbuf_addstr(out, "untagged: no sample shows what was done in it");
	if (!x->offcpu)
		strbuf_addstr(out, ", since waits were not recorded (family offcpu)");
	else if (!x->cpu)
		strbuf_addstr(out, ", since CPU time was not recorded (family cpu)");
	else if (x->tags.goroutines)
		strbuf_addstr(
			out,
			"; a goroutine waits for a lock, a channel, a connection or its turn without a thread");
	else
		strbuf_addstr(
			out,
			": waits whose stacks were not taken, and what other threads did for it");
}

void explain_request_head(const struct reqexplain *x, const char *request, struct strbuf *out)
{
	const struct reqtags shown = {.n = x->chosen.n,
				      .slower_us = x->tags.slower_us,
				      .most_us = -1,
				      .total_us = (int64_t)(x->took_ns / 1000)};
	char *text = reqtags_text(&shown, request);

	strbuf_addstr(out, text);
	free(text);
	if (!x->chosen.n_services)
		return;
	strbuf_addstr(out, x->chosen.server ? ", answered by " : ", as seen by ");
	strbuf_addshown(out, x->chosen.services[0].comm, strlen(x->chosen.services[0].comm));
}

void explain_request_others(const struct reqexplain *x, struct strbuf *out)
{
	char time[UNITS_MAX];

	for (size_t i = 1; i < x->chosen.n_services; i++) {
		const struct explain_service *s = &x->chosen.services[i];

		if (!s->n)
			continue;
		strbuf_addstr(out,
			      out->len ? "; " :
					 "not in this sum, since they may be the same requests: ");
		strbuf_addf(out, "%llu answered by ", (unsigned long long)s->n);
		strbuf_addshown(out, s->comm, strlen(s->comm));
		strbuf_addf(out, ", %s (--comm ",
			    units_ns((int64_t)s->took_ns, time, sizeof(time)));
		strbuf_addshown(out, s->comm, strlen(s->comm));
		strbuf_addstr(out, ")");
	}
}

void explain_request_say(const struct reqexplain *x, const struct reqpart *p, struct strbuf *out)
{
	char share[UNITS_MAX], time[UNITS_MAX];

	strbuf_addf(out, "%s, %s: ",
		    units_share((double)p->ns, (double)x->took_ns, share, sizeof(share)),
		    units_ns(p->ns, time, sizeof(time)));
	switch (p->what) {
	case REQPART_CPU:
		strbuf_addstr(out, "ran");
		add_shown(out, "; the largest part in ", p->function);
		break;
	case REQPART_WAIT:
		say_wait(p, out);
		break;
	case REQPART_JAVA:
		say_java(p, out);
		break;
	case REQPART_READY:
		strbuf_addf(out, "%s was ready to run but had no CPU", p->who);
		add_shown(out, "; the largest part of its waits of this kind was for ", p->by);
		break;
	case REQPART_UNTAGGED:
		say_untagged(x, out);
		break;
	case REQPART_ANSWERING:
		strbuf_addstr(
			out,
			"between the first and the last byte of the answers: there sonde cannot say which samples are whose");
		break;
	case REQPART_UNSAMPLED:
		strbuf_addf(
			out,
			"%llu of the requests have no samples: their thread served several at once, or another thread did the work, or their connection was opened before the recording began",
			(unsigned long long)p->n);
		break;
	case REQPART_SHARED:
		strbuf_addf(
			out,
			"%llu of the requests shared their connection with others that were open: sonde cannot say which samples are whose",
			(unsigned long long)p->n);
		break;
	case REQPART_ELSEWHERE:
		strbuf_addf(
			out,
			"waited for the answers of %s: what its server did is not known here, only what the client saw",
			p->service ? p->service : "the server");
		break;
	case REQPART_ASKED:
		say_asked(p, out);
		break;
	}
}
