/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps: reports processes as they begin, change their program and end, with what can only be read
 * at that moment: identity, cgroups, the root they see, and the first MAPS_ARGS_MAX bytes of
 * arguments. A process may be gone 50 ms later, and /proc with it.
 *
 * Order within an exec (kernel/fs/exec.c): the COMM record with the exec flag, then the MMAP2
 * records of the new image, then this program's exec event. Nothing of the new program has run by
 * then.
 *
 * The ring is read on a timer; it wakes the reader only when it is more than half full, and at the
 * first exec after a quiet period, when the timer is slow. The ring of urgent events wakes a
 * separate thread.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "probes/maps.h"
#include "probes/maps_kern.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/tables.h"

/* Numbers of <linux/bpf.h>, by value: kern.h may name them too. */
#define MAPS_TYPE_HASH         1
#define MAPS_ANY               0
#define MAPS_TYPE_LRU_HASH     9
#define MAPS_TYPE_RINGBUF      27
#define MAPS_TYPE_PERCPU_ARRAY 6
#define MAPS_RB_NO_WAKEUP      1
#define MAPS_RB_FORCE_WAKEUP   2
#define MAPS_RB_AVAIL_DATA     0

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Three hundred short processes a second are 140 KB of events: seconds in which a busy host does
 * not let the reader run. */
#define RING_BYTES (2 * 1024 * 1024)

const volatile __u32 ring_bytes = RING_BYTES;
const volatile __u32 own_mntns = 0; /* the reader's mount namespace; 0: not known */
const volatile __u32 own_root_dev = 0;
const volatile __u64 own_root_ino = 0;
const volatile bool tables = false; /* `processes` is the map that the probes unwind with */

struct {
	__uint(type, MAPS_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

/* Copies of those that cannot wait for their turn: loaders/maps/world/exec_race. */
struct {
	__uint(type, MAPS_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024);
} urgent SEC(".maps");

/* Events that found the ring full. Read in place by sonde-maps. */
__u64 lost_events;
/* Set by sonde-maps: its next look is far off, and an exec is to call it. */
__u32 asleep;

struct scratch {
	struct maps_event ev;
	char args[MAPS_ARGS_MAX];
};

struct {
	__uint(type, MAPS_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* By whom it was sent to, until that one ends. What survives its signals goes when others need the
 * room. */
struct {
	__uint(type, MAPS_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct maps_sender);
} senders SEC(".maps");

/* sonde-maps puts the real one here before it loads this (probes/lib/tables.h). */
struct {
	__uint(type, MAPS_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables_process);
} processes SEC(".maps");

/* A child has its parent's mappings: it can be unwound from its first instruction, long before the
 * fork is read. What the entry says is as old as the parent's. An entry may be given to another
 * process while it is read: the same address at a second look says that it was not. */
static __always_inline void copy_tables(struct task_struct___maps *parent,
					const struct maps_event *child)
{
	struct task_struct___maps *leader = BPF_CORE_READ(parent, group_leader);
	struct tables_process *from, copy;
	__u32 tgid = child->from_tgid, to = child->tgid;

	if (!tables)
		return;
	from = bpf_map_lookup_elem(&processes, &tgid);
	if (!from)
		return;
	copy = *from;
	if (bpf_map_lookup_elem(&processes, &tgid) != from)
		return;
	if (copy.start_ns != BPF_CORE_READ(leader, start_boottime) ||
	    copy.exec_id != (__u32)BPF_CORE_READ(leader, self_exec_id))
		return;
	copy.start_ns = child->start_ns;
	copy.exec_id = child->exec_id;
	bpf_map_update_elem(&processes, &to, &copy, MAPS_ANY);
}

static __always_inline void fill_cgroups(struct maps_event *ev, struct task_struct___maps *leader)
{
	struct css_set___maps *set = BPF_CORE_READ(leader, cgroups);
	struct cgroup_subsys_state___maps *css = NULL;

	ev->cgroup_id = BPF_CORE_READ(set, dfl_cgrp, kn, id);
	ev->cgroup1_id = 0;
	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id___maps, memory_cgrp_id___maps))
		return;
	bpf_core_read(&css, sizeof(css),
		      &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id___maps,
						       memory_cgrp_id___maps)]);
	ev->cgroup1_id = BPF_CORE_READ(css, cgroup, kn, id);
	if (BPF_CORE_READ(css, cgroup) == BPF_CORE_READ(set, dfl_cgrp))
		ev->cgroup1_id = 0;
}

static __always_inline __u32 read_nspid(struct task_struct___maps *leader)
{
	struct pid___maps *pid = BPF_CORE_READ(leader, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid___maps upid = {};

	if (level > 32)
		return 0;
	bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]);
	return upid.nr;
}

static __always_inline void fill(struct maps_event *ev, struct task_struct___maps *t, __u32 type)
{
	struct task_struct___maps *leader = BPF_CORE_READ(t, group_leader);

	ev->time_ns = bpf_ktime_get_boot_ns();
	ev->type = type;
	ev->flags = BPF_CORE_READ(leader, flags) & MAPS_PF_KTHREAD ? MAPS_F_KTHREAD : 0;
	ev->start_ns = BPF_CORE_READ(leader, start_boottime);
	ev->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	ev->tgid = BPF_CORE_READ(leader, tgid);
	ev->ppid = BPF_CORE_READ(leader, real_parent, tgid);
	ev->from_tgid = 0;
	ev->uid = BPF_CORE_READ(leader, real_cred, euid.val);
	ev->nspid = read_nspid(leader);
	ev->mntns = BPF_CORE_READ(leader, nsproxy, mnt_ns, ns.inum);
	ev->root_ino = BPF_CORE_READ(leader, fs, root.dentry, d_inode, i_ino);
	ev->root_dev = BPF_CORE_READ(leader, fs, root.dentry, d_sb, s_dev);
	ev->exit_code = 0;
	ev->args_len = 0;
	BPF_CORE_READ_INTO(&ev->comm, leader, comm);
	fill_cgroups(ev, leader);
}

#define URGENT_KEYS 64
static __u64 urgent_ns[URGENT_KEYS]; /* the last, by mount namespace, more or less */

/* A container's files disappear with its last process: its executable is opened at once, though not
 * more often than every MAPS_URGENT_NS. A mount namespace with our own root shows our files,
 * whatever else is mounted there: they stay. */
static __always_inline void send_urgent(const struct maps_event *ev)
{
	__u64 *last = &urgent_ns[ev->mntns % URGENT_KEYS];

	if (!own_mntns || ev->mntns == own_mntns || ev->time_ns < *last + MAPS_URGENT_NS)
		return;
	if (ev->root_ino == own_root_ino && ev->root_dev == own_root_dev)
		return;
	*last = ev->time_ns;
	bpf_ringbuf_output(&urgent, (void *)ev, sizeof(*ev),
			   0); /* wakes; what finds no room is looked at in its turn */
}

static __always_inline __u64 ring_flags(void)
{
	return bpf_ringbuf_query(&events, MAPS_RB_AVAIL_DATA) > ring_bytes / 2 ?
		       MAPS_RB_FORCE_WAKEUP :
		       MAPS_RB_NO_WAKEUP;
}

static __always_inline void send(struct scratch *s, __u64 args_len)
{
	__u64 flags = ring_flags();

	if (asleep && s->ev.type == MAPS_EV_EXEC) {
		asleep = 0;
		flags = MAPS_RB_FORCE_WAKEUP;
	}
	args_len &= 2 * MAPS_ARGS_MAX - 1; /* 0 .. MAPS_ARGS_MAX: for the verifier */
	barrier_var(args_len);
	if (args_len > MAPS_ARGS_MAX)
		return;
	if (bpf_ringbuf_output(&events, s, sizeof(s->ev) + args_len, flags))
		__sync_fetch_and_add(&lost_events, 1);
}

static __always_inline struct scratch *scratch_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratch, &zero);
}

TRACEPOINT(sched_process_fork, on_fork, struct task_struct___maps *parent,
	   struct task_struct___maps *child)
{
	struct scratch *s;

	if (BPF_CORE_READ(child, group_leader) != child)
		return 0; /* a thread */
	s = scratch_get();
	if (!s)
		return 0;
	fill(&s->ev, child, MAPS_EV_FORK);
	s->ev.from_tgid = BPF_CORE_READ(parent, tgid);
	copy_tables(parent, &s->ev);
	send(s, 0);
	return 0;
}

TRACEPOINT(sched_process_exec, on_exec, struct task_struct___maps *task)
{
	struct scratch *s = scratch_get();
	unsigned long start, len;

	if (!s)
		return 0;
	fill(&s->ev, task, MAPS_EV_EXEC);
	start = BPF_CORE_READ(task, mm, arg_start);
	len = BPF_CORE_READ(task, mm, arg_end) - start;
	if (len > MAPS_ARGS_MAX) {
		len = MAPS_ARGS_MAX;
		s->ev.flags |= MAPS_F_ARGS_CUT;
	}
	if (bpf_probe_read_user(s->args, len, (void *)start)) {
		s->ev.flags |= MAPS_F_ARGS_FAULT;
		len = 0;
	}
	s->ev.args_len = len;
	send_urgent(&s->ev);
	send(s, len);
	return 0;
}

/* HUP, INT, QUIT, ABRT, KILL, TERM */
#define SIGNALS (1u << 1 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 9 | 1u << 15)

/* include/linux/sched/signal.h: no pointers but these two; what the kernel sends by itself (memory,
 * a terminal, the end of a pid namespace) has the second. */
#define SENT_BY_TASK   ((void *)0)
#define SENT_BY_KERNEL ((void *)1)

TRACEPOINT(signal_generate, on_signal, int sig, struct kernel_siginfo___maps *info,
	   struct task_struct___maps *to)
{
	struct maps_sender by = {.time_ns = bpf_ktime_get_boot_ns(),
				 .tgid = bpf_get_current_pid_tgid() >> 32,
				 .signal = sig};
	__u32 tgid;

	if (sig < 1 || sig > 15 || !(SIGNALS & 1u << sig) || info == SENT_BY_KERNEL)
		return 0;
	if (info != SENT_BY_TASK && BPF_CORE_READ(info, si_code) > 0)
		return 0; /* the kernel's too: SI_KERNEL, a fault */
	tgid = BPF_CORE_READ(to, tgid);
	if (!by.tgid || tgid == by.tgid)
		return 0;
	by.start_ns = BPF_CORE_READ(to, group_leader, start_boottime);
	bpf_get_current_comm(by.comm, sizeof(by.comm));
	bpf_map_update_elem(&senders, &tgid, &by, MAPS_ANY);
	return 0;
}

static __always_inline __u64 take_sender(struct scratch *s)
{
	__u32 tgid = s->ev.tgid;
	struct maps_sender *by = bpf_map_lookup_elem(&senders, &tgid);

	if (!by)
		return 0;
	__builtin_memcpy(s->args, by, sizeof(*by));
	bpf_map_delete_elem(&senders, &tgid);
	if (((struct maps_sender *)s->args)->start_ns != s->ev.start_ns)
		return 0;
	s->ev.args_len = sizeof(*by);
	return sizeof(*by);
}

TRACEPOINT(sched_process_exit, on_exit, struct task_struct___maps *task)
{
	struct scratch *s;
	__u32 code;

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0; /* other threads go on */
	s = scratch_get();
	if (!s)
		return 0;
	fill(&s->ev, task, MAPS_EV_EXIT);
	code = BPF_CORE_READ(task, signal, group_exit_code);
	s->ev.exit_code = code ? code : BPF_CORE_READ(task, exit_code);
	if (BPF_CORE_READ(task, signal, oom_mm))
		s->ev.flags |= MAPS_F_OOM;
	send(s, take_sender(s));
	return 0;
}

static __always_inline void fill_used(struct maps_used *u, struct task_struct___maps *leader)
{
	struct signal_struct___maps *sig = BPF_CORE_READ(leader, signal);
	__u64 threads_ns = BPF_CORE_READ(sig, sum_sched_runtime),
	      leader_ns = BPF_CORE_READ(leader, se.sum_exec_runtime);

	/* the sum took in the leader when it was released, perhaps before it last ran */
	u->cpu_ns = threads_ns > leader_ns ? threads_ns : leader_ns;
	u->flags = threads_ns <= leader_ns ? MAPS_USED_SINGLE : 0;
	u->user_ns = BPF_CORE_READ(sig, utime);
	u->system_ns = BPF_CORE_READ(sig, stime);
	u->minflt = BPF_CORE_READ(sig, min_flt);
	u->majflt = BPF_CORE_READ(sig, maj_flt);
	u->maxrss_pages = BPF_CORE_READ(sig, maxrss);
	if (bpf_core_field_exists(leader->sched_info.run_delay)) {
		u->runq_ns = BPF_CORE_READ(leader, sched_info.run_delay);
		u->flags |= MAPS_USED_RUNQ;
	}
	if (bpf_core_field_exists(sig->ioac.read_bytes)) {
		u->read_bytes = BPF_CORE_READ(sig, ioac.read_bytes);
		u->write_bytes = BPF_CORE_READ(sig, ioac.write_bytes);
		u->flags |= MAPS_USED_IO;
	}
}

/* A task is freed once it has left its CPU for the last time and its parent has reaped it
 * (kernel/exit.c: put_task_struct_rcu_user), so its counters are final here; at its exit it still
 * has up to a tick to run that is not counted yet. The leader is released last. This may interrupt
 * the programs above: it does not use `scratch`. */
TRACEPOINT(sched_process_free, on_free, struct task_struct___maps *task)
{
	struct {
		struct maps_event ev;
		struct maps_used used;
	} m = {};

	if (BPF_CORE_READ(task, group_leader) != task)
		return 0; /* a thread; or one whose place another thread took by an exec */
	m.ev.time_ns = bpf_ktime_get_boot_ns();
	m.ev.type = MAPS_EV_USED;
	m.ev.start_ns = BPF_CORE_READ(task, start_boottime);
	m.ev.tgid = BPF_CORE_READ(task, tgid);
	m.ev.args_len = sizeof(m.used);
	fill_used(&m.used, task);
	if (bpf_ringbuf_output(&events, &m, sizeof(m), ring_flags()))
		__sync_fetch_and_add(&lost_events, 1);
	return 0;
}

SEC("iter/task")
int on_task(struct bpf_iter__task___maps *ctx)
{
	struct task_struct___maps *t = ctx->task;
	struct maps_event ev = {};

	if (!t || BPF_CORE_READ(t, group_leader) != t)
		return 0;
	fill(&ev, t, MAPS_EV_TASK);
	bpf_seq_write(ctx->meta->seq, &ev, sizeof(ev));
	return 0;
}
