// SPDX-License-Identifier: Apache-2.0
/* container_events_oom: kills for want of memory, with the kernel's own account of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <unistd.h>

#include "loaders/host/events/container_events_parts.h"
#include "loaders/host/events/oomlog.h"
#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"

#define LOG_MAX    (1 << 20) /* bytes of the kernel's log, its newest */
#define LOG_READ   3         /* SYSLOG_ACTION_READ_ALL */
#define TASKS_TOLD 32

/* The newest of the kernel's log; "": it may not be read. The caller's. */
static char *log_read(size_t *len)
{
	char *text = mem_alloc(LOG_MAX + 1);
	int n = klogctl(LOG_READ, text, LOG_MAX);

	*len = n > 0 ? (size_t)n : 0;
	text[*len] = 0;
	return text;
}

/* One that is left out, or of which it is not known: with all others of those, in one row. */
static void tasks_put(struct container_events *x, const struct oomlog *o, int64_t utc_ns,
		      struct hostmaps_process *victim)
{
	struct oomlog_task out = {.comm = NAMING_EXCLUDED};
	size_t told = 0;

	for (size_t i = 0; i <= o->n_tasks && told < TASKS_TOLD; i++) {
		const struct oomlog_task *t = i < o->n_tasks ? &o->tasks[i] : &out;
		struct fact_row row = {0};
		char holder[40];

		if (i == o->n_tasks && !out.rss_bytes)
			break;
		if (i < o->n_tasks &&
		    naming_excludes(x->h->naming, t->pid == o->pid ?
							  victim :
							  hostmaps_running(x->h->maps, t->pid))) {
			out.rss_bytes += t->rss_bytes;
			out.swap_bytes += t->swap_bytes;
			continue;
		}
		snprintf(holder, sizeof(holder), "%s %u", t->comm, t->pid);
		fact_put_text(&row, OOM_TASK_HOLDER, holder);
		fact_put_text(&row, OOM_TASK_COMM, t->comm);
		fact_put(&row, OOM_TASK_PID, t->pid);
		fact_put(&row, OOM_TASK_RSS, t->rss_bytes);
		fact_put(&row, OOM_TASK_SWAP, t->swap_bytes);
		event_row_put(x->h, utc_ns, &OOM_TASK_FACT, &row, OOM_TASK_VICTIM, victim);
		told++;
	}
}

static void kill_put(struct container_events *x, const struct oomlog *o, int64_t utc_ns,
		     struct hostmaps_process *victim)
{
	struct fact_row row = {0};

	fact_put_text(&row, OOM_CGROUP, o->cgroup);
	fact_put_text(&row, OOM_OF, o->victim_cgroup);
	fact_put_text(&row, OOM_ASKED, o->asked_by);
	if (o->has_limit) {
		fact_put(&row, OOM_LIMIT, o->limit_bytes);
		fact_put(&row, OOM_USAGE, o->usage_bytes);
	}
	if (o->has_sizes) {
		fact_put(&row, OOM_ANON, o->anon_bytes);
		fact_put(&row, OOM_FILE, o->file_bytes);
		fact_put(&row, OOM_SHMEM, o->shmem_bytes);
	}
	fact_put(&row, OOM_AT, (uint64_t)(utc_ns / 1000));
	event_row_put(x->h, utc_ns, &OOM_FACT, &row, OOM_VICTIM, victim);
	tasks_put(x, o, utc_ns, victim);
}

/* `own`: the container's cgroup, whose limit needs no name; NULL: of no container. */
static void limit_say(const struct oomlog *o, const char *own, char *out, size_t size)
{
	size_t len;

	if (!o->cgroup[0]) {
		snprintf(out, size, "the host had no memory left");
		return;
	}
	if (own && !strcmp(o->cgroup, own))
		snprintf(out, size, "met its limit");
	else
		snprintf(out, size, "met the limit of %.400s", o->cgroup);
	len = strlen(out);
	if (o->has_limit)
		snprintf(out + len, size - len, ", %.4g MiB", (double)o->limit_bytes / (1 << 20));
}

static void oom_tell(struct container_events *x, const struct container_events_oom *v,
		     const char *log, size_t len, struct oomlog *o)
{
	struct hostmaps_process *p = container_events_process(x, &v->who);
	bool told = oomlog_find(log, len, v->who.tgid, (uint32_t)sysconf(_SC_PAGESIZE), o);
	char name[300] = "", detail[480] = "";
	struct event e = {.kind = "oom kill",
			  .subject = "process",
			  .name = name,
			  .detail = detail,
			  .process = p,
			  .utc_ns = container_events_utc(x, v->boot_ns)};
	struct container_ref ref;

	if (!p || naming_excludes(x->h->naming, p))
		return; /* its end is on record, as far as it may be */
	snprintf(name, sizeof(name), "%s", p->comm);
	if (*p->cgroup && container_parse(p->cgroup, strlen(p->cgroup), &ref) && ref.end) {
		container_events_name(x, &ref, name, sizeof(name));
		e.subject = "container";
		e.which = *ref.id ? ref.id : p->cgroup;
	}
	if (told) {
		limit_say(o, e.which ? p->cgroup : NULL, detail, sizeof(detail));
		kill_put(x, o, e.utc_ns, p);
	}
	event_put(x->h, &e);
}

void container_events_ooms_tell(struct container_events *x)
{
	cleanup_free char *log = NULL;
	struct oomlog *o;
	size_t len;

	if (!x->n_ooms)
		return;
	log = log_read(&len);
	o = mem_alloc(sizeof(*o));
	for (size_t i = 0; i < x->n_ooms; i++)
		oom_tell(x, &x->ooms[i], log, len, o);
	free(o);
	x->n_ooms = 0;
}
