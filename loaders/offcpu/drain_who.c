// SPDX-License-Identifier: Apache-2.0
/* drain_who: who the threads are that the program's sums are of. */
#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/naming.h"
#include "loaders/offcpu/drain_parts.h"
#include "loaders/offcpu/thread.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

struct drain_who *drain_who_find(struct drain *d, uint64_t id)
{
	uint64_t at;

	return idmap_get(&d->who, id, &at) ? (struct drain_who *)(uintptr_t)at : NULL;
}

void drain_who_read(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;
	struct drain_who *w;
	uint64_t id;

	memcpy(&id, key, sizeof(id));
	w = drain_who_find(r->d, id);
	if (!w) {
		w = mem_alloc(sizeof(*w));
		w->alive = r->d->turn;
		w->first = r->from_ns ? r->d->turn : r->d->turn + 1;
		idmap_set(&r->d->who, id, (uintptr_t)w);
	}
	memcpy(&w->who, value, sizeof(w->who));
}

void drain_thread_read(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_thread t;
	struct drain_who *w;
	uint64_t task;

	memcpy(&t, value, sizeof(t));
	w = drain_who_find(r->d, t.id);
	if (w)
		w->alive = r->d->turn;
	if (r->h->bucket_s < FAMILY_ALWAYS_S)
		return;
	memcpy(&task, key, sizeof(task));
	idmap_set(&r->threads, task, t.tid);
	idmap_set(&r->processes, t.tgid, 1);
}

/* Those that this reading met first, and whose thread is there no more under whatever name. */
void drain_briefs_judge(struct reading *r)
{
	struct drain *d = r->d;
	uint64_t tid;

	for (size_t i = 0; i < d->who.cap; i++) {
		struct drain_who *w = d->who.slots[i].used ?
					      (struct drain_who *)(uintptr_t)d->who.slots[i].value :
					      NULL;

		if (!w || w->first != d->turn ||
		    (idmap_get(&r->threads, w->who.task, &tid) && tid == w->who.tid))
			continue;
		w->brief = (int64_t)w->who.start_ns < r->from_ns ||
					   idmap_get(&r->processes, w->who.tgid, NULL) ?
				   DRAIN_BRIEF_THREAD :
				   DRAIN_BRIEF_PROCESS;
		w->task = 0; /* who asked for it meanwhile was told of it by itself */
	}
	idmap_release(&r->threads);
	idmap_release(&r->processes);
}

/* Of which process and which thread it is told (thread.h). Where buckets are long, processes that
 * came and went are one by cgroup and command: on a host that starts a hundred programs a second
 * four fifths of the rows were of these. */
uint32_t drain_who_process(struct reading *r, const struct drain_who *w,
			   char thread[STACK_COMM_LEN + 1], uint32_t *tid)
{
	struct naming_result named;
	struct stack_event ev = {.start_ns = w->who.start_ns,
				 .tgid = w->who.tgid,
				 .tid = w->who.tid,
				 .exec_id = w->who.exec_id,
				 .cgroup_id = w->who.cgroup_id,
				 .flags = (uint16_t)w->who.flags,
				 .time_ns = (uint64_t)r->d->read_ns};

	memcpy(ev.thread, w->who.comm, sizeof(ev.thread));
	if (w->brief == DRAIN_BRIEF_PROCESS)
		naming_brief(r->h->naming, &ev, &named);
	else
		naming_stack(r->h->naming, &ev, NULL, &named);
	*tid = w->brief ? 0 : w->who.tid;
	thread_told(r->h, &named, w->who.comm, w->who.tgid, thread, tid);
	return named.process;
}

/* The store's id of a thread; 0: it is not known (yet). */
uint32_t drain_who_task(struct reading *r, struct drain_who *w)
{
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid, process;

	if (!w)
		return 0;
	if (w->task && w->epoch == store_epoch(r->h->store) &&
	    w->turned == naming_turned(r->h->naming))
		return w->task;
	process = drain_who_process(r, w, thread, &tid);
	w->task = store_task(r->h->store, r->h->run, process, thread, tid);
	w->epoch = store_epoch(r->h->store);
	w->turned = naming_turned(r->h->naming);
	return w->task;
}

uint32_t drain_thread(struct drain *d, struct family_host *h, uint64_t id)
{
	struct reading r = {.d = d, .h = h};
	struct offcpu_who who;

	if (!drain_who_find(d, id) && !bpf_map_lookup_elem(d->maps.who, &id, &who))
		drain_who_read(&r, &id, &who);
	return drain_who_task(&r, drain_who_find(d, id));
}

/* Whoever this was, it has been forgotten, and something was still added afterwards (by who had
 * been a CPU's neighbour long ago): that entry goes too. The number of a thread tells when it was
 * given (thread_identify). */
bool drain_who_forgotten(const struct drain *d, uint64_t id)
{
	return ((id & ((1ull << 40) - 1)) << 16) + 5000000000ull < (uint64_t)d->read_ns;
}

/* Its thread was not there when the reading before this one began: nothing of it has changed since.
 */
bool drain_who_gone(const struct drain *d, const struct drain_who *w)
{
	return w && w->alive + 2 <= d->turn;
}

/* Those that are gone are known here for a while: a wait whose stack is unwound late tells then who
 * ended it. */
void drain_who_forget(struct drain *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->who.cap;) {
		struct idmap_slot *s = &d->who.slots[i];
		struct drain_who *w = s->used ? (struct drain_who *)(uintptr_t)s->value : NULL;
		uint64_t id = s->key;

		if (!w || w->alive + 2 > d->turn) {
			i++;
			continue;
		}
		if (!w->removed_ns)
			bpf_map_delete_elem(d->maps.who, &id);
		w->removed_ns = w->removed_ns ?: d->read_ns;
		if (d->read_ns - w->removed_ns < DRAIN_KEPT_NS && kept++ < DRAIN_KEPT_MOST) {
			i++;
			continue;
		}
		idmap_del(&d->who, id);
		free(w);
	}
}
