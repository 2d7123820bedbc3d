/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/run/who.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/store/write/facts.h"

struct who who_find(struct family_host *h, const struct who_id *id, const char *comm)
{
	struct who w = {.id = *id};

	if (id->tgid)
		w.p = hostmaps_process(h->maps, id->tgid, id->start_ns, id->exec_id);
	snprintf(w.comm, sizeof(w.comm), "%.*s", STACK_COMM_LEN, comm ? comm : "");
	w.wanted = !target_is_narrow(h->target) || (w.p && target_covers(h->target, h->maps, w.p));
	w.excluded = id->tgid && naming_excludes(h->naming, w.p);
	return w;
}

bool who_covered(struct family_host *h, const struct who *w)
{
	h->unknown += !w->wanted && w->id.tgid && !w->p && target_may_cover(h->target, w->id.tgid);
	return w->wanted;
}

uint32_t who_row(struct family_host *h, const struct who *w)
{
	struct stack_event ev = {.start_ns = w->id.start_ns,
				 .tgid = w->id.tgid,
				 .tid = w->id.tgid,
				 .exec_id = w->id.exec_id};

	if (!w->id.tgid)
		return 0;
	if (w->p)
		return naming_row(h->naming, w->p);
	memcpy(ev.thread, *w->comm ? w->comm : STORE_PROCESS_UNKNOWN,
	       strlen(*w->comm ? w->comm : STORE_PROCESS_UNKNOWN));
	return naming_stranger(h->naming, &ev);
}

void who_put(struct family_host *h, int64_t utc_ns, const struct fact *f, struct fact_row *row,
	     const struct who *who, int process, int container)
{
	int rc = -ESTALE;

	for (int i = 0; i < 3 && rc == -ESTALE; i++) {
		fact_put(row, process, who_row(h, who));
		fact_put(row, container,
			 who->p && !who->excluded ? naming_container(h->naming, who->p) : 0);
		rc = store_fact(h->store, h->run, utc_ns, f, row);
	}
	if (f->beside) /* such rows do not count as events (schema/facts/fact.h) */
		return;
	h->added += rc == 0;
	h->refused += rc == -ESTALE;
}
