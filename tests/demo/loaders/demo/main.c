/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-demo: stacks of page faults (kind fault), and how much memory each process has (a gauge).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/lib/stack.h"
#include "probes/demo.skel.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/demo.h"
#include "schema/store/write/writer.h"

static struct demo_opts {
	uint32_t every;
} opts = {.every = 1000};

static const struct option options[] = {
	{"every", 0, OPTION_UINT, "N", "take the stack of one in N page faults (default 1000)",
	 OPTION_AT(struct demo_opts, every), .min = 1, .max = 1000000},
	{0},
};

struct demo {
	struct demo_bpf *skel;
	struct family_host *h;
	int64_t due_ns;
};

static void demo_close(void *state)
{
	demo_bpf__destroy(((struct demo *)state)->skel);
	free(state);
}

static int demo_load(struct demo_bpf *skel, const struct family_config *c)
{
	int err;

	scope_configure(skel->obj, c->target, &skel->rodata->scope);
	scripts_configure(skel->obj, 0);
	programs_keep_still(skel->obj);
	skel->rodata->runtimes_on = false;
	skel->rodata->every = opts.every;
	err = tables_reuse(skel->obj, c->tables);
	if (!err)
		err = demo_bpf__load(skel);
	return err ? err : scope_fill(skel->obj, c->target);
}

static int demo_open(const struct family_config *c, void **state, struct bpf_object **obj,
		     struct err *e)
{
	struct demo *d = mem_alloc(sizeof(*d));
	int err;

	d->skel = demo_bpf__open();
	err = d->skel ? demo_load(d->skel, c) : -errno;
	if (err) {
		demo_close(d);
		return load_error(err, "demo", e);
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

/* --- rows of processes --- */

static void resident_store(void *ctx, struct hostmaps_process *p)
{
	struct demo *d = ctx;
	struct fact_row row = {0};
	unsigned long long pages;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/statm", p->tgid);
	cleanup_file FILE *f = p->end == HOSTMAPS_RUNS ? fopen(path, "re") : NULL;
	if (!f || fscanf(f, "%*s %llu", &pages) != 1 || naming_excludes(d->h->naming, p))
		return;
	fact_put(&row, RESIDENT_PAGES, pages);
	event_row_put(d->h, d->due_ns - 1 + d->h->offset_ns, &RESIDENT_FACT, &row, RESIDENT_PROCESS,
		      p);
}

static void demo_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct demo *d = state;

	d->h = h;
	if (d->due_ns && now_ns >= d->due_ns && hostmaps_seeded(h->maps))
		hostmaps_each(h->maps, resident_store, d);
	h->next_ns = d->due_ns = family_bucket_end(h, now_ns);
}

/* --- stacks --- */

static int demo_ring_fd(void *state)
{
	return bpf_map__fd(((struct demo *)state)->skel->maps.events);
}

static int demo_late_fd(void *state)
{
	return bpf_map__fd(((struct demo *)state)->skel->maps.late);
}

/* A stack stands for `every` faults. */
static int demo_record_amount(void *state, const void *record, size_t size, uint64_t *n)
{
	const struct stack_event *ev = record;

	(void)state;
	if (size < sizeof(*ev) || ev->n_kernel > STACK_KERNEL_MAX || ev->n_user > STACK_USER_MAX ||
	    size < sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(__u64))
		return -EBADMSG;
	*n = opts.every;
	return 0;
}

static void demo_store_record(void *state, struct family_host *h, const struct stack_event *ev,
			      size_t size, struct naming_result *named)
{
	const struct store_amount a = {.n = opts.every, .value = opts.every};
	uint32_t series;
	int err = -ESTALE;

	(void)state;
	(void)size;
	for (int i = 0; ev && i < 3 && err == -ESTALE; i++) {
		naming_stack(h->naming, ev, (const uint64_t *)(ev + 1), named);
		series = store_series(h->store, h->run, named->process, "", 0, named->stack,
				      STORE_KIND_FAULT);
		err = store_amount(h->store, series, (int64_t)ev->time_ns + h->offset_ns, &a);
	}
	if (ev)
		*(err ? &h->refused : &h->added) += a.n;
}

static void demo_tally(void *state, struct family_tally *out)
{
	const struct demo_bpf__bss *b = ((struct demo *)state)->skel->bss;

	out->seen = b->stacks * opts.every;
	out->lost = b->ring_full * opts.every;
}

static const struct family demo_family = {
	.name = "demo",
	.summary = "stacks of page faults, and the memory of each process",
	.options = {options, &opts},
	.open = demo_open,
	.attach = demo_attach,
	.poll = demo_poll,
	.ring_fd = demo_ring_fd,
	.late_fd = demo_late_fd,
	.record_amount = demo_record_amount,
	.store_record = demo_store_record,
	.tally = demo_tally,
	.close = demo_close,
};

int main(int argc, char **argv)
{
	return family_main(&demo_family, argc, argv);
}
