/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk_files: calls that say how a disk feels to programs: fsync and its like with the file's
 * identity, and opens that fail with the path that was asked for. They are at the tracepoints of
 * these calls only: others pay the kernel's way to any tracepoint of system calls, no program.
 */
#ifndef SONDE_PROBES_DISK_FILES_BPF_H
#define SONDE_PROBES_DISK_FILES_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/disk/sums.bpf.h"
#include "probes/lib/arch_x86.h"
#include "probes/lib/calls.bpf.h"
#include "probes/lib/passon.bpf.h"

#define ERESTARTSYS 512 /* this and above: a signal came, and the call may begin again */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	const unsigned char *name;
};

struct super_block___disk {
	__u32 s_dev;
};

struct inode___disk {
	unsigned long i_ino; /* 64 bits from 7.2 on, which is as long here */
	struct super_block___disk *i_sb;
};

struct dentry___disk {
	struct dentry___disk *d_parent;
	struct qstr d_name;
};

struct path___disk {
	struct dentry___disk *dentry;
};

struct file___disk {
	struct inode___disk *f_inode;
	struct path___disk f_path;
};

struct fdtable___disk {
	unsigned int max_fds;
	struct file___disk **fd;
};

struct files_struct___disk {
	struct fdtable___disk *fdt;
};

#pragma clang attribute pop

/* By pid_tgid. */
DISK_HASH(syncing, 4096, __u64, struct disk_syncing);

DISK_HASH(disk_syncs, 4096, struct disk_sync_key, struct disk_sync);

/* How many. */
DISK_HASH(disk_opens, 4096, struct disk_open_key, __u64);

/* What found no room there: by error alone. */
DISK_HASH(disk_rest_opens, 1024, struct disk_open_key, __u64);

struct { /* the loader deletes what it has read */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct disk_inode);
	__type(value, struct disk_names);
} disk_names SEC(".maps");

static const struct disk_sync no_syncs;
static const struct disk_names no_names;

static __always_inline struct file___disk *file_of(__u32 fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct files_struct___disk *open = (void *)BPF_CORE_READ(task, files);
	struct fdtable___disk *table = open ? BPF_CORE_READ(open, fdt) : NULL;
	struct file___disk *file = NULL;

	if (!table || fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd))
		return NULL;
	return file;
}

static __always_inline int sync_begin(const struct sys_enter *x, __u32 call)
{
	struct disk_syncing s = {.fd = (__u32)x->args[0], .key = {.call = call}};
	struct file___disk *file = file_of(s.fd);
	__u64 id = bpf_get_current_pid_tgid();
	struct inode___disk *inode;

	if (!file)
		return PASS_ON;
	inode = BPF_CORE_READ(file, f_inode);
	who_fill(&s.key.who);
	s.key.ino = BPF_CORE_READ(inode, i_ino);
	s.key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	s.name = (__u64)BPF_CORE_READ(file, f_path.dentry);
	s.begin_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&syncing, &id, &s, BPF_ANY))
		__sync_fetch_and_add(&disk_lost.syncs, 1);
	made(DISK_MADE_SYNCING);
	return PASS_ON;
}

SEC("tracepoint")
int fsync_begins(struct sys_enter *x)
{
	return sync_begin(x, DISK_FSYNC);
}

SEC("tracepoint")
int fdatasync_begins(struct sys_enter *x)
{
	return sync_begin(x, DISK_FDATASYNC);
}

SEC("tracepoint")
int range_begins(struct sys_enter *x)
{
	return sync_begin(x, DISK_SYNC_RANGE);
}

SEC("tracepoint")
int syncfs_begins(struct sys_enter *x)
{
	return sync_begin(x, DISK_SYNCFS);
}

/* Something keeps it: an open file, or pages on their way to a disk. */
static __always_inline void names_read(char *names, int n, int size, struct dentry___disk *at)
{
#pragma unroll
	for (int i = 0; i < n; i++) {
		bpf_probe_read_kernel_str(names + i * size, size, BPF_CORE_READ(at, d_name.name));
		at = BPF_CORE_READ(at, d_parent);
	}
}

/* `dentry` NULL: it has none. */
static __always_inline void file_names(__u64 ino, __u32 dev, struct dentry___disk *dentry)
{
	struct disk_inode id = {.ino = ino, .dev = dev};
	struct disk_names *n;

	if (bpf_map_lookup_elem(&disk_names, &id) ||
	    bpf_map_update_elem(&disk_names, &id, &no_names, BPF_NOEXIST))
		return;
	n = bpf_map_lookup_elem(&disk_names, &id);
	if (n && dentry)
		names_read(n->names[0], DISK_DEEP, DISK_LONG, dentry);
}

static __always_inline struct disk_sync *sync_get(const struct disk_syncing *s,
						  const struct disk_sync_key *key)
{
	struct disk_sync *d = bpf_map_lookup_elem(&disk_syncs, key);

	if (d)
		return d;
	bpf_map_update_elem(&disk_syncs, key, &no_syncs, BPF_NOEXIST);
	made(DISK_MADE_SYNCS);
	d = bpf_map_lookup_elem(&disk_syncs, key);
	if (d) {
		d->fd = s->fd;
		names_read(d->names[0], DISK_NAMES, DISK_NAME, (struct dentry___disk *)s->name);
		file_names(key->ino, key->dev, (struct dentry___disk *)s->name);
	}
	return d;
}

SEC("tracepoint")
int sync_ends(struct sys_exit *x)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), ns;
	struct disk_syncing *s = bpf_map_lookup_elem(&syncing, &id);
	struct disk_sync_key key;
	struct disk_sync *d;

	if (!s)
		return PASS_ON;
	key = s->key;
	key.epoch = disk_epoch;
	ns = now > s->begin_ns ? now - s->begin_ns : 0;
	d = sync_get(s, &key);
	if (d) {
		__sync_fetch_and_add(&d->calls, 1);
		__sync_fetch_and_add(&d->ns, ns);
		__sync_fetch_and_add(&d->hist[slot_of(ns / 1000) & (DISK_SLOTS - 1)], 1);
		if (x->ret < 0)
			__sync_fetch_and_add(&d->errors, 1);
	} else {
		__sync_fetch_and_add(&disk_lost.syncs, 1);
	}
	bpf_map_delete_elem(&syncing, &id);
	return PASS_ON;
}

static __always_inline bool open_add(void *map, enum disk_made which,
				     const struct disk_open_key *key)
{
	__u64 one = 1, *n = bpf_map_lookup_elem(map, key);
	bool added = !n && !bpf_map_update_elem(map, key, &one, BPF_NOEXIST);

	if (!n)
		made(which);
	if (added)
		return true;
	if (!n) /* another CPU made it meanwhile, or there is no room */
		n = bpf_map_lookup_elem(map, key);
	if (n)
		__sync_fetch_and_add(n, 1);
	return n;
}

static __always_inline void open_failed(__u32 error, __u64 path)
{
	struct disk_open_key key = {.error = error, .epoch = disk_epoch};

	who_fill(&key.who);
	bpf_probe_read_user_str(key.path, sizeof(key.path), (const void *)path);
	if (open_add(&disk_opens, DISK_MADE_OPENS, &key))
		return;
	__builtin_memset(&key, 0, sizeof(key));
	key.error = error;
	key.epoch = disk_epoch;
	if (!open_add(&disk_rest_opens, DISK_MADE_REST_OPENS, &key))
		__sync_fetch_and_add(&disk_lost.opens, 1);
}

/* What the call was asked for is still in the registers by which its thread entered the kernel. */
static __always_inline int open_end(const struct sys_exit *x, bool at)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct arch_call call;

	if (x->ret >= 0 || x->ret <= -ERESTARTSYS ||
	    !arch_call_read(arch_current_entry(task), &call))
		return PASS_ON;
	open_failed((__u32)-x->ret, at ? call.second : call.first);
	return PASS_ON;
}

SEC("tracepoint")
int open_ends(struct sys_exit *x)
{
	return open_end(x, false);
}

SEC("tracepoint")
int openat_ends(struct sys_exit *x)
{
	return open_end(x, true);
}

#endif
