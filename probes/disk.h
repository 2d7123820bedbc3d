/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk: what the block layer did, summed by who asked, and calls on files that say how disks feel:
 * fsync, and opens that failed. Times are nanoseconds, sizes bytes.
 *
 * Sums are kept by epoch, a number that the loader counts up: the programs only add to sums of the
 * present one, so those of an earlier one are complete, and can be read and deleted.
 */
#ifndef SONDE_PROBES_DISK_H
#define SONDE_PROBES_DISK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "probes/lib/who.h"

#define DISK_SLOTS \
	32 /* slot n of a histogram counts times of 2^n to 2^(n+1)-1 us; the last, more */
#define DISK_COMM  16
#define DISK_NAME  32 /* of a part of a path; cut if it is longer */
#define DISK_NAMES 8  /* the file's, its folder's, and those above */
#define DISK_LONG  72 /* of a part of a path of a file of requests, DISK_DEEP such */
#define DISK_DEEP  16
#define DISK_PAGE  4096ull /* the unit of dirty pages on x86 */
#define DISK_PATH  128     /* of an open; cut if it is longer */

#define DISK_STACK 32 /* kernel frames of who waits */

#define DISK_FLUSH_SEQ_BEFORE 4       /* RQF_FLUSH_SEQ before 6.11 */
#define DISK_OTHERS           (~0ull) /* files of a process that there was no room for */

struct disk_key {
	struct who_id who;  /* {0} also: none was seen to ask (a flush of the block layer) */
	__u32 major, minor; /* of the whole disk, also for a request to a partition */
	__u32 op;           /* the kernel's enum req_op */
	__u32 epoch;
};
_Static_assert(sizeof(struct disk_key) == 32, "wire size");

struct disk_sum {
	__u64 requests, bytes, errors;
	__u64 queue_ns, device_ns;
	__u64 sequential, next; /* of requests; the sector behind the last one */
	__u32 hist[DISK_SLOTS]; /* queue and device time together */
};
_Static_assert(sizeof(struct disk_sum) == 184, "wire size");

struct disk_asked { /* a request that is not known to have ended */
	struct who_id who;
	__u64 issue_ns;                /* when the device got it; 0: not yet */
	__u64 sector;                  /* these are known with issue_ns */
	__u32 major, minor, op, bytes; /* as in struct disk_key */
	__u32 done;                    /* of bytes, those that the device has answered */
	__u32 failed;                  /* in part */
	__u32 tid, pad;
	char comm[DISK_COMM];
};
_Static_assert(sizeof(struct disk_asked) == 80, "wire size");

struct disk_slow { /* a single request, in the ring */
	struct who_id who;
	__u64 done_ns; /* boot clock */
	__u64 sector;  /* of 512 bytes, on the whole disk */
	__u64 queue_ns, device_ns;
	__u32 bytes, failed;
	__u32 major, minor, op;
	__u32 tid; /* the thread that asked */
	char comm[DISK_COMM];
	__u32 frames, pad;       /* 0: that thread was not waiting, or it is not known */
	__u64 stack[DISK_STACK]; /* return addresses in the kernel, innermost first */
};
_Static_assert(sizeof(struct disk_slow) == 96 + 8 * DISK_STACK, "wire size");

enum disk_call { DISK_FSYNC, DISK_FDATASYNC, DISK_SYNC_RANGE, DISK_SYNCFS, DISK_CALLS };

struct disk_sync_key {
	struct who_id who;
	__u64 ino;
	__u32 dev;  /* the kernel's dev_t: major << 20 | minor */
	__u32 call; /* enum disk_call */
	__u32 epoch, pad;
};
_Static_assert(sizeof(struct disk_sync_key) == 40, "wire size");

struct disk_sync {
	__u64 calls, errors, ns;
	__u32 hist[DISK_SLOTS];
	__u32 fd, pad;                     /* of the first call */
	char names[DISK_NAMES][DISK_NAME]; /* [0] the file's; "/" ends them */
};
_Static_assert(sizeof(struct disk_sync) == 32 + 4 * DISK_SLOTS + DISK_NAMES * DISK_NAME,
	       "wire size");

struct disk_syncing {   /* a call that has not returned */
	__u64 begin_ns; /* monotonic clock */
	struct disk_sync_key key;
	__u32 fd, pad;
	__u64 name; /* the kernel's own */
};
_Static_assert(sizeof(struct disk_syncing) == 64, "wire size");

enum disk_io {
	DISK_READ,
	DISK_WRITE,
	DISK_RING_READ,
	DISK_RING_WRITE,
	DISK_RESIZE,
	DISK_IOS
}; /* call of a key */

struct disk_calls { /* reads or writes of a file, by struct disk_sync_key */
	__u64 calls, errors, bytes, ns;
	__u64 named;    /* its name was read */
	__u64 blocks;   /* of 512 bytes, before the first of these */
	__u64 first_ns; /* when that began: monotonic clock */
	__u64 resizes;
	__u32 hist[DISK_SLOTS];
};
_Static_assert(sizeof(struct disk_calls) == 64 + 4 * DISK_SLOTS, "wire size");

struct disk_calling { /* a read or write of this thread; begin_ns 0: none */
	__u64 begin_ns, ino, inode, blocks;
	__u32 dev, call;
	__u32 shift, pad; /* it counts for 2^shift */
};
_Static_assert(sizeof(struct disk_calling) == 48, "wire size");

struct disk_ringing { /* the same by io_uring, of a request */
	__u64 begin_ns;
	struct who_id who;
	__u32 shift, pad;
};

enum disk_lock { DISK_FLOCK, DISK_POSIX, DISK_OFD, DISK_LOCKS };

struct disk_lock_key {
	struct who_id who; /* who waited */
	__u64 ino;
	__u32 dev, lock; /* enum disk_lock */
	__s32 holder;    /* process that had it when the wait began; 0 and less: not known */
	__u32 epoch;
};
_Static_assert(sizeof(struct disk_lock_key) == 40, "wire size");

struct disk_locks {
	__u64 waits, errors, ns, longest_ns;
};
_Static_assert(sizeof(struct disk_locks) == 32, "wire size");

struct disk_locking {   /* a wait that is not over */
	__u64 begin_ns; /* monotonic clock */
	struct disk_lock_key key;
};
_Static_assert(sizeof(struct disk_locking) == 48, "wire size");

struct disk_open_key { /* an open that failed */
	struct who_id who;
	__u32 error; /* as in errno.h */
	__u32 epoch;
	char path[DISK_PATH]; /* as the program gave it */
};
_Static_assert(sizeof(struct disk_open_key) == 152, "wire size");

struct disk_file_key { /* a file that was read, written or made dirty */
	struct who_id who;
	__u64 ino; /* 0: the device dev itself; with dev 0: no file is known; DISK_OTHERS */
	__u32 dev; /* the kernel's dev_t */
	__u32 epoch;
	__u32 major, minor; /* the disk of the requests; 0, 0: of what was made dirty */
};
_Static_assert(sizeof(struct disk_file_key) == 40, "wire size");

struct disk_file {
	__u64 reads, read_bytes, writes, write_bytes; /* of requests that the device has answered */
	__u64 dirty_bytes;
	__u64 blocks; /* of 512 bytes, before the first of these */
};
_Static_assert(sizeof(struct disk_file) == 48, "wire size");

struct disk_inode { /* a file, for all who use it */
	__u64 ino;
	__u32 dev, pad;
};

struct disk_names {
	char names[DISK_DEEP][DISK_LONG]; /* [0] the file's; "/" ends them */
};

struct disk_held { /* an open file that has no name any more */
	struct who_id who;
	__u64 ino;
	__u32 dev, fd;
};
_Static_assert(sizeof(struct disk_held) == 32, "wire size");

/* Hashes that the loader reads with each epoch: which of them a program has added an entry to since
 * the loader began to read it last, in `disk_made`. */
enum disk_made {
	DISK_MADE_SUMS,
	DISK_MADE_REST,
	DISK_MADE_SYNCING,
	DISK_MADE_SYNCS,
	DISK_MADE_OPENS,
	DISK_MADE_REST_OPENS,
	DISK_MADE_LOCKING,
	DISK_MADE_LOCKS,
	DISK_MADE_FILES,
	DISK_MADE_REST_FILES,
	DISK_MADE_CALLS,
	DISK_MADE_REST_CALLS,
	DISK_MADE_N
};

struct disk_lost {
	__u64 requests;     /* found no room at all */
	__u64 slow;         /* single requests: the ring was full */
	__u64 syncs, opens; /* these and the next found no room, as requests; of opens, of all */
	__u64 files;
	__u64 calls, locks;
	__u64 unseen;  /* requests that are counted without their times: not lost */
	__u64 crowded; /* requests that are counted for their device, without their process */
};

#endif
