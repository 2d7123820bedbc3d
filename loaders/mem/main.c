/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-mem: which code made memory grow, and what of it is still there. This file is the family's
 * translation between its BPF program and the common loop of loaders/lib/bpf.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/sampler.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/mem/held.h"
#include "loaders/mem/period.h"
#include "loaders/mem/stall.h"
#include "probes/mem.h"
#include "probes/mem.skel.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

_Static_assert(SAMPLE_TALLY_SLOTS == FAMILY_TALLY_SLOTS, "same histogram");

#define LINKS       10
#define STALL_LINKS 4   /* the first of them */
#define RATE        200 /* samples a second, while a person waits */
#define RATE_ALWAYS 40
/* A fault of processes that are left out interrupts them for a tenth of a sample's time or less. */
#define OUTSIDE         32
#define INTERVAL_NS     (2 * NSEC_PER_SEC) /* between readings of a process */
#define INTERVAL_ALWAYS (60 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS (NSEC_PER_SEC / 10)

static struct mem_opts {
	uint32_t period; /* 0: by the number of faults */
	int64_t interval_ns;
} opts;

struct mem {
	struct mem_bpf *skel;
	struct sampler sampler;
	struct period period;
	struct bpf_link *links[LINKS];
	struct held *held; /* NULL: not begun */
};

static const struct option mem_options[] = {
	{"period", 0, OPTION_UINT, "N",
	 "sample each Nth page fault of a CPU (default: by their number, 200 samples a second; with --bucket 10s 40)",
	 OPTION_AT(struct mem_opts, period), .min = 1, .max = PERIOD_MAX},
	{"interval", 0, OPTION_DURATION, "TIME",
	 "time between two looks at what a process still holds (default 2s, with --bucket 10s 1m)",
	 OPTION_AT(struct mem_opts, interval_ns), .min = INTERVAL_MIN_NS},
	{0}};

/* ---- open ---- */

static const struct leftout_program OPTIONAL[] = {
	{"mem_fault_vma",
	 "memory that is gone within a second is not told from files' pages (needs Linux 5.17)"},
	{"mem_mapped",
	 "memory that is freed and mapped again at the same place counts as held more than once"},
	{"mem_stall_begin", "waits for memory are not seen"},
	{"mem_stall_end", "waits for memory are not seen"},
	{"mem_victim",
	 "what a process held that was killed for memory is that of the last look at it"},
	{"mem_fork", "child processes of the command are not followed"},
	{"mem_exit",
	 "processes that ended keep their places in the set of those that are followed"},
	{0}};

static void mem_configure(struct mem_bpf *skel, const struct family_config *c)
{
	const struct family_target *t = c->target;
	int64_t depth = sysctl_kernel("perf_event_max_stack", STACK_KERNEL_MAX);

	if (depth > 0 && depth < STACK_KERNEL_MAX)
		skel->rodata->stack_depth = (uint32_t)depth;
	bpf_map__set_max_entries(skel->maps.events, (uint32_t)c->ring_bytes);
	skel->rodata->ring_bytes = (uint32_t)c->ring_bytes;
	bpf_map__set_max_entries(skel->maps.late, (uint32_t)c->late_bytes);
	scope_configure(skel->obj, t, &skel->rodata->scope);
	bpf_program__set_autoload(skel->progs.mem_fork, t->follow_children);
	bpf_program__set_autoload(skel->progs.mem_exit, t->follow_children);
	bpf_program__set_autoload(skel->progs.mem_fault_vma, !leftout_is("mem_fault_vma"));
	bpf_program__set_autoload(skel->progs.mem_fault, leftout_is("mem_fault_vma"));
	programs_keep_still(skel->obj);
	leftout_disable(skel->obj);
}

static struct mem_bpf *mem_skel(const char *store_dir)
{
	char path[PATH_MAX];
	size_t size;
	const void *elf = mem_bpf__elf_bytes(&size);
	LIBBPF_OPTS(bpf_object_open_opts, o,
		    .btf_custom_path = kerneltypes_path(store_dir, elf, size, path));

	return mem_bpf__open_opts(&o);
}

static int mem_load(const struct family_config *c, uint32_t kinds, struct mem_bpf **out)
{
	struct mem_bpf *skel = mem_skel(c->store_dir);
	int err;

	if (!skel)
		return -errno;
	mem_configure(skel, c);
	skel->rodata->runtimes_on = kinds != 0;
	skel->rodata->runtime_kinds = kinds;
	scripts_configure(skel->obj, kinds);
	err = tables_reuse(skel->obj, c->tables);
	if (!err)
		err = mem_bpf__load(skel);
	if (!err)
		err = scope_fill(skel->obj, c->target);
	if (err)
		mem_bpf__destroy(skel);
	else
		*out = skel;
	return err;
}

static int mem_open(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e)
{
	struct mem_bpf *skel = NULL;
	struct mem *m;
	int err;

	do {
		err = -EINVAL;
		for (size_t i = 0; i < SCRIPTS_TRIES && scripts_refused(err); i++)
			err = mem_load(c, SCRIPTS_KINDS[i], &skel);
	} while (err && leftout_next(OPTIONAL, err));
	if (err)
		return load_error(err, "mem", e);
	m = mem_alloc(sizeof(*m));
	m->skel = skel;
	period_init(&m->period, opts.period, c->bucket_s >= FAMILY_ALWAYS_S ? RATE_ALWAYS : RATE);
	*state = m;
	*obj = skel->obj;
	return 0;
}

static int mem_follow(struct bpf_program *prog, struct bpf_link **link, struct err *e)
{
	if (bpf_program__fd(prog) < 0)
		return 0;
	*link = bpf_program__attach(prog);
	return *link ? 0 : load_error(-errno, bpf_program__name(prog), e);
}

/* A kernel that lacks one of them (compaction and cgroups can be left out of it) has the others. */
static void stalls_attach(struct mem *m)
{
	static const char *const hooks[] = {"mm_vmscan_direct_reclaim", "mm_vmscan_memcg_reclaim",
					    "mm_compaction"};
	struct bpf_program *begin = programs_used(m->skel->obj, m->skel->progs.mem_stall_begin),
			   *end = programs_used(m->skel->obj, m->skel->progs.mem_stall_end);
	char name[64];

	if (bpf_program__fd(begin) < 0 || bpf_program__fd(end) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		struct bpf_link **link = &m->links[STALL_LINKS + 2 * i];

		snprintf(name, sizeof(name), "%s_end", hooks[i]);
		link[0] = bpf_program__attach_raw_tracepoint(end, name);
		snprintf(name, sizeof(name), "%s_begin", hooks[i]);
		if (link[0])
			link[1] = bpf_program__attach_raw_tracepoint(begin, name);
		if (!link[1])
			log_warn(
				"this kernel has no tracepoint %s: waits for memory there are not seen",
				name);
	}
}

static int mem_attach(void *state, struct err *e)
{
	struct mem *m = state;
	int vma = bpf_program__fd(m->skel->progs.mem_fault_vma),
	    err = mem_follow(m->skel->progs.mem_fork, &m->links[0], e);

	stalls_attach(m);
	if (!err)
		err = mem_follow(programs_used(m->skel->obj, m->skel->progs.mem_victim),
				 &m->links[3], e);

	if (!err)
		err = mem_follow(m->skel->progs.mem_exit, &m->links[1], e);
	if (!err)
		err = mem_follow(programs_used(m->skel->obj, m->skel->progs.mem_mapped),
				 &m->links[2], e);
	if (!err)
		err = sampler_start_faults(
			&m->sampler, period_next(&m->period, 0, clock_boot_ns()),
			vma >= 0 ? vma : bpf_program__fd(m->skel->progs.mem_fault), e);
	return err;
}

/* ---- while it records ---- */

static struct sample_tally tally_read(const struct mem *m)
{
	struct sample_tally sum;

	percpu_sum(bpf_map__fd(m->skel->maps.tally), &sum, sizeof(sum));
	return sum;
}

static void mem_tick(void *state)
{
	struct mem *m = state;
	struct sample_tally sum = tally_read(m);
	uint64_t outside = 0;

	sampler_tick(&m->sampler);
	percpu_sum(bpf_map__fd(m->skel->maps.outside), &outside, sizeof(outside));
	sampler_set_period(&m->sampler,
			   period_next(&m->period, sum.seen + outside / OUTSIDE, clock_boot_ns()));
}

static struct held *held_of(struct mem *m, const struct family_host *h)
{
	if (!m->held)
		m->held = held_new(opts.interval_ns               ? opts.interval_ns :
				   h->bucket_s >= FAMILY_ALWAYS_S ? INTERVAL_ALWAYS :
								    INTERVAL_NS);
	return m->held;
}

static void mem_poll(void *state, struct family_host *h, int64_t now_ns)
{
	held_poll(held_of(state, h), h, now_ns);
}

static void mem_store_record(void *state, struct family_host *h, const struct stack_event *record,
			     size_t size, struct naming_result *named)
{
	if (record && record->end == MEM_RECORD_MAPPED)
		held_mapped(held_of(state, h), (const struct mem_mapped *)record);
	else if (record && record->end == MEM_RECORD_VICTIM)
		held_victim(held_of(state, h), h, (const struct mem_victim *)record);
	else if (record && MEM_IS_STALL(record->tag))
		stall_store(h, record, named);
	else if (record)
		held_sample(held_of(state, h), h, record, size, named);
}

static int mem_ring_fd(void *state)
{
	return bpf_map__fd(((struct mem *)state)->skel->maps.events);
}

static int mem_late_fd(void *state)
{
	return bpf_map__fd(((struct mem *)state)->skel->maps.late);
}

/* One record is one sample, if its counts and its size agree; it represents `period` faults. Of a
 * process that is being killed a note is taken at once: what it has left is not what it held. */
static int mem_record_amount(void *state, const void *record, size_t size, uint64_t *n)
{
	const struct stack_event *ev = record;
	struct mem *m = state;

	if (size < sizeof(*ev) || ev->n_kernel > STACK_KERNEL_MAX || ev->n_user > STACK_USER_MAX ||
	    size < sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(__u64))
		return -EBADMSG;
	if (ev->end == MEM_RECORD_MAPPED) {
		*n = 0;
		return size < sizeof(struct mem_mapped) ? -EBADMSG : 0;
	}
	if (ev->end == MEM_RECORD_VICTIM) {
		const struct mem_victim *v = record;

		*n = 0;
		if (size < sizeof(*v))
			return -EBADMSG;
		if (m->held)
			held_dying(m->held, v);
		return 0;
	}
	*n = MEM_IS_STALL(ev->tag) ? 1 : MEM_PERIOD(ev->tag);
	return 0;
}

static uint64_t mem_period_ns(void *state)
{
	(void)state;
	return 0; /* values are themselves */
}

static const char *mem_clock(void *state)
{
	(void)state;
	return "page faults";
}

static void mem_tally(void *state, struct family_tally *out)
{
	struct sample_tally sum = tally_read(state);

	*out = (struct family_tally){.seen = sum.seen,
				     .lost = sum.ring_full,
				     .unfollowed = sum.unfollowed,
				     .run_ns = sum.run_ns};
	for (int k = 0; k < SAMPLE_TALLY_SLOTS; k++)
		out->slot[k] = sum.slot[k];
}

static uint64_t mem_seen(void *state)
{
	return tally_read(state).seen;
}

/* ---- end ---- */

static void mem_detach(void *state)
{
	struct mem *m = state;

	sampler_stop(&m->sampler);
	for (int i = 0; i < LINKS; i++) {
		bpf_link__destroy(m->links[i]);
		m->links[i] = NULL;
	}
}

static void mem_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	mem_detach(state);
	held_finish(held_of(state, h), h, clock_boot_ns() + patience_ns);
}

static void mem_close(void *state)
{
	struct mem *m = state;

	mem_detach(m);
	held_free(m->held);
	mem_bpf__destroy(m->skel);
	free(m);
}

static void mem_check(struct check *c, uint32_t freq)
{
	struct err e = {0};

	(void)freq;
	if (sampler_probe_faults(&e))
		check_add_err(c, "page faults", &e);
	else
		check_add(c, "page faults", CHECK_OK, NULL, "counted by the kernel");
}

static const struct family mem_family = {
	.name = "mem",
	.summary = "sample the page faults of all processes: which code makes memory grow",
	.options = {mem_options, &opts},
	.open = mem_open,
	.attach = mem_attach,
	.poll = mem_poll,
	.last_read = mem_last_read,
	.tick = mem_tick,
	.ring_fd = mem_ring_fd,
	.late_fd = mem_late_fd,
	.record_amount = mem_record_amount,
	.store_record = mem_store_record,
	.period_ns = mem_period_ns,
	.clock = mem_clock,
	.tally = mem_tally,
	.seen = mem_seen,
	.detach = mem_detach,
	.close = mem_close,
	.check = mem_check,
};

int main(int argc, char **argv)
{
	return family_main(&mem_family, argc, argv);
}
