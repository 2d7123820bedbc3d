/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk_locks: waits for locks of files: flock, fcntl and lockf (POSIX), and those of open files
 * (OFD).
 *
 * 1. The kernel says at a tracepoint of each lock that is asked for whether it must be waited for,
 *    in the thread that asks. The request then names what is in its way: the lock, or a request
 *    that waits for it already, and so on up to the lock, which names the process that took it.
 * 2. The wait is over when the kernel gives the lock, or when the call ends with an error (a
 *    signal, a deadlock). Between, the lock may be asked for again: the first time counts as the
 *    begin, and the first holder as the holder. fcntl() has a tracepoint at its end,
 *    flock() only the one of the call. Calls of 32-bit programs on a 64-bit kernel do not reach the
 *    latter: only a signal ends such a wait without the lock, and the thread gets it before it
 *    does anything else. A wait whose end was not seen is counted as lost, by who waits next in
 *    that thread, or by the loader (filecalls.c).
 * 3. Threads of the kernel (an NFS server's) make no calls: when such a wait is over is not seen,
 *    and so it is left out.
 * 4. An OFD lock names its open file only, which several processes may share. Which one took a
 *    range is kept where that was seen, until it is given up or the file is closed. The kernel
 *    joins ranges and splits them: a lock whose range is not one that was taken so has no holder,
 *    nor one that several took.
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
#define FL_CLOSE           64 /* include/linux/filelock.h; both the same from 5.10 on */
#define FL_OFDLCK          1024
#define LOCK_UNLOCK        2       /* F_UNLCK of fcntl.h */
#define LOCK_QUEUE         32      /* requests that wait for a lock, each for the one before */
#define OFD_GIVEN_UP       (~0ull) /* where a range begins: no lock does there */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file_lock_core { /* since 6.9 */
	struct file_lock_core *flc_blocker;
	void *flc_owner;
	struct file *flc_file;
	unsigned int flc_flags;
	unsigned char flc_type;
	__s32 flc_pid;
};

struct file_lock {
	struct file_lock_core c;
	__s64 fl_start, fl_end;
};

struct file_lock___6_8 {
	struct file_lock___6_8 *fl_blocker;
	void *fl_owner;
	struct file *fl_file;
	unsigned int fl_flags;
	unsigned char fl_type;
	unsigned int fl_pid;
};

#pragma clang attribute pop

/* By pid_tgid. */
DISK_HASH(locking, 4096, __u64, struct disk_locking);

DISK_HASH(disk_locks, 4096, struct disk_lock_key, struct disk_locks);

/* Rule 4. `start` OFD_GIVEN_UP: when a range of this file was given up that was not taken so. */
struct ofd_range {
	__u64 file; /* the open file's address */
	__u64 start;
};

struct ofd_taken {
	__u64 end, at_ns;
	__u32 tgid, pad; /* 0: several */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct ofd_range);
	__type(value, struct ofd_taken);
} ofd_takers SEC(".maps");

static const struct disk_locks no_locks;

struct lock_said {
	unsigned int flags;
	unsigned char type;
	__u64 file, owner; /* addresses; owner: of the open file for OFD locks */
	__u64 start, end;
	__s32 holder;
};

static __always_inline void said_read(struct file_lock *lock, struct lock_said *s)
{
	struct file_lock___6_8 *old = (void *)lock;

	s->start = (__u64)BPF_CORE_READ(lock, fl_start);
	s->end = (__u64)BPF_CORE_READ(lock, fl_end);
	if (bpf_core_field_exists(lock->c)) {
		s->flags = BPF_CORE_READ(lock, c.flc_flags);
		s->type = BPF_CORE_READ(lock, c.flc_type);
		s->file = (__u64)BPF_CORE_READ(lock, c.flc_file);
		s->owner = (__u64)BPF_CORE_READ(lock, c.flc_owner);
		s->holder = BPF_CORE_READ(lock, c.flc_pid);
	} else {
		s->flags = BPF_CORE_READ(old, fl_flags);
		s->type = BPF_CORE_READ(old, fl_type);
		s->file = (__u64)BPF_CORE_READ(old, fl_file);
		s->owner = (__u64)BPF_CORE_READ(old, fl_owner);
		s->holder = (__s32)BPF_CORE_READ(old, fl_pid);
	}
}

/* Of what a typed tracepoint gives: without a helper. */
static __always_inline unsigned int flags_of(struct file_lock *request)
{
	struct file_lock___6_8 *old = (void *)request;

	return bpf_core_field_exists(request->c) ? request->c.flc_flags : old->fl_flags;
}

/* What it waits for; NULL: nothing, it is a lock that is held. */
static __always_inline struct file_lock *blocker_of(struct file_lock *lock)
{
	struct file_lock___6_8 *old = (void *)lock;
	struct file_lock_core *core;

	if (!bpf_core_field_exists(lock->c))
		return (struct file_lock *)BPF_CORE_READ(old, fl_blocker);
	core = BPF_CORE_READ(lock, c.flc_blocker);
	return core ? (void *)core - bpf_core_field_offset(lock->c) : NULL;
}

static __always_inline bool ofd_is_valid(__u64 file, const struct ofd_taken *taken)
{
	struct ofd_range up = {.file = file, .start = OFD_GIVEN_UP};
	struct ofd_taken *given_up = bpf_map_lookup_elem(&ofd_takers, &up);

	return !given_up || given_up->at_ns < taken->at_ns;
}

static __always_inline __s32 ofd_holder(const struct lock_said *s)
{
	struct ofd_range range = {.file = s->file, .start = s->start};
	struct ofd_taken *taken = bpf_map_lookup_elem(&ofd_takers, &range);

	if (!taken || taken->end != s->end || !ofd_is_valid(s->file, taken))
		return 0;
	return (__s32)taken->tgid;
}

/* Rule 1; 0: not known. */
static __always_inline __s32 holder_find(struct file_lock *request)
{
	struct file_lock *at = blocker_of(request), *next = NULL;
	struct lock_said s;

	for (int i = 0; i < LOCK_QUEUE && at; i++) {
		next = blocker_of(at);
		if (!next)
			break;
		at = next;
	}
	if (!at || next)
		return 0;
	said_read(at, &s);
	if (s.flags & FL_OFDLCK)
		return ofd_holder(&s);
	return s.holder > 0 ? s.holder : 0;
}

static __always_inline void ofd_give_up(__u64 file)
{
	struct ofd_range up = {.file = file, .start = OFD_GIVEN_UP};
	struct ofd_taken now = {.at_ns = bpf_ktime_get_ns()};

	bpf_map_update_elem(&ofd_takers, &up, &now, BPF_ANY);
}

/* A range was taken or given up. */
static __always_inline void ofd_changed(struct file_lock *request)
{
	struct ofd_taken now = {.tgid = (__u32)(bpf_get_current_pid_tgid() >> 32)}, *before;
	struct ofd_range range;
	struct lock_said s;

	if (!(flags_of(request) & (FL_OFDLCK | FL_CLOSE)))
		return;
	said_read(request, &s);
	if (!(s.flags & FL_OFDLCK)) {
		if (s.type == LOCK_UNLOCK && s.owner == s.file)
			ofd_give_up(s.file); /* the last descriptor of that open file is closed */
		return;
	}
	range = (struct ofd_range){.file = s.file, .start = s.start};
	before = bpf_map_lookup_elem(&ofd_takers, &range);
	if (s.type == LOCK_UNLOCK) {
		if (before && before->end == s.end)
			bpf_map_delete_elem(&ofd_takers, &range);
		else
			ofd_give_up(s.file);
		return;
	}
	if (before && before->tgid != now.tgid && ofd_is_valid(s.file, before))
		now.tgid = 0;
	now.end = s.end;
	now.at_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&ofd_takers, &range, &now, BPF_ANY);
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

static __always_inline __u32 kind_of(struct file_lock *request, bool is_flock)
{
	if (is_flock)
		return DISK_FLOCK;
	return flags_of(request) & FL_OFDLCK ? DISK_OFD : DISK_POSIX;
}

/* Rule 2. */
static __always_inline bool goes_on(const struct disk_locking *before,
				    const struct disk_lock_key *key)
{
	if (!before)
		return false;
	if (before->key.ino == key->ino && before->key.dev == key->dev &&
	    before->key.lock == key->lock)
		return true;
	__sync_fetch_and_add(&disk_lost.locks, 1);
	return false;
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
			ofd_changed(request);
		return 0;
	}
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	l.key.ino = BPF_CORE_READ(of, i_ino);
	l.key.dev = BPF_CORE_READ(of, i_sb, s_dev);
	l.key.lock = kind_of(request, is_flock);
	if (goes_on(bpf_map_lookup_elem(&locking, &id), &l.key))
		return 0;
	who_fill(&l.key.who);
	l.key.holder = holder_find(request);
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

/* The end of fcntl() with a lock, whether it waited or not. */
TRACEPOINT(fcntl_setlk, lock_fcntl, struct inode *inode, struct file_lock *request, int ret)
{
	wait_over(ret < 0);
	return 0;
}

/* In the thread that gets the signal. */
TRACEPOINT(signal_deliver, lock_signal, int sig)
{
	wait_over(true);
	return 0;
}

SEC("tracepoint")
int lock_ends(struct sys_exit *x)
{
	wait_over(x->ret < 0);
	return PASS_ON;
}

#endif
