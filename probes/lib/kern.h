/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kern: the few kernel types the BPF programs read, written by hand; libbpf relocates each field
 * against the running kernel's BTF (CO-RE). Only fields that are read are listed. Differences
 * between kernels go to core_fixes.bpf.h.
 *
 * All of these hold from 5.10 on: task_struct.start_boottime since 5.5, self_exec_id as 64 bits
 * since 5.7, kernfs_node.id as 64 bits since 5.5.
 */
#ifndef SONDE_PROBES_KERN_H
#define SONDE_PROBES_KERN_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* from the kernel's uapi (linux/bpf.h): the constants and map types that the programs here use */
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};
enum {
	BPF_F_USER_STACK = 1 << 8,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0, /* of bpf_ringbuf_query */
	BPF_F_MMAPABLE = 1 << 10,
};
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29, /* since 5.11 */
};

/* Helpers that not every kernel has: bpf_core_enum_value_exists asks. 5.15. */
enum bpf_func_id {
	BPF_FUNC_get_attach_cookie = 174,
	BPF_FUNC_task_pt_regs = 175,
};

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct {
	__u32 val;
} kuid_t;

struct kernfs_node {
	__u64 id; /* the cgroup id: what stat(2) shows as the directory's inode */
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup_subsys_state
		*subsys[32]; /* by enum cgroup_subsys_id; the kernel's is shorter */
	struct cgroup *dfl_cgrp;
};

struct mm_struct {
	unsigned long arg_start, arg_end;
};

struct inode {
	unsigned short i_mode;
	unsigned int i_rdev;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct in6_addr {
	unsigned char in6_u[16];
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	unsigned int skc_daddr;
	unsigned int skc_rcv_saddr;
	unsigned short skc_dport;
	unsigned short skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	unsigned long skc_flags;
	atomic64_t skc_cookie;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct sk_buff_head {
	__u32 qlen;
};

struct pid {
	struct hlist_head tasks[4]; /* by enum pid_type */
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	atomic_t sk_drops;
	int sk_err;
	struct sk_buff_head sk_receive_queue;
	struct socket *sk_socket;
	__u16 sk_protocol;
	__u16 sk_type;
	__u32 sk_ack_backlog;
	__u32 sk_max_ack_backlog;
	struct pid *sk_peer_pid;
};

struct inet_sock {
	__be16 inet_sport;
};

struct sockaddr_un {
	unsigned short sun_family;
};

struct unix_address {
	int len; /* with the family's two bytes */
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

enum sock_flags {
	SOCK_DEAD,
	SOCK_DONE,
};

struct tcp_sock {
	__u32 segs_in;
	__u64 bytes_received;
	__u32 segs_out;
	__u64 bytes_acked;
	__u32 snd_una;
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 write_seq;
	__u32 srtt_us;
	__u32 total_retrans;
	__u32 lost;
	struct request_sock *fastopen_rsk;
};

struct socket {
	struct sock *sk;
	struct file *file;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

#define NR_OPEN_DEFAULT 64 /* BITS_PER_LONG */

struct files_struct {
	struct fdtable *fdt;
	struct file *fd_array[NR_OPEN_DEFAULT]; /* what `fdt` leads to until there are more */
};

struct pcpu_hot { /* 6.2 to 6.14; before and after: the variable __preempt_count */
	int preempt_count;
};

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

struct cred {
	kuid_t uid;
};

struct thread_struct { /* x86 */
	unsigned long fsbase;
};

struct task_struct {
	unsigned int flags;
	void *stack;
	struct thread_struct thread;
	__s32 pid;  /* the thread */
	__s32 tgid; /* the process */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_boottime;
	__u64 self_exec_id;
	struct mm_struct *mm;
	const struct cred *real_cred;
	char comm[16];
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct files_struct *files;
	struct hlist_node pid_links[4]; /* by enum pid_type */
	unsigned int __state;           /* since 5.14 */
	unsigned int in_iowait : 1;
};

struct task_struct___before_5_14 {
	long state;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	void *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	void *map;
	void *key;
	void *value;
};

/* Values differ with the kernel's configuration: read with bpf_core_enum_value. */
enum cgroup_subsys_id {
	memory_cgrp_id,
	pids_cgrp_id,
};

/* io_uring's requests; `cmd` begins with what the operation at hand has (since 6.0). */
struct io_cqe {
	__s32 res;
};

struct io_cmd_data {
	struct file *file;
};

struct io_kiocb {
	union {
		struct file *file;
		struct io_cmd_data cmd;
	};
	__u8 opcode;
	__u32 flags;       /* 64 bits later on, of which this is the first half */
	struct io_cqe cqe; /* since 5.19 */
};

struct io_sr_msg {
	union {
		void *umsg;
		void *buf;
	};
	__u32 done_io;
};

struct io_rw {
	__u64 addr;
	__u32 len;
};

struct io_accept {
	__u32 file_slot;
};

#pragma clang attribute pop

/* ---- sonde-maps (probes/maps.bpf.c) adds its types below this line ---- */

#endif
