/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk_calls: reads and writes of files as programs ask for them and feel them, whether a disk has
 * to do anything or not: by file and process, with how long each call takes.
 *
 * 1. System calls are seen at their own tracepoints, so calls that only sockets have (recvmsg,
 *    sendto) cost nothing. Where one begins, the descriptor's file is looked at: one that is no
 *    regular file, or lies on a file system that the kernel marks as one from which nothing is
 *    executed, by any mount (proc, sysfs, cgroup), is left at that. What a rootless container
 *    mounts has the mark that there are no devices, but not this one.
 * 2. What a call needs at its end is kept in the thread's own storage (from 5.12 on for these
 *    programs), which costs less than a hash and needs no deletion.
 * 3. io_uring: a request begins where it is submitted, by whom, and has its result, its operation
 *    and its file when it completes (from 5.19 on).
 * 4. copy_file_range counts as a write of the file that it writes, sendfile as a read of the one
 *    that it reads. Reads of mapped files are no calls: requests of disks have them (pages.bpf.h).
 * 5. A call that a signal interrupts before anything is moved, and that the kernel begins again, is
 *    no error.
 * 6. A file's name is read at its first call of an epoch. The map of names is bounded: after
 *    CALLS_NAMED names of an epoch, only a file that much is moved of, or that is slow, gets one.
 * 7. fallocate and ftruncate are counted as calls that move nothing: by the blocks that a file had
 *    before its first call, the loader sees growth that makes no page dirty (also O_DIRECT's).
 * 8. Where the kernel refuses a thread its storage (7.2 in an emulated machine did so each time),
 * the call is kept in a hash.
 * 9. The descriptor of a process whose table has more than NR_OPEN_DEFAULT is not in an array that
 * the verifier trusts. From 6.2 on bpf_rdonly_cast lets a program load from any address (the
 * programs `_cast`); before, each load is a call of a helper, some 13 ns.
 * 10. When sonded slows the family, one read or write in 2^calls_shift is looked at, by chance, and
 * counts for all of these.
 */
#ifndef SONDE_PROBES_DISK_CALLS_BPF_H
#define SONDE_PROBES_DISK_CALLS_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/disk/pages.bpf.h"
#include "probes/disk/sums.bpf.h"
#include "probes/lib/calls.bpf.h"
#include "probes/lib/fdinside.bpf.h"
#include "probes/lib/passon.bpf.h"
#include "probes/lib/preempt.bpf.h"

#define SB_I_NOEXEC 0x2
#define GET_CREATE  1 /* BPF_LOCAL_STORAGE_GET_F_CREATE */
#define NO_PREALLOC 1 /* BPF_F_NO_PREALLOC */
#define CALLS_NAMED 2048
#define CALLS_BYTES (256 << 10)
#define CALLS_NS    2000000

enum ring_op { /* of linux/io_uring.h */
	       RING_READV = 1,
	       RING_WRITEV = 2,
	       RING_READ_FIXED = 4,
	       RING_WRITE_FIXED = 5,
	       RING_READ = 22,
	       RING_WRITE = 23
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, NO_PREALLOC);
	__type(key, int);
	__type(value, struct disk_calling);
} calling SEC(".maps");

/* By pid_tgid: for threads that the kernel gives no storage. */
DISK_HASH(calling_bare, 4096, __u64, struct disk_calling);

/* Calls that began there; 0: none ever did. */
__u32 calls_bare;

DISK_HASH(disk_calls, 16384, struct disk_sync_key, struct disk_calls);

/* What found no room there, by process. */
DISK_HASH(disk_rest_calls, 4096, struct disk_sync_key, struct disk_calls);

/* By the request's address, which the kernel uses again. */
DISK_HASH(ringing, 16384, __u64, struct disk_ringing);

static const struct disk_calls no_calls;

/* Rule 10; the loader sets it, and may change it while the programs run. */
__u32 calls_shift;

/* true: this one is left out. */
static __always_inline bool call_draw(__u32 *shift)
{
	*shift = calls_shift & 31;
	return *shift && bpf_get_prandom_u32() & ((1u << *shift) - 1);
}

/* Rule 6; the loader sets it to 0 at the end of an epoch. */
volatile __u32 calls_named;

#define GET(typed_, from_, field_) ((typed_) ? (from_)->field_ : BPF_CORE_READ(from_, field_))

/* Rule 1. `typed`: the verifier lets the program load from it. */
static __always_inline bool is_file(struct inode___pages *inode, bool typed, struct disk_calling *c)
{
	struct super_block___pages *sb;

	if (!inode || (GET(typed, inode, i_mode) & S_IFMT) != S_IFREG)
		return false;
	sb = GET(typed, inode, i_sb);
	if (!sb || GET(typed, sb, s_iflags) & SB_I_NOEXEC)
		return false;
	c->dev = GET(typed, sb, s_dev);
	c->ino = GET(typed, inode, i_ino);
	c->blocks = GET(typed, inode, i_blocks);
	c->inode = (__u64)inode;
	return true;
}

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* The kernel's numbers of these types. The loader sets them: libbpf would take the numbers of the
 * file of kernel types that it relocates by (kerneltypes.h). */
const volatile __u32 type_hlist_head = 0, type_file = 0;

#define CAST(at_, name_) ((struct name_ *)bpf_rdonly_cast(at_, type_##name_))

/* Rule 9: of the open file to which the pointer at `at` leads. It is loaded as the member of
 * a type of the kernel that begins with a pointer. */
static __always_inline bool is_file_at(struct file **at, struct disk_calling *c)
{
	struct hlist_node *file = CAST(at, hlist_head)->first;

	return file && is_file((struct inode___pages *)CAST(file, file)->f_inode, true, c);
}

static __always_inline bool is_file_of(struct task_struct *task, __u32 fd, bool casts,
				       struct disk_calling *c)
{
	struct files_struct *open = task->files;
	struct fdtable *table = open ? open->fdt : NULL;
	struct file *file = NULL;

	if (!table || fd >= table->max_fds)
		return false;
	if (casts)
		return is_file_at(table->fd + fd, c);
	if (table->max_fds == NR_OPEN_DEFAULT) {
		file = fd_inside(open, fd);
		return file && is_file((struct inode___pages *)file->f_inode, true, c);
	}
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file && is_file((struct inode___pages *)BPF_CORE_READ(file, f_inode), false, c);
}

/* Rule 8. */
static __always_inline void bare_begin(const struct disk_calling *c)
{
	__u64 id = bpf_get_current_pid_tgid();

	calls_bare = 1;
	if (bpf_map_update_elem(&calling_bare, &id, c, BPF_ANY))
		__sync_fetch_and_add(&disk_lost.calls, 1);
}

static __always_inline int call_begin(__u64 fd, __u32 call, bool casts)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct disk_calling c = {.call = call}, *to;

	if ((call != DISK_RESIZE && call_draw(&c.shift)) || !is_file_of(task, (__u32)fd, casts, &c))
		return PASS_ON;
	c.begin_ns = bpf_ktime_get_ns();
	to = bpf_task_storage_get(&calling, task, NULL, GET_CREATE);
	if (to)
		*to = c;
	else
		bare_begin(&c);
	return PASS_ON;
}

/* Two programs, one of which is loaded (rule 9). `fd_`: the argument that is the descriptor. */
#define CALL_BEGINS(name_, fd_, call_)                         \
	SEC("tracepoint")                                      \
	int name_(struct sys_enter *x)                         \
	{                                                      \
		return call_begin(x->args[fd_], call_, false); \
	}                                                      \
	SEC("?tracepoint")                                     \
	int name_##_cast(struct sys_enter *x)                  \
	{                                                      \
		return call_begin(x->args[fd_], call_, true);  \
	}

CALL_BEGINS(read_begins, 0, DISK_READ)
CALL_BEGINS(write_begins, 0, DISK_WRITE)
CALL_BEGINS(resize_begins, 0, DISK_RESIZE)
CALL_BEGINS(sendfile_begins, 1, DISK_READ)
CALL_BEGINS(copy_begins, 2, DISK_WRITE)

static __always_inline struct disk_calls *calls_get(struct disk_sync_key *key, __u64 blocks,
						    __u64 begin_ns)
{
	struct disk_calls *s = bpf_map_lookup_elem(&disk_calls, key);

	if (s)
		return s;
	bpf_map_update_elem(&disk_calls, key, &no_calls, BPF_NOEXIST);
	made(DISK_MADE_CALLS);
	s = bpf_map_lookup_elem(&disk_calls, key);
	if (s) {
		s->blocks = blocks;
		s->first_ns = begin_ns;
		return s;
	}
	key->ino = DISK_OTHERS;
	key->dev = 0;
	s = bpf_map_lookup_elem(&disk_rest_calls, key);
	if (s)
		return s;
	bpf_map_update_elem(&disk_rest_calls, key, &no_calls, BPF_NOEXIST);
	made(DISK_MADE_REST_CALLS);
	s = bpf_map_lookup_elem(&disk_rest_calls, key);
	if (!s)
		__sync_fetch_and_add(&disk_lost.calls, 1);
	return s;
}

static __always_inline void call_add(struct disk_sync_key *key, const struct disk_calling *c,
				     __s64 ret, __u64 begin_ns)
{
	__u64 now = bpf_ktime_get_ns(), ns = now > begin_ns && begin_ns ? now - begin_ns : 0;
	struct disk_calls *s = calls_get(key, c->blocks, begin_ns);
	__u64 one = 1ull << (c->shift & 31);

	if (!s)
		return;
	if (!s->named && key->ino != DISK_OTHERS &&
	    (calls_named < CALLS_NAMED || s->bytes + (ret > 0 ? ret : 0) >= CALLS_BYTES ||
	     ns >= CALLS_NS)) {
		s->named = 1;
		__sync_fetch_and_add(&calls_named, 1);
		inode_names(key->ino, key->dev, (struct inode___pages *)c->inode);
	}
	__sync_fetch_and_add(&s->calls, one);
	if (key->call == DISK_RESIZE)
		__sync_fetch_and_add(&s->resizes, one);
	if (ret > 0)
		__sync_fetch_and_add(&s->bytes, ret * one);
	else if (ret < 0)
		__sync_fetch_and_add(&s->errors, one);
	if (!begin_ns)
		return;
	__sync_fetch_and_add(&s->ns, ns * one);
	__sync_fetch_and_add(&s->hist[slot_of(ns / 1000) & (DISK_SLOTS - 1)], one);
}

static __always_inline void call_end(const struct disk_calling *c, __s64 ret)
{
	struct disk_sync_key key = {.epoch = disk_epoch};

	if (ret <= -ERESTARTSYS)
		return;
	who_fill_typed(&key.who);
	key.ino = c->ino;
	key.dev = c->dev;
	key.call = c->call;
	call_add(&key, c, ret, c->begin_ns);
}

static __always_inline void bare_end(__s64 ret)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct disk_calling *c = bpf_map_lookup_elem(&calling_bare, &id);

	if (!c)
		return;
	call_end(c, ret);
	bpf_map_delete_elem(&calling_bare, &id);
}

SEC("tracepoint")
int calls_end(struct sys_exit *x)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct disk_calling *c = bpf_task_storage_get(&calling, task, NULL, 0);

	if (c && c->begin_ns) {
		call_end(c, x->ret);
		c->begin_ns = 0;
	} else if (calls_bare) {
		bare_end(x->ret);
	}
	return PASS_ON;
}

/* ---- io_uring ---- */

static __always_inline bool ring_call(__u8 op, __u32 *call)
{
	switch (op) {
	case RING_READV:
	case RING_READ_FIXED:
	case RING_READ:
		*call = DISK_RING_READ;
		return true;
	case RING_WRITEV:
	case RING_WRITE_FIXED:
	case RING_WRITE:
		*call = DISK_RING_WRITE;
		return true;
	default:
		return false;
	}
}

static __always_inline int ring_begin(struct io_kiocb *req)
{
	struct disk_ringing r = {};
	__u64 id = (__u64)req;
	__u32 call;

	if (!ring_call(BPF_CORE_READ(req, opcode), &call) || call_draw(&r.shift))
		return 0;
	who_fill(&r.who);
	r.begin_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&ringing, &id, &r, BPF_ANY))
		__sync_fetch_and_add(&disk_lost.calls, 1);
	return 0;
}

/* From 6.4 on. */
PREEMPT_PAIR("raw_tp/io_uring_submit_req", ring_submits, ring_begin((struct io_kiocb *)ctx[0]))

/* From 6.0 on. */
PREEMPT_PAIR("raw_tp/io_uring_submit_sqe", ring_submits_sqe, ring_begin((struct io_kiocb *)ctx[0]))

static __always_inline int ring_end(struct io_kiocb *req)
{
	struct disk_sync_key key = {.epoch = disk_epoch};
	struct disk_calling c = {};
	struct disk_ringing *r;
	__u64 id = (__u64)req, begin_ns = 0;
	struct file *file;

	if (!req || !bpf_core_field_exists(struct io_kiocb, cqe) ||
	    !ring_call(BPF_CORE_READ(req, opcode), &key.call))
		return 0;
	file = BPF_CORE_READ(req, file);
	r = bpf_map_lookup_elem(&ringing, &id);
	if (r && file && is_file((struct inode___pages *)BPF_CORE_READ(file, f_inode), false, &c)) {
		begin_ns = r->begin_ns;
		c.shift = r->shift;
		key.who = r->who;
		key.ino = c.ino;
		key.dev = c.dev;
		call_add(&key, &c, BPF_CORE_READ(req, cqe.res), begin_ns);
	}
	bpf_map_delete_elem(&ringing, &id);
	return 0;
}

PREEMPT_PAIR("raw_tp/io_uring_complete", ring_completes, ring_end((struct io_kiocb *)ctx[1]))

#endif
