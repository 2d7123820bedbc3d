/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/ended.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "loaders/host/cgroups.h"
#include "loaders/host/processes.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/meter.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"

#define NOTES_MAX 65536
#define SUMS_MAX  4096               /* of commands in a bucket; the others are one */
#define AWAIT_NS  (NSEC_PER_SEC / 2) /* a parent collects its child sooner, or does not hurry */
#define WAIT_MS   10

struct ended_note {
	struct mp_used used;
	uint32_t exec_id; /* of its last program */
};

struct ended_sum {
	struct fact_row row;        /* since it was stored last; rss_max of the whole bucket */
	struct hostmaps_process *p; /* one of them, while they are stored */
	const char *cgroup, *comm;  /* in `key` */
	UT_hash_handle hh;
	char key[];
};

static void sums_drop(struct ended *x)
{
	struct ended_sum *s, *next;

	HASH_ITER (hh, x->sums, s, next) {
		HASH_DEL(x->sums, s);
		free(s);
	}
}

void ended_release(struct ended *x)
{
	sums_drop(x);
	idmap_release(&x->open);
	free(x->notes);
	*x = (struct ended){0};
}

/* ---- noted ---- */

void ended_note(struct ended *x, const struct hostmaps_process *p)
{
	if (p->end == HOSTMAPS_EXECED)
		return;
	if (x->open.n >= ENDED_OPEN_MAX) /* parents that do not collect their children */
		idmap_clear(&x->open);
	if (p->end == HOSTMAPS_OOM)
		cgroups_ended(x->cgroups, p, &(struct cgroups_end){.oom_kill = true});
	idmap_set(&x->open, p->tgid, 1);
	x->last_ns = clock_boot_ns();
}

void ended_used(struct ended *x, const struct mp_used *u, const struct hostmaps_process *p)
{
	idmap_del(&x->open, u->tgid);
	if (x->n >= NOTES_MAX) {
		x->dropped++;
		return;
	}
	mem_grow(x->notes, x->n, x->cap);
	x->notes[x->n++] = (struct ended_note){*u, p ? p->exec_id : 0};
}

/* ---- summed ---- */

/* A cgroup below a container's own is the container's. */
static size_t cgroup_len(const char *cgroup)
{
	struct container_ref ref;
	size_t len = strlen(cgroup);

	return container_parse(cgroup, len, &ref) && ref.end ? ref.end : len;
}

static struct ended_sum *sum_find(struct ended *x, const char *cgroup, size_t cgroup_n,
				  const char *comm)
{
	size_t comm_n = strlen(comm), len = cgroup_n + 1 + comm_n;
	struct ended_sum *s, *made = mem_alloc(sizeof(*made) + len + 1);

	memcpy(made->key, cgroup, cgroup_n);
	memcpy(made->key + cgroup_n + 1, comm, comm_n);
	HASH_FIND(hh, x->sums, made->key, len, s);
	if (s || HASH_COUNT(x->sums) >= SUMS_MAX) {
		free(made);
		return s;
	}
	made->cgroup = made->key;
	made->comm = made->key + cgroup_n + 1;
	HASH_ADD(hh, x->sums, key, len, made);
	return made;
}

static struct ended_sum *sum_of(struct ended *x, const struct hostmaps_process *p)
{
	struct ended_sum *s = sum_find(x, p->cgroup, cgroup_len(p->cgroup), p->comm);

	if (s)
		return s;
	HASH_FIND(hh, x->sums, "\0", 1, s); /* no cgroup, no command: all others */
	if (s)
		return s;
	s = mem_alloc(sizeof(*s) + 2);
	s->cgroup = s->comm = s->key;
	HASH_ADD(hh, x->sums, key, 1, s);
	return s;
}

static void add(struct fact_row *row, int column, uint64_t n)
{
	fact_put(row, column, (fact_has(row, column) ? (uint64_t)row->v[column].number : 0) + n);
}

static void sum_take(struct ended *x, const struct mp_used *u, struct hostmaps_process *p)
{
	struct ended_sum *s = sum_of(x, p);
	uint64_t user_us, system_us;
	struct fact_row *row = &s->row;

	s->p = p;
	processes_split(u, NULL, &user_us, &system_us);
	add(row, ENDED_N, 1);
	add(row, ENDED_USER, user_us);
	add(row, ENDED_SYSTEM, system_us);
	add(row, ENDED_MINFLT, u->minflt);
	add(row, ENDED_MAJFLT, u->majflt);
	add(row, ENDED_LIVED, p->to_ns > p->start_ns ? (p->to_ns - p->start_ns) / 1000 : 0);
	if (u->flags & MP_USED_RUNQ)
		add(row, ENDED_DELAY, u->runq_ns / 1000);
	if (u->flags & MP_USED_IO) {
		add(row, ENDED_READ_BYTES, u->read_bytes);
		add(row, ENDED_WRITE_BYTES, u->write_bytes);
	}
	if (!fact_has(row, ENDED_RSS_MAX) ||
	    u->maxrss_bytes > (uint64_t)row->v[ENDED_RSS_MAX].number)
		fact_put(row, ENDED_RSS_MAX, u->maxrss_bytes);
}

struct sum_names {
	struct family_host *h;
	struct ended_sum *s;
};

static bool sum_names(void *ctx, struct fact_row *row)
{
	const struct sum_names *n = ctx;

	fact_put_text(row, ENDED_CGROUP, n->s->cgroup);
	fact_put_text(row, ENDED_COMM, n->s->comm);
	fact_put(row, ENDED_CONTAINER, *n->s->comm ? naming_container(n->h->naming, n->s->p) : 0);
	fact_put(row, ENDED_SELF, *n->s->comm && naming_is_self(n->h->naming, n->s->p));
	return true;
}

static void sums_store(struct ended *x, const struct meter_round *r)
{
	for (struct ended_sum *s = x->sums; s; s = s->hh.next) {
		struct sum_names names = {r->h, s};
		int64_t rss = s->row.v[ENDED_RSS_MAX].number;

		if (!s->p) /* nothing since the last time */
			continue;
		meter_put(&ENDED_FACT, r, &s->row, sum_names, &names);
		s->p = NULL;
		s->row = (struct fact_row){0};
		fact_put(&s->row, ENDED_RSS_MAX, (uint64_t)rss);
	}
}

/* ---- stored ---- */

/* For its cgroup, which may be removed by the next reading, even if the capture does not cover the
 * process. */
static void cgroup_take(struct ended *x, const struct processes *ps, const struct mp_used *u,
			const struct hostmaps_process *p, int64_t begun_ns)
{
	struct cgroups_end e = {0};
	uint64_t all = processes_since(ps, u, p, &e.whole);

	if (!all || (e.whole && (int64_t)p->start_ns < begun_ns))
		return;
	e.system_us =
		u->user_ns + u->system_ns ?
			(uint64_t)((double)all * ((double)u->system_ns /
						  ((double)u->user_ns + (double)u->system_ns))) :
			0;
	e.user_us = all - e.system_us;
	cgroups_ended(x->cgroups, p, &e);
}

static void note_take(struct ended *x, struct processes *ps, const struct meter_round *r,
		      const struct ended_note *n, int64_t begun_ns)
{
	struct family_host *h = r->h;
	struct hostmaps_process *p =
		hostmaps_process(h->maps, n->used.tgid, n->used.start_ns, n->exec_id);
	struct meter_round at = *r;

	h->unknown +=
		!p && target_is_narrow(h->target) && target_may_cover(h->target, n->used.tgid);
	if (!p || p->to_ns == UINT64_MAX)
		return;
	cgroup_take(x, ps, &n->used, p, begun_ns);
	if (!processes_wants(h, p))
		return;
	at.utc_ns = (int64_t)p->to_ns + h->offset_ns;
	if (processes_used(ps, &at, &n->used, p) || (int64_t)p->start_ns < begun_ns ||
	    naming_excludes(h->naming, p))
		return;
	if (n->used.cpu_ns / 1000 >= ENDED_OWN_US)
		processes_whole(ps, &at, &n->used, p);
	else
		sum_take(x, &n->used, p);
}

void ended_poll(struct ended *x, struct processes *ps, struct family_host *h, int64_t begun_ns)
{
	struct meter_round r = {.h = h, .now_ns = clock_boot_ns()};
	int64_t bucket_s;

	r.utc_ns = r.now_ns + h->offset_ns;
	bucket_s = r.utc_ns / NSEC_PER_SEC / h->bucket_s;
	h->refused += x->dropped;
	x->dropped = 0;
	if (bucket_s != x->bucket_s)
		sums_drop(x);
	x->bucket_s = bucket_s;
	for (size_t i = 0; i < x->n; i++)
		note_take(x, ps, &r, &x->notes[i], begun_ns);
	x->n = 0;
	sums_store(x, &r);
}

void ended_await(struct ended *x, struct family_host *h, int64_t until_ns)
{
	hostmaps_await(h->maps, until_ns); /* the last ends included */
	while (x->open.n && clock_boot_ns() < x->last_ns + AWAIT_NS && clock_boot_ns() < until_ns) {
		int64_t next = clock_boot_ns() + 2 * WAIT_MS * (NSEC_PER_SEC / 1000);

		hostmaps_await(h->maps, next < until_ns ? next : until_ns);
	}
}
