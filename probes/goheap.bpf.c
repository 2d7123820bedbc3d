/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * goheap: what a Go process held when it ended. signal_deliver runs in each thread of a process
 * that is about to die of a signal (a kill for memory is one), before it gives up its memory; the
 * first of them reads. exit_group(2) ends the other threads by the same way, so that a program that
 * returns from main is seen too, if it had more than one thread, as every Go program has.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/goheap.h"
#include "probes/lib/preempt.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SIGKILL 9
#define SIGNALS 64
/* of an exit code as wait(2) has it: the signal, 0: it returned code >> 8 */
#define CODE_SIGNAL 0x7f

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct signal_struct___goheap {
	int group_exit_code;
	struct mm_struct *oom_mm; /* set: killed for memory */
};
struct sigaction___goheap {
	void *sa_handler;
};
struct k_sigaction {
	struct sigaction___goheap sa;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct goheap_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GOHEAP_ADDRESSES);
	__type(key, __u32);
	__type(value, __u64);
} addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct goheap_tally);
} tally SEC(".maps");

/* Does a signal with this action end the process? The runtime handles what it can; what it dies of
 * has no handler then. */
static __always_inline bool is_fatal(int sig, struct k_sigaction *ka)
{
	/* CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH do nothing of the kind */
	const __u64 harmless = 1ull << 17 | 1ull << 18 | 1ull << 19 | 1ull << 20 | 1ull << 21 |
			       1ull << 22 | 1ull << 23 | 1ull << 28;

	if (sig == SIGKILL)
		return true;
	if (sig <= 0 || sig >= SIGNALS || harmless >> sig & 1)
		return false;
	return !BPF_CORE_READ(ka, sa.sa_handler);
}

static __always_inline struct goheap_process *process_of(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct goheap_process *p = bpf_map_lookup_elem(&processes, &tgid);

	if (!p || p->start_ns != BPF_CORE_READ(leader, start_boottime) ||
	    p->exec_id != (__u32)BPF_CORE_READ(leader, self_exec_id))
		return NULL;
	return p;
}

static __always_inline void cause_fill(struct goheap_last *out, struct task_struct *task, int sig)
{
	struct signal_struct___goheap *signal = (void *)BPF_CORE_READ(task, signal);
	int code = BPF_CORE_READ(signal, group_exit_code);

	out->cause = GOHEAP_SIGNAL;
	out->code = (__u32)sig;
	if (sig != SIGKILL)
		return;
	if (BPF_CORE_READ(signal, oom_mm)) {
		out->cause = GOHEAP_OOM;
	} else if (!(code & CODE_SIGNAL)) {
		out->cause = GOHEAP_EXIT;
		out->code = (__u32)code >> 8 & 0xff;
	} else {
		out->code = (__u32)code & CODE_SIGNAL;
	}
}

static __always_inline void records_read(struct goheap_last *out, const struct goheap_process *p)
{
	for (__u32 i = 0; i < GOHEAP_PIECE; i++) {
		__u32 at = p->first + out->first + i;
		__u64 *addr;

		if (i >= out->count)
			break;
		addr = bpf_map_lookup_elem(&addresses, &at);
		if (!addr ||
		    bpf_probe_read_user(out->records[i], GOHEAP_RECORD, (const void *)*addr))
			out->missing[i / 32] |= 1u << (i & 31);
	}
}

static __always_inline struct goheap_tally *tally_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tally, &zero);
}

/* One piece: 0, or 1: there is no more. */
__attribute__((noinline)) int piece_send(__u32 piece, int sig)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct goheap_process *p = process_of(task);
	struct goheap_tally *t = tally_here();
	struct goheap_last *out;
	__u32 first = piece * GOHEAP_PIECE;

	if (!p || !t || (first >= p->count && piece))
		return 1;
	out = bpf_ringbuf_reserve(&events, sizeof(*out), 0);
	if (!out) {
		t->ring_full++;
		return 0;
	}
	out->time_ns = bpf_ktime_get_boot_ns();
	out->start_ns = p->start_ns;
	out->tgid = bpf_get_current_pid_tgid() >> 32;
	out->exec_id = p->exec_id;
	cause_fill(out, task, sig);
	out->cycle = 0;
	out->cycle_known = p->cycle && !bpf_probe_read_user(&out->cycle, sizeof(out->cycle),
							    (const void *)p->cycle);
	out->first = first;
	out->count = p->count - first < GOHEAP_PIECE ? p->count - first : GOHEAP_PIECE;
	out->total = p->count;
	out->missing[0] = 0;
	records_read(out, p);
	bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
	t->pieces++;
	return 0;
}

TRACEPOINT(signal_deliver, goheap_last, int sig, void *info, struct k_sigaction *ka)
{
	struct goheap_process *p = process_of((void *)bpf_get_current_task());
	struct goheap_tally *t = tally_here();

	if (!p || !t || p->taken || !is_fatal(sig, ka))
		return 0;
	p->taken = 1;
	t->processes++;
	for (__u32 i = 0; i < GOHEAP_PIECES; i++)
		if (piece_send(i, sig))
			break;
	return 0;
}
