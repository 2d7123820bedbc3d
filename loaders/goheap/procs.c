/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/procs.h"

#include <stdio.h>
#include <stdlib.h>

#include "loaders/goheap/goproc.h"
#include "loaders/goheap/gostore.h"
#include "loaders/goheap/lastprof.h"
#include "loaders/goheap/pressure.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

/* new and ended processes: with each turn of the loop, but no more often */
#define LOOK_NS  (NSEC_PER_SEC * 2 / 5)
#define READ_NS  (NSEC_PER_SEC / 20)
#define FIRST_NS NSEC_PER_SEC
#define NEAR_NS  NSEC_PER_SEC       /* between readings, near the limit */
#define LAST_NS  (3 * NSEC_PER_SEC) /* a last profile may come so long after its process went */
#define SOON_NS  (NSEC_PER_SEC / 5)
#define TURN_NS  (NSEC_PER_SEC / 20) /* between turns, at least */

struct procs {
	struct procs_opts o;
	struct goproc *all;
	int64_t look_ns;
	struct family_host *host; /* of this turn */
	int64_t now_ns;
};

struct procs *procs_new(const struct procs_opts *o)
{
	struct procs *ps = mem_alloc(sizeof(*ps));

	ps->o = *o;
	return ps;
}

static void drop(struct procs *ps, struct goproc *p)
{
	lastprof_disarm(ps->o.lastprof, p);
	goproc_release(p);
	HASH_DEL(ps->all, p);
	free(p);
}

void procs_free(struct procs *ps)
{
	struct goproc *p, *next;

	if (!ps)
		return;
	HASH_ITER (hh, ps->all, p, next)
		drop(ps, p);
	free(ps);
}

/* ---- processes ---- */

static struct goproc *add(struct procs *ps, const struct hostmaps_process *hp,
			  const struct goproc_key *key)
{
	struct goproc *p = mem_alloc(sizeof(*p));

	p->key = *key;
	p->has_base = (int64_t)hp->from_ns >= ps->o.begun_ns;
	p->rate_told = -1;
	p->next_ns = ps->now_ns;
	p->pause_ns = FIRST_NS;
	HASH_ADD(hh, ps->all, key, sizeof(p->key), p);
	return p;
}

static void look_at(void *ctx, struct hostmaps_process *hp)
{
	struct procs *ps = ctx;
	struct goproc_key key = {
		.start_ns = hp->start_ns, .tgid = hp->tgid, .exec_id = hp->exec_id};
	struct goproc *p;
	bool is_new;

	HASH_FIND(hh, ps->all, &key, sizeof(key), p);
	is_new = !p;
	if (is_new)
		p = add(ps, hp, &key);
	p->seen_ns = ps->now_ns;
	if (is_new || ps->host->target->feed) /* what is given may be taken back */
		p->covered = target_covers(ps->host->target, ps->host->maps, hp);
	p->in_scope = p->covered && !naming_excludes(ps->host->naming, hp);
	if (!p->in_scope || p->found == GOPROC_NO_INDEX)
		return;
	/* without exec ids another executable is the sign of an exec */
	if (p->found != GOPROC_NO_GO || hp->exec_id == 0)
		goproc_find(p, ps->host->maps, hp);
}

static void look(struct procs *ps)
{
	struct goproc *p, *next;

	if (ps->now_ns < ps->look_ns)
		return;
	ps->look_ns = ps->now_ns + LOOK_NS;
	hostmaps_each(ps->host->maps, look_at, ps);
	HASH_ITER (hh, ps->all, p, next) {
		if (p->seen_ns == ps->now_ns)
			continue;
		if (!p->gone_ns)
			p->gone_ns = ps->now_ns;
		if (!p->n_armed || ps->now_ns - p->gone_ns > LAST_NS)
			drop(ps, p);
	}
}

/* ---- last profiles ---- */

static struct goproc *last_find(void *ctx, uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	struct procs *ps = ctx;
	struct goproc_key key = {.start_ns = start_ns, .tgid = tgid, .exec_id = exec_id};
	struct goproc *p;

	HASH_FIND(hh, ps->all, &key, sizeof(key), p);
	return p;
}

static void last_done(void *ctx, struct goproc *p, const char *cause)
{
	struct procs *ps = ctx;
	struct hostmaps_process *hp =
		hostmaps_process(ps->host->maps, p->key.tgid, p->key.start_ns, p->key.exec_id);

	snprintf(p->last, sizeof(p->last), "%s", cause);
	p->ended = true;
	p->n_frames = 0; /* names were made at the readings before */
	for (uint32_t i = 0; i < p->n_sites; i++)
		p->sites[i].stack_at = UINT64_MAX;
	if (hp)
		gostore(p, ps->host, hp);
}

static void last_read(struct procs *ps)
{
	const struct lastprof_ops ops = {.find = last_find, .done = last_done, .ctx = ps};

	lastprof_read(ps->o.lastprof, &ops);
}

/* ---- reading ---- */

static void plan(struct procs *ps, struct goproc *p, const struct hostmaps_process *hp)
{
	int64_t pause = p->pause_ns;

	p->pause_ns = pause * 2 < ps->o.interval_ns ? pause * 2 : ps->o.interval_ns;
	if (pause > NEAR_NS && pressure_near(hp))
		pause = NEAR_NS;
	if (p->unfinished || switchon_settles(p))
		pause = SOON_NS;
	p->next_ns = ps->now_ns + (pause < ps->o.interval_ns ? pause : ps->o.interval_ns);
}

static void read_one(struct procs *ps, struct goproc *p)
{
	struct hostmaps_process *hp =
		hostmaps_process(ps->host->maps, p->key.tgid, p->key.start_ns, p->key.exec_id);

	if (!hp)
		return;
	if (!goproc_read(p, ps->host, hp, ps->now_ns)) {
		p->ended = true;
		return;
	}
	if (p->readings == 1)
		ps->host->processes++;
	lastprof_arm(ps->o.lastprof, p);
	switchon_try(&ps->o.switchon, p, ps->host, hp->comm);
	plan(ps, p, hp);
}

static bool is_read(const struct goproc *p)
{
	return p->in_scope && p->found == GOPROC_GO && !p->ended && !p->gone_ns;
}

static bool is_due(const struct procs *ps, const struct goproc *p)
{
	return is_read(p) && p->next_ns <= ps->now_ns;
}

/* When the first reading is due, but after rings and signals have had their turn; 0: none is. */
static int64_t next_turn(const struct procs *ps)
{
	int64_t next = INT64_MAX, now = clock_boot_ns();

	for (const struct goproc *p = ps->all; p; p = p->hh.next)
		if (is_read(p) && p->next_ns < next)
			next = p->next_ns;
	if (next == INT64_MAX)
		return 0;
	return next < now + TURN_NS ? now + TURN_NS : next;
}

void procs_poll(struct procs *ps, struct family_host *h, int64_t now_ns)
{
	ps->host = h;
	ps->now_ns = now_ns;
	last_read(ps);
	look(ps);
	for (struct goproc *p = ps->all; p && clock_boot_ns() - now_ns < READ_NS; p = p->hh.next)
		if (is_due(ps, p))
			read_one(ps, p);
	h->next_ns = next_turn(ps);
}

void procs_finish(struct procs *ps, struct family_host *h, int64_t until_ns)
{
	ps->host = h;
	ps->now_ns = clock_boot_ns();
	last_read(ps);
	for (struct goproc *p = ps->all; p && clock_boot_ns() < until_ns; p = p->hh.next) {
		p->next_ns = ps->now_ns;
		p->lines_until_ns = 0;
		for (int i = 0; i < 3 && is_due(ps, p) && (!i || p->unfinished); i++) {
			read_one(ps, p);
			p->next_ns = ps->now_ns;
		}
	}
}
