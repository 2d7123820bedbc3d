/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/procs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/mem.h"

/* One that has executed another program since keeps its sockets. */
static struct hostmaps_process *find(struct family_host *h, const struct net_owner *o)
{
	struct hostmaps_process *p = o->start_ns ? hostmaps_process(h->maps, o->tgid, o->start_ns,
								    o->exec_id) :
						   NULL,
				*now;

	if (p && p->end == HOSTMAPS_RUNS)
		return p;
	now = o->start_ns ? hostmaps_running(h->maps, o->tgid) : NULL;
	return now && now->start_ns == o->start_ns && !p ? now : p;
}

static void row_ask(struct store_rows_proc *p, struct family_host *h, struct hostmaps_process *m)
{
	const struct store_process unknown = {
		.pid = p->as.tgid,
		.exec_id = p->as.exec_id,
		.start_ticks = p->as.start_ns,
		.comm = *p->comm ? p->comm : STORE_PROCESS_UNKNOWN,
		.start_ns = p->as.start_ns ? (int64_t)p->as.start_ns + h->offset_ns : 0,
		.exe = "",
		.args = "",
		.cgroup = "",
		.unit = ""};

	p->epoch = store_epoch(h->store);
	if (m && naming_excludes(h->naming, m)) {
		p->excluded = true;
		p->row = naming_excluded_process(h->naming);
		p->container = 0;
	} else if (m) {
		p->row = naming_row(h->naming, m);
		p->container = naming_container(h->naming, m);
	} else {
		p->row = store_process(h->store, &unknown);
		p->container = 0;
	}
}

static void begin(struct store_rows_proc *p, struct family_host *h, const struct net_owner *holder)
{
	struct hostmaps_process *m = find(h, &p->as), *held = holder ? find(h, holder) : NULL;

	if (!m && held) {
		m = held;
		p->as = *holder;
	}
	if (m)
		snprintf(p->comm, sizeof(p->comm), "%s", m->comm);
	p->known = m;
	p->wanted = !target_is_narrow(h->target) || (m && target_covers(h->target, h->maps, m));
	row_ask(p, h, m);
}

struct store_rows_proc *procs_get(struct store_rows_proc **all, struct family_host *h,
				  const struct net_owner *who, const struct net_owner *holder)
{
	struct store_rows_proc *p;

	HASH_FIND(hh, *all, who, sizeof(*who), p);
	if (p)
		return p;
	p = mem_alloc(sizeof(*p));
	p->who = p->as = *who;
	HASH_ADD(hh, *all, who, sizeof(p->who), p);
	begin(p, h, holder);
	return p;
}

void procs_clear(struct store_rows_proc **all)
{
	struct store_rows_proc *p, *next;

	HASH_ITER (hh, *all, p, next) {
		HASH_DEL(*all, p);
		free(p);
	}
}

bool procs_excluded(const struct store_rows_proc *p)
{
	return p->excluded;
}

bool procs_covered(const struct store_rows_proc *p, struct family_host *h)
{
	h->unknown += !p->wanted && !p->known && p->as.start_ns &&
		      target_may_cover(h->target, p->as.tgid);
	return p->wanted;
}

uint32_t procs_row(struct store_rows_proc *p, struct family_host *h)
{
	if (p && p->epoch != store_epoch(h->store))
		row_ask(p, h, find(h, &p->as));
	return p ? p->row : 0;
}

uint32_t procs_container(struct store_rows_proc *p, struct family_host *h)
{
	return procs_row(p, h) ? p->container : 0;
}

const char *procs_side(uint8_t side)
{
	return side == NET_SIDE_CLIENT ? "client" : side == NET_SIDE_SERVER ? "server" : "unknown";
}
