/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/events/container_life.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "schema/base/mem.h"

#define CONTAINER_LIFE_MAX 4096

struct life {
	struct container_ref ref;
	struct container_life_leader leader;
	bool runs, boxed; /* boxed: it has its own pid namespace; never reset */
	uint64_t round;   /* in which something was met in it */
	uint32_t starts;
	struct container_life_event end; /* how its leader ended, where others ran on */
	bool leader_ended;
	const struct hostmaps_process *met; /* of this round: candidates to lead */
	UT_hash_handle hh;
	char path[];
};

static void drop(struct container_life *l, struct life *x)
{
	HASH_DEL(l->all, x);
	free(x);
}

void container_life_release(struct container_life *l)
{
	struct life *x, *next;

	HASH_ITER (hh, l->all, x, next)
		drop(l, x);
}

/* Those that do not run are forgotten when there are many. */
static bool make_room(struct container_life *l)
{
	struct life *x, *next;

	if (HASH_COUNT(l->all) < CONTAINER_LIFE_MAX)
		return true;
	HASH_ITER (hh, l->all, x, next)
		if (!x->runs)
			drop(l, x);
	return HASH_COUNT(l->all) < CONTAINER_LIFE_MAX;
}

/* The container that a process is of; NULL: none, or it only watches over one (crun's supervisor).
 */
static struct life *life_of(struct container_life *l, const struct hostmaps_process *p)
{
	struct container_ref ref;
	struct life *x;

	if (!*p->cgroup || !container_parse(p->cgroup, strlen(p->cgroup), &ref) || !ref.end ||
	    !strcmp(p->cgroup + ref.end, "/supervisor"))
		return NULL;
	HASH_FIND(hh, l->all, p->cgroup, ref.end, x);
	if (x || !make_room(l))
		return x;
	x = mem_alloc(sizeof(*x) + ref.end + 1);
	memcpy(x->path, p->cgroup, ref.end);
	x->ref = ref;
	HASH_ADD(hh, l->all, path, ref.end, x);
	return x;
}

struct container_life_leader container_life_leader_of(const struct hostmaps_process *p)
{
	struct container_life_leader out = {
		.tgid = p->tgid, .exec_id = p->exec_id, .start_ns = p->start_ns};

	strncpy(out.comm, p->comm, sizeof(out.comm) - 1);
	return out;
}

static void tell_start(struct container_life *l, struct life *x, const struct hostmaps_process *p)
{
	struct container_life_event e = {
		.ref = &x->ref, .path = x->path, .boot_ns = (int64_t)p->start_ns};

	x->leader = container_life_leader_of(p);
	x->boxed |= p->nspid == 1;
	x->runs = true;
	x->leader_ended = false;
	e.starts = ++x->starts;
	e.leader = x->leader;
	if (l->begun && p->start_ns >= l->begun_ns)
		l->tell(l->ctx, &e);
}

static struct container_life_event end_of(const struct life *x, const struct hostmaps_process *p)
{
	struct container_life_event e = {.ref = &x->ref,
					 .path = x->path,
					 .stopped = true,
					 .starts = x->starts,
					 .boot_ns = (int64_t)p->to_ns,
					 .leader = container_life_leader_of(p),
					 .end = p->end,
					 .status = p->status,
					 .signal = p->sent.signal,
					 .from_tgid = p->sent.tgid,
					 .signal_ns = p->sent.time_ns};

	memcpy(e.from_comm, p->sent.comm, sizeof(e.from_comm));
	return e;
}

static bool leads(const struct life *x, const struct hostmaps_process *p)
{
	return x->runs && x->leader.tgid == p->tgid && x->leader.start_ns == p->start_ns;
}

void container_life_ended(struct container_life *l, const struct hostmaps_process *p)
{
	struct life *x = p->end == HOSTMAPS_EXECED ? NULL : life_of(l, p);

	if (!x)
		return;
	if (!x->runs && p->nspid == 1) /* it came and went */
		tell_start(l, x, p);
	if (!leads(x, p))
		return;
	x->end = end_of(x, p);
	x->leader_ended = true;
	if (!x->boxed)
		return; /* others may run on: the round tells */
	x->runs = false;
	if (l->begun)
		l->tell(l->ctx, &x->end);
}

/* The leader of two candidates. */
static bool is_before(const struct hostmaps_process *p, const struct hostmaps_process *q)
{
	if ((p->nspid == 1) != (q->nspid == 1))
		return p->nspid == 1;
	return p->start_ns < q->start_ns;
}

void container_life_meet(struct container_life *l, const struct hostmaps_process *p)
{
	struct life *x = life_of(l, p);

	if (!x)
		return;
	if (x->round != l->round || !x->met || is_before(p, x->met))
		x->met = p;
	x->round = l->round;
}

/* runc names its own processes so while it makes a container, crun has its program's name. */
static bool is_runtime(const struct hostmaps_process *p)
{
	return !strncmp(p->comm, "runc:[", 6) || !strcmp(p->comm, "runc") ||
	       !strcmp(p->comm, "crun");
}

/* May it lead, as it was met? */
static bool may_lead(const struct life *x, const struct hostmaps_process *p, uint64_t now_ns)
{
	if (p->nspid == 1)
		return true;
	if (x->boxed || is_runtime(p) || p->start_ns + CONTAINER_LIFE_WAY_IN_NS > now_ns)
		return false;
	return !x->leader_ended || p->start_ns > x->leader.start_ns;
}

static void round_one(struct container_life *l, struct life *x, uint64_t now_ns)
{
	bool met = x->met && x->round == l->round;

	if (x->runs && !met) { /* nothing runs in it */
		x->runs = false;
		if (x->leader_ended && l->begun && !x->boxed)
			l->tell(l->ctx, &x->end);
	} else if (met && !x->runs && may_lead(x, x->met, now_ns)) {
		tell_start(l, x, x->met);
	}
	x->met = NULL;
}

void container_life_round(struct container_life *l, uint64_t now_ns)
{
	struct life *x, *next;

	HASH_ITER (hh, l->all, x, next)
		round_one(l, x, now_ns);
	l->round++;
	l->begun_ns = l->begun ? l->begun_ns : now_ns;
	l->begun = true;
}
