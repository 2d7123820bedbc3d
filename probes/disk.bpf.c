/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk: requests of block devices, from when they are made to when the device has answered.
 *
 * 1. Who asked is read at block_io_start (from 6.5 on) and block_rq_insert, which run in the
 *    context of the asker; at issue and completion another thread may be running.
 * 2. A request may be completed in parts: each adds its bytes, the last one counts the request. One
 *    whose data must be on the disk when it is over (FUA, where the device cannot do that by
 * itself) is completed once with its data, and again, without, after the flush that follows: as
 *    /proc/diskstats has it, the second time counts.
 * 3. A request that is merged into another one never completes: its entry is cleared.
 * 4. A request to a partition is counted for the whole disk only. Devices on top of others (dm,
 *    loop) have requests too: to add devices up one must know the chain.
 * 5. A request that took longer than a bound, or longer than all others of its device since the
 *    loader began that search, goes into the ring as a record. Of two that end at the same time
 *    both may do so.
 *    It has the kernel stack of the thread that asked, if that waits uninterruptibly at that
 *    moment, as it does for reads, direct writes and fsync: the device's answer is what wakes it.
 *    Kernel threads that only pass requests on have gone on, and have none.
 * 6. Where there is no room for a process's sum, the request counts for its device.
 * 7. Under load some completions are not reported to programs (docs/decisions/0282). Such a request
 *    still has its entry when the next one has its address: then it is counted, without its times.
 *    Before 6.5 a request that is queued again looks the same, and none is counted so.
 * 8. A request is sequential if it begins where the one of the same process, device and operation
 *    that ended before it does, or within NEAR sectors of that: several are at hand at a time, and
 *    end in another order. The first of each epoch does not count as that.
 * 9. Devices on top of others that make no requests (dm, md) fail by the bio: it is counted as an
 *    error of that device, without a request. The kernel reports such an end of their bios only.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/disk.h"
#include "probes/disk/calls.bpf.h"
#include "probes/disk/files.bpf.h"
#include "probes/disk/locks.bpf.h"
#include "probes/disk/pages.bpf.h"
#include "probes/disk/sums.bpf.h"
#include "probes/lib/preempt.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define REQ_OP_MASK  0xff
#define REQ_OP_FLUSH 2
#define DEVICES      512
#define NEAR         256 /* sectors: 128 KiB */

#define TASK_UNINTERRUPTIBLE 0x2

struct gendisk {
	int major, first_minor;
} __attribute__((preserve_access_index));

struct block_device {
	struct gendisk *bd_disk;
} __attribute__((preserve_access_index));

struct request_queue {
	struct gendisk *disk; /* since 5.15 */
} __attribute__((preserve_access_index));

struct request {
	struct request_queue *q;
	unsigned int cmd_flags, rq_flags, __data_len;
	__u64 __sector;
	__u64 start_time_ns;
	struct bio *bio;
	struct block_device *part;
} __attribute__((preserve_access_index));

struct request___5_10 { /* its part is a struct hd_struct */
	struct gendisk *rq_disk;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* the request's address */
	__type(value, struct disk_asked);
} asked SEC(".maps");

DISK_HASH(disk_sums, 16384, struct disk_key, struct disk_sum);

/* What found no room there. */
DISK_HASH(disk_rest, 4096, struct disk_key, struct disk_sum);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DEVICES);
	__type(key, __u64);   /* major << 32 | minor */
	__type(value, __u64); /* the longest request in ns; the loader deletes it */
} slowest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144);
} slow_ring SEC(".maps");

struct wait_stack {
	__u64 at[DISK_STACK];
};

struct { /* the helper takes no memory of the ring together with a task */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_stack);
} stack_scratch SEC(".maps");

const volatile __u64 slow_ns = 50000000; /* a request that takes so long has a record */
const volatile __u32 flush_seq_bit =
	DISK_FLUSH_SEQ_BEFORE; /* of request.rq_flags; the loader sets it (hooks.c) */

static const struct disk_sum nothing;

static __always_inline struct gendisk *disk_of(struct request *rq)
{
	struct request___5_10 *old = (void *)rq;

	if (bpf_core_field_exists(rq->q->disk)) /* a flush of the block layer has no part */
		return rq->q->disk;
	if (bpf_core_field_exists(old->rq_disk))
		return old->rq_disk;
	return rq->part->bd_disk;
}

static __always_inline struct disk_sum *sum_get(void *map, enum disk_made which,
						const struct disk_key *key)
{
	struct disk_sum *s = bpf_map_lookup_elem(map, key);

	if (s)
		return s;
	bpf_map_update_elem(map, key, &nothing, BPF_NOEXIST);
	made(which);
	return bpf_map_lookup_elem(map, key);
}

static __always_inline struct disk_sum *sum_of(struct disk_key *key)
{
	struct disk_sum *s = sum_get(&disk_sums, DISK_MADE_SUMS, key);

	if (s)
		return s;
	key->who = (struct who_id){};
	s = sum_get(&disk_rest, DISK_MADE_REST, key);
	__sync_fetch_and_add(s ? &disk_lost.crowded : &disk_lost.requests, 1);
	return s;
}

/* Rule 7. */
static __always_inline void unseen_count(const struct disk_asked *a)
{
	struct disk_key key = {.who = a->who,
			       .major = a->major,
			       .minor = a->minor,
			       .op = a->op,
			       .epoch = disk_epoch};
	__u32 left = a->bytes - a->done;
	struct disk_sum *s;

	s = sum_of(&key);
	if (!s)
		return;
	__sync_fetch_and_add(&s->requests, 1);
	__sync_fetch_and_add(&s->bytes, left);
	__sync_fetch_and_add(&disk_lost.unseen, 1);
	if (key.op <= 1 && left)
		file_add(&key, NULL, left, true);
}

/* `typed`: the kernel is one with block_io_start. */
static __always_inline void asked_fill(struct disk_asked *a, bool typed)
{
	if (typed)
		who_fill_typed(&a->who);
	else
		who_fill(&a->who);
	a->tid = (__u32)bpf_get_current_pid_tgid();
	bpf_get_current_comm(a->comm, sizeof(a->comm));
	a->issue_ns = 0;
	a->failed = 0;
}

/* A device has the same requests again and again, so the entry stays for the next one. */
static __always_inline void asked_clear(struct disk_asked *a)
{
	__builtin_memset(&a->who, 0, sizeof(a->who));
	a->tid = 0;
	a->comm[0] = 0;
	a->issue_ns = 0;
	a->failed = 0;
}

static __always_inline int request_asked(struct request *rq, struct disk_asked *before, bool typed)
{
	struct disk_asked a = {};
	__u64 id = (__u64)rq;

	if (before) {
		asked_fill(before, typed);
		return 0;
	}
	asked_fill(&a, typed);
	if (bpf_map_update_elem(&asked, &id, &a, BPF_ANY))
		__sync_fetch_and_add(&disk_lost.crowded, 1);
	return 0;
}

TRACEPOINT(block_io_start, disk_start, struct request *rq)
{
	__u64 id = (__u64)rq;
	struct disk_asked *before = bpf_map_lookup_elem(&asked, &id);

	if (before && before->issue_ns)
		unseen_count(before);
	return request_asked(rq, before, true);
}

/* Where there is block_io_start, this one is not loaded: a requeue inserts again, from elsewhere.
 */
TRACEPOINT(block_rq_insert, disk_insert, struct request *rq)
{
	__u64 id = (__u64)rq;

	return request_asked(rq, bpf_map_lookup_elem(&asked, &id), false);
}

TRACEPOINT(block_rq_issue, disk_issue, struct request *rq)
{
	__u64 id = (__u64)rq;
	struct disk_asked *a = bpf_map_lookup_elem(&asked, &id), none = {};
	struct gendisk *disk;

	if (!a) {
		bpf_map_update_elem(&asked, &id, &none, BPF_ANY);
		a = bpf_map_lookup_elem(&asked, &id);
	}
	if (!a)
		return 0;
	a->issue_ns = bpf_ktime_get_ns();
	a->sector = rq->__sector; /* what a typed tracepoint gives is read without a helper */
	a->bytes = rq->__data_len;
	a->done = 0;
	a->op = rq->cmd_flags & REQ_OP_MASK;
	disk = disk_of(rq);
	a->major = (__u32)disk->major;
	a->minor = (__u32)disk->first_minor;
	return 0;
}

TRACEPOINT(block_rq_merge, disk_merge, struct request *rq)
{
	__u64 id = (__u64)rq;
	struct disk_asked *a = bpf_map_lookup_elem(&asked, &id);

	if (a)
		asked_clear(a);
	return 0;
}

/* Rule 8. Two CPUs may take each other's `next`: then one of a sequence is not counted as that. */
static __always_inline void order_add(struct disk_sum *s, const struct disk_asked *a)
{
	if (a->sector + NEAR - s->next < 2 * NEAR && s->next)
		__sync_fetch_and_add(&s->sequential, 1);
	s->next = a->sector + a->bytes / 512;
}

static __always_inline void times_add(struct disk_sum *s, __u64 queue, __u64 device)
{
	__sync_fetch_and_add(&s->queue_ns, queue);
	__sync_fetch_and_add(&s->device_ns, device);
	__sync_fetch_and_add(&s->hist[slot_of((queue + device) / 1000) & (DISK_SLOTS - 1)], 1);
}

/* Rule 5. */
static __always_inline bool is_slow(const struct disk_key *key, __u64 ns)
{
	__u64 device = (__u64)key->major << 32 | key->minor, *most;

	most = bpf_map_lookup_elem(&slowest, &device);
	if (most && *most >= ns)
		return ns >= slow_ns;
	if (most)
		*most = ns;
	else
		bpf_map_update_elem(&slowest, &device, &ns, BPF_ANY);
	return true;
}

struct task_struct___disk {
	unsigned int __state; /* since 5.14 */
} __attribute__((preserve_access_index));

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak; /* since 6.2 */
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

static __always_inline long stack_take(__u32 tid, struct wait_stack *out)
{
	struct task_struct *task = bpf_task_from_pid((__s32)tid);
	long got = 0;

	if (!task)
		return 0;
	if (BPF_CORE_READ((struct task_struct___disk *)task, __state) & TASK_UNINTERRUPTIBLE)
		got = bpf_get_task_stack(task, out->at, sizeof(out->at), 0);
	bpf_task_release(task);
	return got;
}

static __always_inline void slow_tell(const struct disk_key *key, const struct disk_asked *a,
				      __u64 queue, __u64 device, bool failed, bool stacks)
{
	__u32 zero = 0;
	struct wait_stack *w = stacks ? bpf_map_lookup_elem(&stack_scratch, &zero) : NULL;
	long got = w && a->tid ? stack_take(a->tid, w) : 0;
	struct disk_slow *r = bpf_ringbuf_reserve(&slow_ring, sizeof(*r), 0);

	if (!r) {
		__sync_fetch_and_add(&disk_lost.slow, 1);
		return;
	}
	r->who = a->who;
	r->done_ns = bpf_ktime_get_boot_ns();
	r->sector = a->sector;
	r->queue_ns = queue;
	r->device_ns = device;
	r->bytes = a->bytes;
	r->failed = failed;
	r->major = key->major;
	r->minor = key->minor;
	r->op = key->op;
	r->tid = a->tid;
	__builtin_memcpy(r->comm, a->comm, sizeof(r->comm));
	r->frames = got > 0 ? (__u32)got / sizeof(__u64) : 0;
	r->pad = 0;
	if (w)
		__builtin_memcpy(r->stack, w->at, sizeof(r->stack));
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* Is it a step of a sequence with flushes? Each flush is a request itself. */
static __always_inline bool is_step(const struct request *rq, __u32 op)
{
	return op != REQ_OP_FLUSH && rq->rq_flags >> (flush_seq_bit & 31) & 1;
}

static __always_inline int completed(struct request *rq, int error, __u32 bytes, bool stacks)
{
	__u64 id = (__u64)rq, now = bpf_ktime_get_ns(), made, issued = 0, queue, device;
	bool failed = error & 0xff; /* from 5.11 on a blk_status_t, which is a byte */
	__u32 left = rq->__data_len;
	struct disk_asked *a = bpf_map_lookup_elem(&asked, &id);
	struct disk_key key = {.op = rq->cmd_flags & REQ_OP_MASK, .epoch = disk_epoch};
	bool whole = bytes >= left, last = whole && !is_step(rq, key.op);
	struct gendisk *disk = disk_of(rq);
	struct disk_sum *s;

	key.major = (__u32)disk->major;
	key.minor = (__u32)disk->first_minor;
	if (a) {
		key.who = a->who;
		issued = a->issue_ns;
	}
	s = sum_of(&key);
	if (!s)
		return 0;
	bytes = whole ? left : bytes;
	__sync_fetch_and_add(&s->bytes, bytes);
	request_files(rq->bio, &key, bytes, whole);
	if (failed && a)
		a->failed = 1;
	if (!last) {
		if (a)
			a->done += bytes;
		return 0;
	}
	failed = failed || (a && a->failed);
	__sync_fetch_and_add(&s->requests, 1);
	if (a && issued)
		order_add(s, a);
	if (failed)
		__sync_fetch_and_add(&s->errors, 1);
	made = rq->start_time_ns;
	queue = made && issued > made ? issued - made : 0;
	device = issued && now > issued ? now - issued : 0;
	times_add(s, queue, device);
	if (a && issued && is_slow(&key, queue + device))
		slow_tell(&key, a, queue, device, failed, stacks);
	if (a)
		asked_clear(a);
	return 0;
}

/* Rule 9. */
TRACEPOINT(block_bio_complete, disk_bio_end, struct request_queue *q, struct bio *bio)
{
	struct disk_key key = {.epoch = disk_epoch};
	struct bio___5_10 *old = (void *)bio;
	struct gendisk *disk;
	struct disk_sum *s;

	if (!bio || !bio->bi_status)
		return 0;
	if (bpf_core_field_exists(old->bi_disk))
		disk = BPF_CORE_READ(old, bi_disk);
	else
		disk = BPF_CORE_READ(bio, bi_bdev, bd_disk);
	key.op = bio->bi_opf & REQ_OP_MASK;
	key.major = (__u32)BPF_CORE_READ(disk, major);
	key.minor = (__u32)BPF_CORE_READ(disk, first_minor);
	s = sum_of(&key);
	if (s)
		__sync_fetch_and_add(&s->errors, 1);
	return 0;
}

/* One of the two is loaded: before 6.2 there are no such stacks. */
TRACEPOINT(block_rq_complete, disk_complete, struct request *rq, int error, unsigned int bytes)
{
	return completed(rq, error, bytes, false);
}

TRACEPOINT(block_rq_complete, disk_complete_stack, struct request *rq, int error,
	   unsigned int bytes)
{
	return completed(rq, error, bytes, true);
}
