/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-cpu: where CPU time goes, by sampling every CPU. This file is the cpu family's translation
 * between its BPF program and the common loop of loaders/lib/bpf.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/sampler.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "probes/cpu.h"
#include "probes/cpu.skel.h"
#include "schema/base/mem.h"

_Static_assert(SAMPLE_TALLY_SLOTS == FAMILY_TALLY_SLOTS, "same histogram");

struct cpu {
	struct cpu_bpf *skel;
	struct sampler sampler;
	struct bpf_link *links[2];
	uint32_t freq;
};

static void cpu_configure(struct cpu_bpf *skel, const struct family_config *c)
{
	const struct family_target *t = c->target;
	int64_t depth = sysctl_kernel("perf_event_max_stack", STACK_KERNEL_MAX);

	if (depth > 0 && depth < STACK_KERNEL_MAX)
		skel->rodata->stack_depth = (uint32_t)depth;
	bpf_map__set_max_entries(skel->maps.events, (uint32_t)c->ring_bytes);
	skel->rodata->ring_bytes = (uint32_t)c->ring_bytes;
	bpf_map__set_max_entries(skel->maps.late, (uint32_t)c->late_bytes);
	scope_configure(skel->obj, t, &skel->rodata->scope);
	bpf_program__set_autoload(skel->progs.cpu_fork, t->follow_children);
	bpf_program__set_autoload(skel->progs.cpu_exit, t->follow_children);
	leftout_disable(skel->obj);
}

static const struct leftout_program OPTIONAL[] = {
	{"cpu_fork", "child processes of the command are not followed"},
	{"cpu_exit",
	 "processes that ended keep their places in the set of those that are followed"},
	{0}};

static struct cpu_bpf *cpu_skel(const char *store_dir)
{
	char path[PATH_MAX];
	size_t size;
	const void *elf = cpu_bpf__elf_bytes(&size);
	LIBBPF_OPTS(bpf_object_open_opts, o,
		    .btf_custom_path = kerneltypes_path(store_dir, elf, size, path));

	return cpu_bpf__open_opts(&o);
}

static int cpu_load(const struct family_config *c, uint32_t kinds, struct cpu_bpf **out)
{
	struct cpu_bpf *skel = cpu_skel(c->store_dir);
	int err;

	if (!skel)
		return -errno;
	cpu_configure(skel, c);
	skel->rodata->runtimes_on = kinds != 0;
	skel->rodata->runtime_kinds = kinds;
	scripts_configure(skel->obj, kinds);
	err = tables_reuse(skel->obj, c->tables);
	if (!err)
		err = cpu_bpf__load(skel);
	if (!err)
		err = scope_fill(skel->obj, c->target);
	if (err)
		cpu_bpf__destroy(skel);
	else
		*out = skel;
	return err;
}

static int cpu_open(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e)
{
	struct cpu_bpf *skel = NULL;
	struct cpu *cpu;
	int err;

	do {
		err = -EINVAL;
		for (size_t i = 0; i < SCRIPTS_TRIES && scripts_refused(err); i++)
			err = cpu_load(c, SCRIPTS_KINDS[i], &skel);
	} while (err && leftout_next(OPTIONAL, err));
	if (err)
		return load_error(err, "cpu", e);
	cpu = mem_alloc(sizeof(*cpu));
	cpu->skel = skel;
	cpu->freq = c->freq;
	*state = cpu;
	*obj = skel->obj;
	return 0;
}

static int cpu_follow(struct bpf_program *prog, struct bpf_link **link, struct err *e)
{
	if (bpf_program__fd(prog) < 0)
		return 0;
	*link = bpf_program__attach(prog);
	return *link ? 0 : load_error(-errno, bpf_program__name(prog), e);
}

static int cpu_attach(void *state, struct err *e)
{
	struct cpu *cpu = state;
	int err = cpu_follow(cpu->skel->progs.cpu_fork, &cpu->links[0], e);

	if (!err)
		err = cpu_follow(cpu->skel->progs.cpu_exit, &cpu->links[1], e);
	if (!err)
		err = sampler_start(&cpu->sampler, cpu->freq,
				    bpf_program__fd(cpu->skel->progs.cpu_sample), e);
	return err;
}

static void cpu_tick(void *state)
{
	sampler_tick(&((struct cpu *)state)->sampler);
}

/* The kernel's stacks are walked by its own tables from now on (probes/lib/kstack.bpf.h). */
static void cpu_symbols(void *state, const struct kallsyms *k)
{
	struct kstack_tables *t = &((struct cpu *)state)->skel->bss->kstack_tables;
	struct kallsyms_orc orc;

	if (!kallsyms_orc(k, &orc) || orc.ips_end - orc.ips > 4 * (uint64_t)KSTACK_ENTRIES_MAX)
		return;
	t->text = orc.text;
	t->text_bytes = orc.text_end - orc.text;
	t->ips = orc.ips;
	t->entries = orc.entries;
	t->hook = orc.hook;
	__atomic_store_n(&t->count, (uint32_t)((orc.ips_end - orc.ips) / 4), __ATOMIC_RELEASE);
}

static int cpu_ring_fd(void *state)
{
	return bpf_map__fd(((struct cpu *)state)->skel->maps.events);
}

static int cpu_late_fd(void *state)
{
	return bpf_map__fd(((struct cpu *)state)->skel->maps.late);
}

/* One record is one sample, if its counts and its size agree. */
static int cpu_record_amount(void *state, const void *record, size_t size, uint64_t *n)
{
	const struct stack_event *ev = record;

	(void)state;
	if (size < sizeof(*ev) || ev->n_kernel > STACK_KERNEL_MAX || ev->n_user > STACK_USER_MAX ||
	    size < sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(__u64))
		return -EBADMSG;
	*n = 1;
	return 0;
}

static uint64_t cpu_period_ns(void *state)
{
	return sampler_period_ns(&((struct cpu *)state)->sampler);
}

static const char *cpu_clock(void *state)
{
	return ((struct cpu *)state)->sampler.cycles ? "cycles" : "cpu-clock";
}

static void cpu_tally(void *state, struct family_tally *out)
{
	struct cpu *cpu = state;
	struct sample_tally sum;

	percpu_sum(bpf_map__fd(cpu->skel->maps.tally), &sum, sizeof(sum));
	*out = (struct family_tally){.throttled = sampler_throttled(&cpu->sampler),
				     .seen = sum.seen,
				     .lost = sum.ring_full,
				     .unfollowed = sum.unfollowed,
				     .run_ns = sum.run_ns};
	for (int k = 0; k < SAMPLE_TALLY_SLOTS; k++)
		out->slot[k] = sum.slot[k];
}

static uint64_t cpu_seen(void *state)
{
	struct sample_tally sum;

	percpu_sum(bpf_map__fd(((struct cpu *)state)->skel->maps.tally), &sum, sizeof(sum));
	return sum.seen;
}

static void cpu_detach(void *state)
{
	struct cpu *cpu = state;

	sampler_stop(&cpu->sampler);
	for (int i = 0; i < 2; i++) {
		bpf_link__destroy(cpu->links[i]);
		cpu->links[i] = NULL;
	}
}

static void cpu_close(void *state)
{
	struct cpu *cpu = state;

	cpu_detach(cpu);
	cpu_bpf__destroy(cpu->skel);
	free(cpu);
}

static void cpu_check(struct check *c, uint32_t freq)
{
	struct err e = {0};
	bool cycles;

	if (sampler_probe(freq, &cycles, &e))
		check_add_err(c, "perf events", &e);
	else if (cycles)
		check_add(c, "perf events", CHECK_OK, NULL, "hardware cycles");
	else
		check_add(
			c, "perf events", CHECK_WARN, NULL,
			"hardware cycles are not available here: using cpu-clock (fine for flame graphs)");
	if (sampler_allowed(freq) < freq)
		check_add(c, "sample rate", CHECK_WARN,
			  "sudo sysctl kernel.perf_event_max_sample_rate=100000",
			  "the kernel allows %u a second, not %u", sampler_allowed(freq), freq);
	else
		check_add(c, "sample rate", CHECK_OK, NULL, "%u Hz (the kernel allows %lld)", freq,
			  (long long)sysctl_kernel("perf_event_max_sample_rate", freq));
	check_add(c, "stack depth", CHECK_OK, NULL,
		  "%lld kernel frames (kernel.perf_event_max_stack), %d user frames",
		  (long long)sysctl_kernel("perf_event_max_stack", STACK_KERNEL_MAX),
		  STACK_USER_MAX);
}

static const struct family cpu_family = {
	.name = "cpu",
	.summary = "sample the stacks of all processes on the CPUs",
	.has_freq = true,
	.open = cpu_open,
	.attach = cpu_attach,
	.tick = cpu_tick,
	.symbols = cpu_symbols,
	.ring_fd = cpu_ring_fd,
	.late_fd = cpu_late_fd,
	.record_amount = cpu_record_amount,
	.period_ns = cpu_period_ns,
	.clock = cpu_clock,
	.tally = cpu_tally,
	.seen = cpu_seen,
	.detach = cpu_detach,
	.close = cpu_close,
	.check = cpu_check,
};

int main(int argc, char **argv)
{
	return family_main(&cpu_family, argc, argv);
}
