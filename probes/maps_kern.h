/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps_kern: the kernel types that probes/maps.bpf.c reads, in addition to those of kern.h. They
 * are CO-RE flavours (NAME___maps), so that other programs may describe other fields of the same
 * struct. Fields by kernel: nsproxy's mnt_ns.ns.inum and pid.numbers as they are from 5.10 to 6.18
 * (mnt_namespace lost its leading counter in 5.11; relocated by name).
 */
#ifndef SONDE_PROBES_MAPS_KERN_H
#define SONDE_PROBES_MAPS_KERN_H

#define MAPS_PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block___maps {
	__u32 s_dev;
};

struct inode___maps {
	unsigned long i_ino;
};

struct dentry___maps {
	struct inode___maps *d_inode;
	struct super_block___maps *d_sb;
};

struct path___maps {
	void *mnt;
	struct dentry___maps *dentry;
};

struct fs_struct___maps {
	struct path___maps root;
};

struct ns_common___maps {
	unsigned int inum;
};

struct mnt_namespace___maps {
	struct ns_common___maps ns;
};

struct nsproxy___maps {
	struct mnt_namespace___maps *mnt_ns;
};

struct upid___maps {
	int nr;
	void *ns;
};

struct pid___maps {
	unsigned int level;
	struct upid___maps numbers[1];
};

struct kuid_t___maps {
	__u32 val;
};

struct cred___maps {
	struct kuid_t___maps euid;
};

struct kernfs_node___maps {
	__u64 id;
};

struct cgroup___maps {
	struct kernfs_node___maps *kn;
};

struct cgroup_subsys_state___maps {
	struct cgroup___maps *cgroup;
};

enum cgroup_subsys_id___maps { memory_cgrp_id___maps = 1 };

struct css_set___maps {
	struct cgroup_subsys_state___maps *subsys[1];
	struct cgroup___maps *dfl_cgrp;
};

struct atomic_t___maps {
	int counter;
};

struct task_io_accounting___maps {
	__u64 read_bytes,
		write_bytes; /* since 2.6.20, where the kernel is built with TASK_IO_ACCOUNTING */
};

/* The sums are of threads that were released: of all, once the leader was. */
struct signal_struct___maps {
	struct atomic_t___maps live;
	int group_exit_code;
	void *oom_mm; /* set when the out-of-memory killer chose it */
	__u64 utime, stime;
	unsigned long min_flt, maj_flt;
	struct task_io_accounting___maps ioac;
	unsigned long long sum_sched_runtime;
	unsigned long maxrss;
};

struct sched_entity___maps {
	__u64 sum_exec_runtime;
};

struct sched_info___maps {
	unsigned long long run_delay; /* where the kernel is built with SCHED_INFO */
};

struct mm_struct___maps {
	unsigned long arg_start, arg_end;
};

struct task_struct___maps {
	unsigned int flags;
	int pid, tgid;
	int exit_code;
	__u64 start_boottime;
	__u64 self_exec_id; /* u32 before 5.7 */
	char comm[16];
	struct task_struct___maps *real_parent, *group_leader;
	struct pid___maps *thread_pid;
	struct nsproxy___maps *nsproxy;
	struct fs_struct___maps *fs;
	struct cred___maps *real_cred;
	struct css_set___maps *cgroups;
	struct signal_struct___maps *signal;
	struct mm_struct___maps *mm;
	struct sched_entity___maps se;
	struct sched_info___maps sched_info;
};

struct kernel_siginfo___maps {
	int si_code;
};

struct seq_file;

struct bpf_iter_meta___maps {
	struct seq_file *seq;
};

struct bpf_iter__task___maps {
	struct bpf_iter_meta___maps *meta;
	struct task_struct___maps *task;
};

#pragma clang attribute pop

#endif
