/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk_locks: waits for locks of files: flock, fcntl and lockf (POSIX), and those of open files
 * (OFD).
 *
 * 1. The kernel says at a tracepoint of each lock that is asked for whether it must be waited for,
 *    in the thread that asks; the request then names the lock that is in its way, and that one the
 *    process that took it. An OFD lock names its open file only: which process took it is kept
 *    where that was seen.
 * 2. The wait is over when the kernel gives the lock, or when the call returns with an error (a
 *    signal, a deadlock). Between, the lock may be asked for again: the first time counts as the
 *    begin, and the first holder as the holder. Calls of 32-bit programs on a 64-bit kernel have no
 *    tracepoints: if a signal ends such a wait, the loader finds that it is over (filecalls.c).
 * 3. Threads of the kernel (an NFS server's) make no calls: when such a wait is over is not seen,
 *    and so it is left out.
 */
#ifndef SONDE_PROBES_DISK_LOCKS_BPF_H
#define SONDE_PROBES_DISK_LOCKS_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/disk/pages.bpf.h"
#include "probes/disk/sums.bpf.h"
#include "probes/lib/calls.bpf.h"
#include "probes/lib/passon.bpf.h"
#include "probes/lib/preempt.bpf.h"

#define FILE_LOCK_DEFERRED 1
#define FL_OFDLCK          1024 /* include/linux/filelock.h; the same from 5.10 on */
#define LOCK_UNLOCK        2    /* F_UNLCK of fcntl.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file_lock_core { /* since 6.9 */
	struct file_lock_core *flc_blocker;
	struct file *flc_file;
	unsigned int flc_flags;
	unsigned char flc_type;
	__s32 flc_pid;
};

struct file_lock {
	struct file_lock_core c;
};

struct file_lock___6_8 {
	struct file_lock___6_8 *fl_blocker;
	struct file *fl_file;
	unsigned int fl_flags;
	unsigned char fl_type;
	unsigned int fl_pid;
};

#pragma clang attribute pop

/* By pid_tgid. */
DISK_HASH(locking, 4096, __u64, struct disk_locking);

DISK_HASH(disk_locks, 4096, struct disk_lock_key, struct disk_locks);

/* By the open file's address: the process that took an OFD lock by it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u32);
} ofd_takers SEC(".maps");

static const struct disk_locks no_locks;

struct lock_said {
	unsigned int flags;
	unsigned char type;
	__u64 file, blockers; /* addresses of open files */
	__s32 holder;
};

static __always_inline void said_read(struct file_lock *request, struct lock_said *s)
{
	struct file_lock___6_8 *old = (void *)request;

	if (bpf_core_field_exists(request->c)) {
		s->flags = BPF_CORE_READ(request, c.flc_flags);
		s->type = BPF_CORE_READ(request, c.flc_type);
		s->file = (__u64)BPF_CORE_READ(request, c.flc_file);
		s->blockers = (__u64)BPF_CORE_READ(request, c.flc_blocker, flc_file);
		s->holder = BPF_CORE_READ(request, c.flc_blocker, flc_pid);
	} else {
		s->flags = BPF_CORE_READ(old, fl_flags);
		s->type = BPF_CORE_READ(old, fl_type);
		s->file = (__u64)BPF_CORE_READ(old, fl_file);
		s->blockers = (__u64)BPF_CORE_READ(old, fl_blocker, fl_file);
		s->holder = (__s32)BPF_CORE_READ(old, fl_blocker, fl_pid);
	}
}

/* Of the lock that is in the way. */
static __always_inline void blocker_read(struct file_lock *request, bool is_flock,
					 struct disk_lock_key *key)
{
	struct lock_said s;
	__u32 *taker;

	said_read(request, &s);
	key->lock = is_flock ? DISK_FLOCK : s.flags & FL_OFDLCK ? DISK_OFD : DISK_POSIX;
	key->holder = s.holder;
	if (s.holder > 0)
		return;
	taker = bpf_map_lookup_elem(&ofd_takers, &s.blockers);
	if (taker)
		key->holder = (__s32)*taker;
}

static __always_inline void ofd_taken(struct file_lock *request)
{
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	struct lock_said s;

	said_read(request, &s);
	if (!(s.flags & FL_OFDLCK))
		return;
	if (s.type != LOCK_UNLOCK)
		bpf_map_update_elem(&ofd_takers, &s.file, &tgid, BPF_ANY);
}

static __always_inline struct disk_locks *locks_get(const struct disk_lock_key *key)
{
	struct disk_locks *s = bpf_map_lookup_elem(&disk_locks, key);

	if (s)
		return s;
	bpf_map_update_elem(&disk_locks, key, &no_locks, BPF_NOEXIST);
	made(DISK_MADE_LOCKS);
	return bpf_map_lookup_elem(&disk_locks, key);
}

/* Of this thread, if it waits. */
static __always_inline void wait_over(bool failed)
{
	__u64 id = bpf_get_current_pid_tgid(), now, ns;
	struct disk_locking *l = bpf_map_lookup_elem(&locking, &id);
	struct disk_lock_key key;
	struct disk_locks *s;

	if (!l)
		return;
	now = bpf_ktime_get_ns();
	ns = now > l->begin_ns ? now - l->begin_ns : 0;
	key = l->key;
	key.epoch = disk_epoch;
	bpf_map_delete_elem(&locking, &id);
	s = locks_get(&key);
	if (!s) {
		__sync_fetch_and_add(&disk_lost.locks, 1);
		return;
	}
	__sync_fetch_and_add(&s->waits, 1);
	__sync_fetch_and_add(&s->ns, ns);
	if (ns > s->longest_ns)
		s->longest_ns = ns;
	if (failed)
		__sync_fetch_and_add(&s->errors, 1);
}

static __always_inline int lock_asked(struct inode *inode, struct file_lock *request, int ret,
				      bool is_flock)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct inode___pages *of = (struct inode___pages *)inode;
	__u64 id = bpf_get_current_pid_tgid();
	struct disk_locking l = {};

	if (!inode || !request) /* the verifier asks */
		return 0;
	if (ret != FILE_LOCK_DEFERRED) {
		wait_over(ret < 0);
		if (!ret && !is_flock)
			ofd_taken(request);
		return 0;
	}
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || bpf_map_lookup_elem(&locking, &id))
		return 0;
	who_fill(&l.key.who);
	l.key.ino = BPF_CORE_READ(of, i_ino);
	l.key.dev = BPF_CORE_READ(of, i_sb, s_dev);
	blocker_read(request, is_flock, &l.key);
	inode_names(l.key.ino, l.key.dev, of);
	l.begin_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&locking, &id, &l, BPF_ANY))
		__sync_fetch_and_add(&disk_lost.locks, 1);
	made(DISK_MADE_LOCKING);
	return 0;
}

TRACEPOINT(flock_lock_inode, lock_flock, struct inode *inode, struct file_lock *request, int ret)
{
	return lock_asked(inode, request, ret, true);
}

TRACEPOINT(posix_lock_inode, lock_posix, struct inode *inode, struct file_lock *request, int ret)
{
	return lock_asked(inode, request, ret, false);
}

SEC("tracepoint")
int lock_ends(struct sys_exit *x)
{
	wait_over(x->ret < 0);
	return PASS_ON;
}

#endif
