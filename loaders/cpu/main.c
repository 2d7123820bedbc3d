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
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/sampler.h"
#include "loaders/lib/bpf/load/sampling.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "probes/cpu.h"
#include "probes/cpu.skel.h"
#include "schema/base/mem.h"

struct cpu {
	struct cpu_bpf *skel;
	struct sampler sampler;
	struct bpf_link *links[2];
	uint32_t freq;
};

static const struct leftout_program OPTIONAL[] = {
	{"cpu_fork", "child processes of the command are not followed"},
	{"cpu_exit",
	 "processes that ended keep their places in the set of those that are followed"},
	{0}};

SKELETON_OPEN(cpu)

static int cpu_load(const struct family_config *c, uint32_t kinds, void *out)
{
	struct cpu_bpf *skel = skel_open(c->store_dir);
	int err;

	if (!skel)
		return -errno;
	bpf_program__set_autoload(skel->progs.cpu_fork, c->target->follow_children);
	bpf_program__set_autoload(skel->progs.cpu_exit, c->target->follow_children);
	sampling_configure(skel->obj, c, kinds, SAMPLING_SETTINGS(skel));
	err = sampling_load(skel->skeleton, c);
	if (err)
		cpu_bpf__destroy(skel);
	else
		*(struct cpu_bpf **)out = skel;
	return err;
}

static int cpu_open(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e)
{
	struct cpu_bpf *skel = NULL;
	struct cpu *cpu;
	int err = sampling_tries(cpu_load, c, OPTIONAL, &skel);

	if (err)
		return load_error(err, "cpu", e);
	cpu = mem_alloc(sizeof(*cpu));
	cpu->skel = skel;
	cpu->freq = c->freq;
	*state = cpu;
	*obj = skel->obj;
	return 0;
}

static int cpu_attach(void *state, struct err *e)
{
	struct cpu *cpu = state;
	int err = sampling_attach(cpu->skel->progs.cpu_fork, &cpu->links[0], e);

	if (!err)
		err = sampling_attach(cpu->skel->progs.cpu_exit, &cpu->links[1], e);
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
	(void)state;
	if (!sampling_fits(record, size))
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

	sampling_tally(cpu->skel->maps.tally, out);
	out->throttled = sampler_throttled(&cpu->sampler);
}

static uint64_t cpu_seen(void *state)
{
	return sampling_sum(((struct cpu *)state)->skel->maps.tally).seen;
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
	.fine_s = 1,
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
