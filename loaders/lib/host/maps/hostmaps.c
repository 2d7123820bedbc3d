/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This file has the processes and reads sonde-maps' messages; hostmaps_link.c has the connection,
 * hostmaps_images.c and frame_owner.c the rest.
 */
#include "loaders/lib/host/maps/hostmaps.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loaders/lib/host/maps/hostmaps_packet.h"
#include "loaders/lib/host/maps/private.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define CONTAINERS_MAX 4096
#define HISTORY_NS     (10 * NSEC_PER_SEC)
#define EXITED_NS      (10 * NSEC_PER_SEC)
#define TICK_NS        (NSEC_PER_SEC / 100) /* of /proc/PID/stat */
#define SWEEP_NS       (5 * NSEC_PER_SEC)
/* if this many have ended since the last sweep, forget them sooner */
#define CROWD    8192
#define CROWD_NS (NSEC_PER_SEC * 3 / 2)

/* ---- processes ---- */

void hostmaps_process_free(struct hostmaps *hm, struct process *p)
{
	if (hm->last == p)
		hm->last = NULL;
	HASH_DEL(hm->processes, p);
	free((char *)(uintptr_t)p->pub.comm);
	free((char *)(uintptr_t)p->pub.exe);
	free((char *)(uintptr_t)p->pub.args);
	free((char *)(uintptr_t)p->pub.cgroup);
	free(p->pub.user);
	hostmaps_maps_release(p);
	free(p);
}

static struct process *process_find(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns,
				    uint32_t exec_id)
{
	struct process_key key = {.start_ns = start_ns, .tgid = tgid, .exec_id = exec_id};
	struct process *p = hm->last;

	if (p && p->key.start_ns == start_ns && p->key.tgid == tgid && p->key.exec_id == exec_id)
		return p;
	HASH_FIND(hh, hm->processes, &key, sizeof(key), p);
	if (p)
		hm->last = p;
	return p;
}

struct newest *hostmaps_newest(const struct hostmaps *hm, uint32_t tgid)
{
	struct newest *n;

	HASH_FIND(hh, hm->newest, &tgid, sizeof(tgid), n);
	return n;
}

void hostmaps_on_end(struct hostmaps *hm, void (*ended)(void *ctx, struct hostmaps_process *p),
		     void *ctx)
{
	hm->ended = ended;
	hm->ended_ctx = ctx;
}

void hostmaps_on_used(struct hostmaps *hm,
		      void (*used)(void *ctx, const struct mp_used *u, struct hostmaps_process *p),
		      void *ctx)
{
	hm->used = used;
	hm->used_ctx = ctx;
}

/* The process or program under this tgid has ended. One that was reported gone may turn up again:
 * then it ends a second time. */
void hostmaps_close_process(struct hostmaps *hm, struct process *p, uint64_t time_ns,
			    enum hostmaps_end end, int status)
{
	if (p->pub.to_ns <= time_ns)
		return;
	p->pub.to_ns = time_ns;
	p->ended_ns = (uint64_t)clock_boot_ns();
	if (p->pub.end)
		return;
	p->pub.end = end;
	p->pub.status = status;
	p->pub.serial++;
	if (hm->ended)
		hm->ended(hm->ended_ctx, &p->pub);
}

static bool text_set(const char **s, const char *value)
{
	if (*s && !strcmp(*s, value))
		return false;
	free((char *)(uintptr_t)*s);
	*s = mem_strdup(value);
	return true;
}

#define SET(field, value, changed)         \
	do {                               \
		if ((field) != (value)) {  \
			(field) = (value); \
			(changed) = true;  \
		}                          \
	} while (0)

/* Updates it; true: something changed. */
static bool process_set(struct process *p, const struct mapspack_msg *msg)
{
	const struct mp_process *m = &msg->m.process;
	bool changed = false;

	SET(p->pub.ppid, m->ppid, changed);
	SET(p->pub.uid, m->uid, changed);
	SET(p->pub.nspid, m->nspid, changed);
	SET(p->pub.cgroup_id, m->cgroup_id, changed);
	SET(p->pub.cgroup1_id, m->cgroup1_id, changed);
	changed |= text_set(&p->pub.comm, msg->str[0]);
	changed |= text_set(&p->pub.exe, msg->str[1]);
	if (!(m->flags & MP_PROCESS_ARGS_LATER) || !p->pub.args)
		changed |= text_set(&p->pub.args, msg->str[2]);
	p->pub.args_later = m->flags & MP_PROCESS_ARGS_LATER && !*p->pub.args;
	changed |= text_set(&p->pub.cgroup, msg->str[3]);
	p->confirmed = true;
	p->pub.to_ns = UINT64_MAX;
	p->pub.end = HOSTMAPS_RUNS;
	return changed;
}

/* It replaces the previous identity of this tgid, whose end is reported now: after both are
 * complete, because the callback may look at all processes. */
static void process_add(struct hostmaps *hm, struct process *p)
{
	struct newest *n = hostmaps_newest(hm, p->key.tgid);

	HASH_ADD(hh, hm->processes, key, sizeof(p->key), p);
	hm->last = p;
	if (!n) {
		n = mem_alloc(sizeof(*n));
		n->tgid = p->key.tgid;
		HASH_ADD(hh, hm->newest, tgid, sizeof(n->tgid), n);
	}
	p->older = n->p;
	n->p = p;
	if (p->older)
		hostmaps_close_process(hm, p->older, p->pub.from_ns,
				       p->older->key.start_ns == p->key.start_ns ? HOSTMAPS_EXECED :
										   HOSTMAPS_GONE,
				       0);
}

static void on_process(struct hostmaps *hm, const struct mapspack_msg *msg)
{
	const struct mp_process *m = &msg->m.process;
	struct process *p = process_find(hm, m->tgid, m->start_ns, m->exec_id);

	if (p) {
		p->pub.serial += process_set(p, msg);
		return;
	}
	p = mem_alloc(sizeof(*p));
	p->key = (struct process_key){
		.start_ns = m->start_ns, .tgid = m->tgid, .exec_id = m->exec_id};
	p->pub.tgid = m->tgid;
	p->pub.exec_id = m->exec_id;
	p->pub.start_ns = m->start_ns;
	p->pub.from_ns = m->time_ns;
	p->pub.serial = 1;
	process_set(p, msg);
	process_add(hm, p);
	if (m->from_tgid && !hm->no_mappings)
		hostmaps_inherit(p,
				 process_find(hm, m->from_tgid, m->from_start_ns, m->from_exec_id));
}

static void sent_set(struct hostmaps_process *p, const struct mp_exit *m)
{
	p->sent.signal = m->signal;
	p->sent.tgid = m->from_tgid;
	p->sent.time_ns = m->signal_ns;
	memcpy(p->sent.comm, m->from_comm, sizeof(m->from_comm));
}

static void on_exit_(struct hostmaps *hm, const struct mp_exit *m)
{
	struct newest *n = hostmaps_newest(hm, m->tgid);
	enum hostmaps_end end = m->flags & MP_EXIT_UNKNOWN ? HOSTMAPS_GONE :
				m->flags & MP_EXIT_OOM     ? HOSTMAPS_OOM :
							     HOSTMAPS_ENDED;

	hm->ends_told++;
	hm->ended_unswept++;
	if (n && n->p && n->p->key.start_ns == m->start_ns)
		sent_set(&n->p->pub, m);
	for (struct process *p = n ? n->p : NULL; p; p = p->older)
		if (p->key.start_ns == m->start_ns)
			hostmaps_close_process(hm, p, m->time_ns, end, (int)m->exit_code);
}

static void on_args(struct hostmaps *hm, const struct mapspack_msg *msg)
{
	const struct mp_args *m = &msg->m.args;
	struct process *p = process_find(hm, m->tgid, m->start_ns, m->exec_id);

	if (!p || !p->pub.args_later)
		return;
	p->pub.args_later = false;
	if (!text_set(&p->pub.args, msg->str[0]))
		return;
	p->pub.serial++;
	if (hm->learnt)
		hm->learnt(hm->learnt_ctx, &p->pub);
}

void hostmaps_on_args(struct hostmaps *hm, void (*learnt)(void *ctx, struct hostmaps_process *p),
		      void *ctx)
{
	hm->learnt = learnt;
	hm->learnt_ctx = ctx;
}

void hostmaps_want_args(struct hostmaps *hm, struct hostmaps_process *pub)
{
	struct process *p = (struct process *)pub;
	struct mp_want_args m = {.head = {.type = MP_WANT_ARGS, .size = sizeof(m)},
				 .start_ns = p->key.start_ns,
				 .tgid = p->key.tgid,
				 .exec_id = p->key.exec_id};

	if (!pub->args_later || p->args_asked || hm->fd < 0)
		return;
	p->args_asked = send(hm->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m);
}

void hostmaps_want_names(struct hostmaps *hm, const struct hostmaps_process *p)
{
	const struct mp_want_names m = {.head = {.type = MP_WANT_NAMES, .size = sizeof(m)},
					.start_ns = p->start_ns,
					.tgid = p->tgid,
					.exec_id = p->exec_id};

	if (hm->fd >= 0)
		(void)send(hm->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_used(struct hostmaps *hm, const struct mp_used *m)
{
	struct newest *n = hostmaps_newest(hm, m->tgid);
	struct process *p = n ? n->p : NULL;

	while (p &&
	       p->key.start_ns != m->start_ns) /* the pid may belong to another process by now */
		p = p->older;
	if (hm->used)
		hm->used(hm->used_ctx, m, p ? &p->pub : NULL);
}

struct hostmaps_process *hostmaps_running(struct hostmaps *hm, uint32_t tgid)
{
	struct newest *n = hostmaps_newest(hm, tgid);

	return n && n->p && n->p->pub.to_ns == UINT64_MAX ? &n->p->pub : NULL;
}

void hostmaps_each(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
		   void *ctx)
{
	for (struct newest *n = hm->newest; n; n = n->hh.next)
		if (n->p && n->p->pub.to_ns == UINT64_MAX)
			each(ctx, &n->p->pub);
}

void hostmaps_each_known(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
			 void *ctx)
{
	for (struct process *p = hm->processes; p; p = p->hh.next)
		each(ctx, &p->pub);
}

struct hostmaps_process *hostmaps_process(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns,
					  uint32_t exec_id)
{
	struct process *p = process_find(hm, tgid, start_ns, exec_id);
	struct newest *n;

	if (p)
		return &p->pub;
	/* if sonde-maps knows it only from /proc, its exec id is 0 and its start in clock ticks */
	n = hostmaps_newest(hm, tgid);
	if (!n || !n->p || n->p->key.exec_id || n->p->key.start_ns / TICK_NS != start_ns / TICK_NS)
		return NULL;
	return hm->degraded || n->p->key.start_ns % TICK_NS == 0 ? &n->p->pub : NULL;
}

static void on_seeded(struct hostmaps *hm)
{
	hm->seeded = true;
	for (struct process *p = hm->processes; p; p = p->hh.next)
		if (p->unsure_ns)
			hostmaps_sure(hm, p);
}

/* ---- forgetting ---- */

static void mark_maps(const struct mapping *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].image)
			((struct image_entry *)m[i].image)->marked = true;
}

static void process_forget(struct hostmaps *hm, struct process *p)
{
	struct newest *n = hostmaps_newest(hm, p->key.tgid);

	for (struct process **q = n ? &n->p : NULL; q && *q; q = &(*q)->older)
		if (*q == p) {
			*q = p->older;
			break;
		}
	if (n && !n->p) {
		HASH_DEL(hm->newest, n);
		free(n);
	}
	hostmaps_process_free(hm, p);
}

static void sweep_process(struct hostmaps *hm, struct process *p, uint64_t now, uint64_t keep_ns)
{
	mapset_forget(&p->maps, now > HISTORY_NS ? now - HISTORY_NS : 0);
	if (p->pub.to_ns < now && now - p->ended_ns > keep_ns) {
		process_forget(hm, p);
		return;
	}
	mark_maps(p->maps.now, p->maps.n_now);
	mark_maps(p->maps.old, p->maps.n_old);
	mark_maps(p->before.now, p->before.n_now);
}

void hostmaps_sweep(struct hostmaps *hm)
{
	uint64_t now = (uint64_t)clock_boot_ns();
	bool crowd = hm->ended_unswept > CROWD;
	struct process *p, *next;
	bool trim;

	if (now - hm->swept_ns < (crowd ? CROWD_NS : SWEEP_NS))
		return;
	trim = hm->crowded && !crowd;
	hm->crowded = crowd;
	hm->swept_ns = now;
	hm->ended_unswept = 0;
	HASH_ITER (hh, hm->processes, p, next)
		sweep_process(hm, p, now, crowd ? CROWD_NS : EXITED_NS);
	hostmaps_images_sweep(hm, now);
	if (trim)
		malloc_trim(0); /* memory of ended processes is scattered between the others' */
}

/* ---- talk ---- */

static void on_hello(struct hostmaps *hm, const struct mp_hello *m)
{
	hm->degraded = m->flags & MP_HELLO_DEGRADED;
	hm->greeted = !(m->flags & MP_HELLO_TABLES);
	hm->backoff_ns = 0;
}

/* All of them or none. A sonde-maps that could not take over the old maps made new ones: these are
 * for programs loaded from now on. */
static int on_tables(struct hostmaps *hm, const int fds[MP_FDS_MAX])
{
	for (int i = 0; i < MP_TABLES_N; i++)
		if (fds[i] < 0)
			return -EPROTO;
	for (int i = 0; i < MP_TABLES_N; i++) {
		if (hm->tables[i] >= 0)
			close(hm->tables[i]);
		hm->tables[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
	}
	hm->greeted = true;
	return 0;
}

bool hostmaps_greeted(const struct hostmaps *hm)
{
	return hm->greeted;
}

void hostmaps_tables(const struct hostmaps *hm, int fds[MP_TABLES_N])
{
	memcpy(fds, hm->tables, sizeof(hm->tables));
}

static void on_cost(struct hostmaps *hm, const struct mp_cost *m)
{
	struct hostmaps_cost *c = &hm->cost;

	uint64_t sharers = m->sharers ? m->sharers : 1;

	c->cpu_ns = m->share.cpu_ns;
	c->index_cpu_ns = m->share.index_cpu_ns;
	c->bpf_ns = m->share.bpf_ns;
	c->bpf_runs = m->share.bpf_runs;
	c->rss_bytes = m->rss_bytes / sharers;
	c->private_bytes = m->private_bytes / sharers;
	c->map_bytes = m->map_bytes / sharers;
}

static void on_watermark(struct hostmaps *hm, const struct mp_watermark *m)
{
	uint64_t due = m->ends - hm->ends_base;

	if (m->time_ns > hm->watermark)
		hm->watermark = m->time_ns;
	if (hm->seeded && !hm->ends_based) {
		hm->ends_based = true;
		hm->ends_base = m->ends;
		hm->ends_told = 0;
	} else if (hm->seeded && due > hm->ends_told) {
		hm->ends_missed += due - hm->ends_told;
		hm->ends_told = due;
	}
}

uint64_t hostmaps_missed(const struct hostmaps *hm)
{
	return hm->ends_missed;
}

/* ---- containers: their names, as sonde-maps sends them ---- */

static char *dup_or_null(const char *s)
{
	return *s ? mem_strdup(s) : NULL;
}

static struct told_container *container_find(const struct hostmaps *hm, const char *id)
{
	struct told_container *c;

	HASH_FIND_STR(hm->containers, id, c);
	return c;
}

static void on_container(struct hostmaps *hm, const struct mapspack_msg *msg)
{
	struct told_container *c = container_find(hm, msg->str[0]);
	size_t n = strlen(msg->str[0]) + 1;

	if (!c && HASH_COUNT(hm->containers) >= CONTAINERS_MAX)
		hostmaps_containers_release(hm);
	if (!c) {
		c = mem_alloc(sizeof(*c) + n);
		memcpy(c->id, msg->str[0], n);
		HASH_ADD_KEYPTR(hh, hm->containers, c->id, n - 1, c);
	}
	container_names_release(&c->names);
	c->names = (struct container_names){.name = dup_or_null(msg->str[1]),
					    .image = dup_or_null(msg->str[2]),
					    .project = dup_or_null(msg->str[3]),
					    .service = dup_or_null(msg->str[4]),
					    .labels = dup_or_null(msg->str[5]),
					    .started = dup_or_null(msg->str[6]),
					    .restarts = msg->m.container.restarts};
}

const struct container_names *hostmaps_container(const struct hostmaps *hm, const char *id)
{
	const struct told_container *c = container_find(hm, id);

	return c ? &c->names : NULL;
}

void hostmaps_containers_release(struct hostmaps *hm)
{
	struct told_container *c, *next;

	HASH_ITER (hh, hm->containers, c, next) {
		HASH_DEL(hm->containers, c);
		container_names_release(&c->names);
		free(c);
	}
}

/* ---- packets ---- */

static int on_message(struct hostmaps *hm, const struct mapspack_msg *msg,
		      const int fds[MP_FDS_MAX])
{
	if (hm->no_mappings &&
	    (msg->type == MP_MAP || msg->type == MP_IMAGE || msg->type == MP_INDEX))
		return 0;
	hm->changes += msg->type != MP_WATERMARK && msg->type != MP_COST && msg->type != MP_USED;
	switch (msg->type) {
	case MP_HELLO:
		if (msg->m.hello.version != MP_VERSION)
			return -EPROTO;
		on_hello(hm, &msg->m.hello);
		break;
	case MP_SEEDED:
		on_seeded(hm);
		break;
	case MP_PROCESS:
		on_process(hm, msg);
		break;
	case MP_EXIT:
		on_exit_(hm, &msg->m.exit);
		break;
	case MP_USED:
		on_used(hm, &msg->m.used);
		break;
	case MP_ARGS:
		on_args(hm, msg);
		break;
	case MP_IMAGE:
		hostmaps_on_image(hm, msg);
		break;
	case MP_INDEX:
		hostmaps_on_index(hm, msg, fds[0]);
		break;
	case MP_CONTAINER:
		on_container(hm, msg);
		break;
	case MP_MAP:
		hostmaps_on_map(
			hm,
			process_find(hm, msg->m.map.tgid, msg->m.map.start_ns, msg->m.map.exec_id),
			&msg->m.map);
		break;
	case MP_WATERMARK:
		on_watermark(hm, &msg->m.watermark);
		break;
	case MP_LOST:
		hm->lost += msg->m.lost.records ? msg->m.lost.records : 1;
		hostmaps_unsure(hm, msg->m.lost.time_ns);
		break;
	case MP_COST:
		on_cost(hm, &msg->m.cost);
		break;
	case MP_TABLES:
		return on_tables(hm, fds);
	default:
		break;
	}
	return 0;
}

int hostmaps_packet(struct hostmaps *hm, const void *packet, size_t len, const int fds[MP_FDS_MAX])
{
	struct mapspack_msg msg;
	size_t pos = 0;
	int rc;

	while ((rc = mapspack_next(packet, len, &pos, &msg)) == 1) {
		rc = on_message(hm, &msg, fds);
		if (rc)
			return rc;
	}
	return rc;
}

bool hostmaps_has_mappings(const struct hostmaps *hm)
{
	return !hm->no_mappings;
}

bool hostmaps_seeded(const struct hostmaps *hm)
{
	return hm->seeded;
}

uint64_t hostmaps_changes(const struct hostmaps *hm)
{
	return hm->changes;
}

uint64_t hostmaps_watermark(const struct hostmaps *hm)
{
	return hm->watermark;
}

uint64_t hostmaps_lost(const struct hostmaps *hm)
{
	return hm->lost;
}

void hostmaps_cost(const struct hostmaps *hm, struct hostmaps_cost *c)
{
	*c = hm->cost;
	c->cpu_ns += hm->cost_before.cpu_ns;
	c->index_cpu_ns += hm->cost_before.index_cpu_ns;
	c->bpf_ns += hm->cost_before.bpf_ns;
	c->bpf_runs += hm->cost_before.bpf_runs;
}
