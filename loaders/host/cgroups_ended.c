// SPDX-License-Identifier: Apache-2.0
/* cgroups_ended: the last row of a cgroup that is removed before it is read again; the rules stand
 * in cgroups.h. */
#include <stdlib.h>
#include <string.h>

#include "loaders/host/cgroups_parts.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"
#include "schema/store/write/writer.h"

#define ORPHANS_MAX 4096

/* A cgroup that no round has met: one that came and goes between two, or the one before of the same
 * name. */
struct cgroups_orphan {
	uint64_t id, id1; /* as the processes had them; 0: they were below it */
	struct cgroups_ends ends;
	UT_hash_handle hh; /* by path: the newest of a name */
	char path[];
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), len = strlen(end);

	return n >= len && !strcmp(text + n - len, end);
}

static bool path_is_unit(const char *path, const struct container_ref *ref, bool is_container)
{
	return *ref->unit && !is_container &&
	       (ends_with(path, ".service") || ends_with(path, ".scope"));
}

bool cgroups_is_unit(const struct cgroups_group *g)
{
	return path_is_unit(g->path, &g->ref, g->is_container);
}

void cgroups_read_note(struct cgroups_group *g, const struct fact_row *reading, int64_t begin_ns)
{
	if (!g->reading.set && !g->born && fact_has(reading, CGROUP_OOM_KILLS))
		g->oom_before = (uint64_t)reading->v[CGROUP_OOM_KILLS].number;
	g->reading = *reading;
	g->read_ns = begin_ns;
	g->ends.user_us = g->ends.system_us = 0;
}

/* ---- who ended ---- */

static void ends_add(struct cgroups *c, struct cgroups_ends *x, const struct hostmaps_process *p,
		     const struct cgroups_end *e)
{
	x->user_us += e->user_us;
	x->system_us += e->system_us;
	x->oom_kills += e->oom_kill;
	if ((int64_t)p->to_ns < x->last_ns)
		return;
	x->last_ns = (int64_t)p->to_ns;
	x->who = (struct cgroups_process){p->tgid, p->exec_id, p->start_ns};
	x->container = naming_container(c->h->naming, p);
	x->epoch = store_epoch(c->h->store);
}

/* Was it in this one, and not in the one before of the same path? `below`: in one below it, whose
 * number says nothing. */
static bool is_of(const struct cgroups_group *g, uint64_t id, uint64_t id1, bool below)
{
	uint64_t mine = g->in == CGROUPS_MEMORY ? id1 : g->in == CGROUPS_V2 ? id : 0;

	return below || !mine || mine == g->inode;
}

/* What a process used before the cgroup was read is in that reading: of one that was never read
 * nobody knows how much that is, but it cannot be more than the time that it had. */
static void group_ended(struct cgroups *c, struct cgroups_group *g,
			const struct hostmaps_process *p, const struct cgroups_end *e)
{
	struct cgroups_end x = *e;
	uint64_t all = e->user_us + e->system_us, before = 0;

	if (e->whole && (int64_t)p->start_ns < g->read_ns)
		before = (uint64_t)(g->read_ns - (int64_t)p->start_ns) / 1000;
	if ((int64_t)p->to_ns <= g->read_ns || before >= all)
		x.user_us = x.system_us = 0;
	else if (before) {
		x.user_us = (uint64_t)((double)e->user_us * ((double)(all - before) / (double)all));
		x.system_us = all - before - x.user_us;
	}
	ends_add(c, &g->ends, p, &x);
}

static void orphan_ended(struct cgroups *c, const char *path, size_t len,
			 const struct hostmaps_process *p, const struct cgroups_end *e, bool below)
{
	struct cgroups_orphan *o;

	HASH_FIND(hh, c->orphans, path, len, o);
	if (!o && HASH_COUNT(c->orphans) >= ORPHANS_MAX)
		return;
	if (!o) {
		o = mem_alloc(sizeof(*o) + len + 1);
		memcpy(o->path, path, len);
		HASH_ADD(hh, c->orphans, path, len, o);
	}
	if (!below) {
		o->id = p->cgroup_id;
		o->id1 = p->cgroup1_id;
	}
	ends_add(c, &o->ends, p, e);
}

void cgroups_ended(struct cgroups *c, const struct hostmaps_process *p, const struct cgroups_end *e)
{
	struct container_ref ref;
	struct cgroups_group *g;
	size_t len = strlen(p->cgroup);
	bool below = container_parse(p->cgroup, len, &ref) && ref.end && ref.end < len;

	if (below)
		len = ref.end;
	if (len < 2 || !c->h) /* the root is the host; before the first round nothing has begun */
		return;
	HASH_FIND(hh, c->groups, p->cgroup, len, g);
	if (g && is_of(g, p->cgroup_id, p->cgroup1_id, below))
		group_ended(c, g, p, e);
	else
		orphan_ended(c, p->cgroup, len, p, e, below);
}

/* ---- its row ---- */

struct closing {
	struct cgroups *c;
	const char *path;
	const struct container_ref *ref;
	bool is_container;
	const struct cgroups_ends *ends;
};

uint32_t cgroups_ends_container(const struct cgroups *c, const struct cgroups_ends *x)
{
	struct hostmaps_process *p =
		x->last_ns ?
			hostmaps_process(c->h->maps, x->who.tgid, x->who.start_ns, x->who.exec_id) :
			NULL;

	if (p)
		return naming_container(c->h->naming, p);
	return x->epoch == store_epoch(c->h->store) ? x->container : 0;
}

static bool closing_names(void *ctx, struct fact_row *row)
{
	struct closing *x = ctx;

	fact_put_text(row, CGROUP_PATH, x->path);
	fact_put(row, CGROUP_CONTAINER,
		 x->is_container ? cgroups_ends_container(x->c, x->ends) : 0);
	fact_put_text(row, CGROUP_UNIT,
		      path_is_unit(x->path, x->ref, x->is_container) ? x->ref->unit : "");
	return true;
}

static void add(struct fact_row *row, int column, uint64_t n)
{
	if (n)
		fact_put(row, column,
			 (fact_has(row, column) ? (uint64_t)row->v[column].number : 0) + n);
}

/* `row` holds differences since what is stored; gauges of a thing that is gone are not told. */
static void closing_put(struct closing *x, struct fact_row *row, uint64_t oom_kills)
{
	struct meter_round at = *x->c->at;
	uint64_t any = 0;

	add(row, CGROUP_USER, x->ends->user_us);
	add(row, CGROUP_SYSTEM, x->ends->system_us);
	add(row, CGROUP_OOM_KILLS, oom_kills);
	for (uint32_t i = 0; i < CGROUP_FACT.n; i++) {
		if (CGROUP_FACT.columns[i].role == FACT_GAUGE)
			row->set &= ~(1ull << i);
		any |= row->set >> i & 1 ? (uint64_t)row->v[i].number : 0;
	}
	if (!any || !at.h || naming_excludes_cgroup(x->c->h->naming, x->path))
		return;
	if (x->ends->last_ns)
		at.utc_ns = x->ends->last_ns + x->c->h->offset_ns;
	meter_put(&CGROUP_FACT, &at, row, closing_names, x);
}

/* Kills that its own counter had not told when it was read last. */
static uint64_t oom_untold(const struct cgroups_group *g)
{
	uint64_t told = fact_has(&g->reading, CGROUP_OOM_KILLS) ?
				(uint64_t)g->reading.v[CGROUP_OOM_KILLS].number - g->oom_before :
				0;

	return g->ends.oom_kills > told ? g->ends.oom_kills - told : 0;
}

void cgroups_close(struct cgroups *c, struct cgroups_group *g)
{
	struct closing x = {.c = c,
			    .path = g->path,
			    .ref = &g->ref,
			    .is_container = g->is_container,
			    .ends = &g->ends};
	const struct fact_row *last = meter_last(&c->meter, g->path, g->serial);
	struct fact_row row;

	if (g->quiet)
		return;
	meter_difference(&CGROUP_FACT, last, g->born, &g->reading,
			 &row); /* what was read and had not moved enough to be stored */
	closing_put(&x, &row, oom_untold(g));
}

static void orphan_take(struct cgroups *c, struct cgroups_orphan *o)
{
	struct cgroups_group *g;
	struct container_ref ref;
	struct closing x = {.c = c, .path = o->path, .ref = &ref, .ends = &o->ends};
	struct fact_row row = {0};
	size_t len = strlen(o->path);

	HASH_FIND(hh, c->groups, o->path, len, g);
	/* it is young: its first reading tells all */
	if (g && is_of(g, o->id, o->id1, !o->id && !o->id1)) {
		g->ends.oom_kills += o->ends.oom_kills;
		return;
	}
	x.is_container = container_parse(o->path, len, &ref) && ref.end == len;
	closing_put(&x, &row, o->ends.oom_kills);
}

void cgroups_orphans_drop(struct cgroups *c)
{
	struct cgroups_orphan *o, *next;

	HASH_ITER (hh, c->orphans, o, next) {
		HASH_DEL(c->orphans, o);
		free(o);
	}
}

void cgroups_orphans_take(struct cgroups *c)
{
	struct cgroups_orphan *o, *next;

	if (c->incomplete)
		return;
	HASH_ITER (hh, c->orphans, o, next)
		orphan_take(c, o);
	cgroups_orphans_drop(c);
}
