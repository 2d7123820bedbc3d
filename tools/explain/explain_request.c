/* SPDX-License-Identifier: Apache-2.0 */
/* explain_request: see the header. */
#include "tools/explain/explain_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/store/model/kinds.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold.h"
#include "tools/fold/ranking/top.h"
#include "tools/requests/traces.h"
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
	const struct fold_opts opts = {.kind = STORE_KIND_CPU, .tags = &x->tags.tags};
	struct flame_tree tree;
	struct fold *f = NULL;
	struct reqpart *p;
	struct top top;
	int rc = fold_make(sel, &opts, &f, e);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	flame_tree_init(&tree, f, 0, false);
	top_init(&top, &tree);
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

static void add_untagged(struct reqexplain *x)
{
	uint64_t known = 0;

	for (size_t i = 0; i < x->n; i++)
		known += x->parts[i].ns;
	if (x->took_ns > known)
		part_add(x, REQPART_UNTAGGED, x->took_ns - known, 0);
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

static bool is_one(const struct reqexplain *x, const struct trace_row *r, const char *request)
{
	return r->wanted && reqtags_meant(request, r->operation) &&
	       r->total_us > x->tags.slower_us &&
	       (x->tags.most_us < 0 || r->total_us <= x->tags.most_us);
}

static int add_asked(struct reqexplain *x, const struct selection *sel, const char *request,
		     struct err *e)
{
	struct traces t;
	int rc = traces_read(sel, &t, e);

	for (uint32_t i = 0; !rc && i < t.n_nodes; i++) {
		const struct trace_node *n = &t.nodes[i];

		if (n->answered == TRACE_NONE || !is_one(x, &t.rows[n->answered], request))
			continue;
		x->trees++;
		for (uint32_t c = n->child; c != TRACE_NONE; c = t.nodes[c].next) {
			const struct trace_node *child = &t.nodes[c];
			struct reqpart *p = asked_part(x, &t.rows[child->asked]);

			p->n++;
			p->ns += traces_us(&t, c) > 0 ? (uint64_t)traces_us(&t, c) * 1000 : 0;
			if (!p->who && child->answered != TRACE_NONE)
				p->who = text(t.rows[child->answered].comm);
		}
	}
	traces_release(&t);
	return rc;
}

/* ---- whole ---- */

static int most_first(const void *a, const void *b)
{
	const struct reqpart *x = a, *y = b;
	bool xa = x->what == REQPART_ASKED, ya = y->what == REQPART_ASKED;

	if (xa != ya)
		return xa ? 1 : -1;
	return x->ns != y->ns ? x->ns < y->ns ? 1 : -1 : (int)x->what - (int)y->what;
}

int explain_request(const struct selection *sel, const char *request, const char *slower,
		    struct reqexplain *out, struct err *e)
{
	int rc;

	*out = (struct reqexplain){0};
	rc = reqtags_find(sel, request, slower, &out->tags, e);
	if (rc)
		return rc;
	out->took_ns = (uint64_t)out->tags.total_us * 1000;
	rc = add_cpu(out, sel, e);
	if (!rc)
		rc = add_waits(out, sel, e);
	if (!rc)
		add_untagged(out);
	if (!rc)
		rc = add_asked(out, sel, request, e);
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
	*x = (struct reqexplain){0};
}

/* ---- words ---- */

const char *explain_request_what(enum reqpart_what what)
{
	static const char *const words[] = {"cpu", "wait", READY, "untagged", "asked"};

	return words[what];
}

static void add_shown(struct strbuf *out, const char *before, const char *name)
{
	if (!name)
		return;
	strbuf_addstr(out, before);
	strbuf_addshown(out, name, strlen(name));
}

/* Reasons as schema/store/read/waits.c and tools/waits/waitrules.h call them; one that is not here
 * stands behind "waited:". */
static void say_wait(const struct reqpart *p, struct strbuf *out)
{
	/* clang-format off */
	static const char *const words[][2] = {
		{"lock", "waited for a lock"}, {"disk", "waited for the disk"}, {"network", "waited for the network"}, {"pipe", "waited for a pipe"},
		{"poll", "waited in poll"}, {"sleep", "slept"}, {"page fault", "waited for a page fault"}, {"stop", "was stopped"},
		{"child", "waited for a child"}, {"other", "waited"},
	};
	/* clang-format on */
	const char *said = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(p->reason, words[i][0]))
			said = words[i][1];
	strbuf_addf(out, "%s %s", p->who, said ? said : "waited: ");
	if (!said)
		strbuf_addshown(out, p->reason, strlen(p->reason));
	add_shown(out, ", mostly in ", p->function);
	add_shown(out, ", on ", p->object);
	add_shown(out, " of ", p->peer);
	add_shown(out, ", ended mostly by ", p->by);
	if (p->by_tid)
		strbuf_addf(out, " %u", p->by_tid);
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

void explain_request_say(const struct reqexplain *x, const struct reqpart *p, struct strbuf *out)
{
	char time[24];

	strbuf_addf(out,
		    "%.1f %%, %s: ", x->took_ns ? 100.0 * (double)p->ns / (double)x->took_ns : 0,
		    waitcell_time(p->ns, time));
	switch (p->what) {
	case REQPART_CPU:
		strbuf_addstr(out, "ran");
		add_shown(out, ", mostly in ", p->function);
		break;
	case REQPART_WAIT:
		say_wait(p, out);
		break;
	case REQPART_READY:
		strbuf_addf(out, "%s was ready and had no CPU", p->who);
		add_shown(out, "; of all such waits of it most were for ", p->by);
		break;
	case REQPART_UNTAGGED:
		strbuf_addstr(out, "untagged: no sample says what was done in it");
		if (x->tags.goroutines)
			strbuf_addstr(
				out,
				"; a goroutine waits for a lock, a channel, a connection or its turn without a thread");
		break;
	case REQPART_ASKED:
		say_asked(p, out);
		break;
	}
}
