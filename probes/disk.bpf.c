/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk: requests of block devices, from when they are made to when the device has answered.
 *
 * 1. Who asked is read at block_io_start (from 6.5 on) and block_rq_insert, which run in the
 *    context of the asker; at issue and completion another thread may be running.
 * 2. A request may be completed in parts: each adds its bytes, the last one counts the request.
 * 3. A request that is merged into another one never completes: its entry is dropped.
 * 4. A request to a partition is counted for the whole disk only. Devices on top of others (dm,
 *    loop) have requests too: to add devices up one must know the chain.
 * 5. A request that took longer than a bound, or longer than all others of its device since the
 *    loader began that search, goes into the ring as a record. Of two that end at the same time
 *    both may do so.
 * 6. Where there is no room for a process's sum, the request counts for its device.
 * 7. Under load some completions are not reported to programs (docs/decisions/0282). Such a request
 *    still has its entry when the next one has its address: then it is counted, without its times.
 *    Before 6.5 a request that is queued again looks the same, and none is counted so.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/disk.h"
#include "probes/disk/files.bpf.h"
#include "probes/disk/pages.bpf.h"
#include "probes/disk/sums.bpf.h"
#include "probes/lib/preempt.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define REQ_OP_MASK 0xff
#define DEVICES     512

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
	unsigned int cmd_flags, __data_len;
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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct disk_key);
	__type(value, struct disk_sum);
} disk_sums SEC(".maps");

struct { /* what found no room there */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct disk_key);
	__type(value, struct disk_sum);
} disk_rest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DEVICES);
	__type(key, __u64);   /* major << 32 | minor */
	__type(value, __u64); /* the longest request in ns; the loader deletes it */
} slowest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} slow_ring SEC(".maps");

const volatile __u64 slow_ns = 50000000; /* a request that takes so long has a record */

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

static __always_inline struct disk_sum *sum_get(void *map, const struct disk_key *key)
{
	struct disk_sum *s = bpf_map_lookup_elem(map, key);

	if (s)
		return s;
	bpf_map_update_elem(map, key, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

static __always_inline struct disk_sum *sum_of(struct disk_key *key)
{
	struct disk_sum *s = sum_get(&disk_sums, key);

	if (s)
		return s;
	key->who = (struct who_id){};
	s = sum_get(&disk_rest, key);
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
	struct disk_sum *s;

	s = sum_of(&key);
	if (!s)
		return;
	__sync_fetch_and_add(&s->requests, 1);
	__sync_fetch_and_add(&s->bytes, a->bytes);
	__sync_fetch_and_add(&disk_lost.unseen, 1);
	if (key.op <= 1 && a->bytes)
		file_add(&key, NULL, a->bytes, true);
}

static __always_inline int request_asked(struct request *rq)
{
	struct disk_asked a = {};
	__u64 id = (__u64)rq;

	who_fill(&a.who);
	a.tid = (__u32)bpf_get_current_pid_tgid();
	bpf_get_current_comm(a.comm, sizeof(a.comm));
	bpf_map_update_elem(&asked, &id, &a, BPF_ANY);
	return 0;
}

TRACEPOINT(block_io_start, disk_start, struct request *rq)
{
	__u64 id = (__u64)rq;
	struct disk_asked *before = bpf_map_lookup_elem(&asked, &id);

	if (before && before->issue_ns)
		unseen_count(before);
	return request_asked(rq);
}

/* Where there is block_io_start, this one is not loaded: a requeue inserts again, from elsewhere.
 */
TRACEPOINT(block_rq_insert, disk_insert, struct request *rq)
{
	return request_asked(rq);
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
	a->op = rq->cmd_flags & REQ_OP_MASK;
	disk = disk_of(rq);
	a->major = (__u32)disk->major;
	a->minor = (__u32)disk->first_minor;
	return 0;
}

TRACEPOINT(block_rq_merge, disk_merge, struct request *rq)
{
	__u64 id = (__u64)rq;

	bpf_map_delete_elem(&asked, &id);
	return 0;
}

static __always_inline void times_add(struct disk_sum *s, __u64 queue, __u64 device)
{
	__sync_fetch_and_add(&s->queue_ns, queue);
	__sync_fetch_and_add(&s->device_ns, device);
	__sync_fetch_and_add(&s->hist[slot_of(queue + device) & (DISK_SLOTS - 1)], 1);
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

static __always_inline void slow_tell(const struct disk_key *key, const struct disk_asked *a,
				      __u64 queue, __u64 device, bool failed)
{
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
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

TRACEPOINT(block_rq_complete, disk_complete, struct request *rq, int error, unsigned int bytes)
{
	__u64 id = (__u64)rq, now = bpf_ktime_get_ns(), made, issued = 0, queue, device;
	bool failed = error & 0xff; /* from 5.11 on a blk_status_t, which is a byte */
	__u32 left = rq->__data_len;
	struct disk_asked *a = bpf_map_lookup_elem(&asked, &id);
	struct disk_key key = {.op = rq->cmd_flags & REQ_OP_MASK, .epoch = disk_epoch};
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
	__sync_fetch_and_add(&s->bytes, bytes < left ? bytes : left);
	request_files(rq->bio, &key, bytes < left ? bytes : left);
	if (failed && a)
		a->failed = 1;
	if (bytes < left)
		return 0;
	failed = failed || (a && a->failed);
	__sync_fetch_and_add(&s->requests, 1);
	if (failed)
		__sync_fetch_and_add(&s->errors, 1);
	made = rq->start_time_ns;
	queue = made && issued > made ? issued - made : 0;
	device = issued && now > issued ? now - issued : 0;
	times_add(s, queue, device);
	if (a && issued && is_slow(&key, queue + device))
		slow_tell(&key, a, queue, device, failed);
	bpf_map_delete_elem(&asked, &id);
	return 0;
}
