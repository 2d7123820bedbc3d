/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* python_check: the Python frames of one thread at each sample, by probes/runtimes/python.h. */
#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>

#include "probes/runtimes/python.h"
#include "tests/unit/probes/python_check.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct python_layout layout = {};
struct python_check check = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_walk);
} walks SEC(".maps");

static __always_inline int python_read(struct python_walk *w, __u64 addr, __u64 *value)
{
	return bpf_probe_read_user(value, sizeof(*value), (void *)addr) ? -1 : 0;
}

__noinline int check_begin(__u32 unused)
{
	__u32 zero = 0;
	struct python_walk *w = bpf_map_lookup_elem(&walks, &zero);

	return w ? python_begin(w, &layout, check.thread) : -1;
}

/* Pops a frame; 0: that was the last. */
__noinline int check_next(__u32 at)
{
	__u32 zero = 0, n;
	struct python_walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct python_check_sample *s = &check.samples[at & (PYTHON_CHECK_SAMPLES - 1)];

	if (!w)
		return 0;
	s->step = python_next(w, &layout);
	if (s->step == PYTHON_END || s->step == PYTHON_FAULT)
		return 0;
	n = s->n;
	if (s->step == PYTHON_SHIM || n >= PYTHON_CHECK_FRAMES)
		return 1;
	s->code[n] = w->code;
	s->n = n + 1;
	return 1;
}

SEC("perf_event")
int check_sample(void *ctx)
{
	__u32 sample = check.taken;

	if (bpf_get_current_pid_tgid() >> 32 != check.tgid || sample >= PYTHON_CHECK_SAMPLES)
		return 0;
	check.taken = sample + 1;
	if (check_begin(0))
		return 0;
	for (int i = 0; i < 2 * PYTHON_CHECK_FRAMES; i++)
		if (!check_next(sample))
			break;
	return 0;
}
