// SPDX-License-Identifier: Apache-2.0
/* sonde-demo: page faults by process: a counter, how much of it is in memory (a gauge), and an
 * event where one had many. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/demo.h"
#include "probes/demo.skel.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/demo.h"

#define MANY 10000

struct demo {
	struct demo_bpf *skel;
	struct family_host *h;
	int64_t at_ns, due_ns;
};

static void demo_close(void *state)
{
	demo_bpf__destroy(((struct demo *)state)->skel);
	free(state);
}

static int demo_open(const struct family_config *c, void **state, struct bpf_object **obj,
		     struct err *e)
{
	struct demo *d = mem_alloc(sizeof(*d));
	int err;

	d->skel = demo_bpf__open();
	err = d->skel ? scope_load(d->skel->skeleton, c, &d->skel->rodata->scope, e) :
			load_error(-errno, "demo", e);
	if (err) {
		demo_close(d);
		return err;
	}
	*state = d;
	*obj = d->skel->obj;
	return 0;
}

static int demo_attach(void *state, struct err *e)
{
	int err = demo_bpf__attach(((struct demo *)state)->skel);

	return err ? load_error(err, "demo", e) : 0;
}

static void resident_read(uint32_t pid, struct fact_row *row)
{
	unsigned long long pages;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/statm", pid);
	cleanup_file FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%*s %llu", &pages) == 1)
		fact_put(row, FAULT_RESIDENT, pages);
}

/* What is new of this process. */
static void process_tell(void *ctx, struct hostmaps_process *p)
{
	struct demo *d = ctx;
	const struct demo_process key = {.tgid = p->tgid, .start_ns = p->start_ns};
	int64_t utc_ns = d->at_ns + d->h->offset_ns;
	struct fact_row row = {0};
	uint64_t now, told = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(d->skel->maps.faults), &key, &now) ||
	    naming_excludes(d->h->naming, p))
		return;
	bpf_map_lookup_elem(bpf_map__fd(d->skel->maps.told), &key, &told);
	if (now == told)
		return;
	fact_put(&row, FAULT_N, now - told);
	if (p->end == HOSTMAPS_RUNS)
		resident_read(p->tgid, &row);
	event_row_put(d->h, utc_ns, &FAULT_FACT, &row, FAULT_PROCESS, p);
	if (told < MANY && now >= MANY)
		event_put(d->h, &(struct event){.kind = "many page faults",
						.subject = "process",
						.name = p->comm,
						.process = p,
						.utc_ns = utc_ns});
	bpf_map_update_elem(bpf_map__fd(d->skel->maps.told), &key, &now, BPF_ANY);
}

static void demo_tell(struct demo *d, struct family_host *h, int64_t at_ns)
{
	d->h = h;
	d->at_ns = at_ns;
	hostmaps_each(h->maps, process_tell, d);
}

static void demo_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct demo *d = state;

	if (d->due_ns && now_ns >= d->due_ns && hostmaps_seeded(h->maps))
		demo_tell(d, h, d->due_ns - 1);
	h->next_ns = d->due_ns = family_bucket_end(h, now_ns);
}

/* An exec goes on as the same process. */
static void demo_process_ended(void *state, struct family_host *h, const struct hostmaps_process *p)
{
	struct demo *d = state;
	const struct demo_process key = {.tgid = p->tgid, .start_ns = p->start_ns};

	d->h = h;
	d->at_ns = (int64_t)p->to_ns;
	process_tell(d, (struct hostmaps_process *)p);
	if (p->end == HOSTMAPS_EXECED)
		return;
	bpf_map_delete_elem(bpf_map__fd(d->skel->maps.faults), &key);
	bpf_map_delete_elem(bpf_map__fd(d->skel->maps.told), &key);
}

static void demo_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	(void)patience_ns;
	demo_tell(state, h, clock_boot_ns());
}

static void demo_tally(void *state, struct family_tally *out)
{
	out->seen = out->lost = ((struct demo *)state)->skel->bss->lost;
}

static const struct family demo_family = {
	.name = "demo",
	.summary = "page faults of each process",
	.open = demo_open,
	.attach = demo_attach,
	.poll = demo_poll,
	.process_ended = demo_process_ended,
	.last_read = demo_last_read,
	.tally = demo_tally,
	.close = demo_close,
};

int main(int argc, char **argv)
{
	return family_main(&demo_family, argc, argv);
}
