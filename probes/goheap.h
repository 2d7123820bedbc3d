/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * goheap: the last profile of a Go process that ends. The loader leaves, for each process that it
 * reads, the addresses of its allocation records (128 bytes each, loaders/goheap/buckets.h); when
 * the process dies, the program reads them again, in the process itself, while its memory still
 * exists, and sends them in pieces.
 */
#ifndef SONDE_PROBES_GOHEAP_H
#define SONDE_PROBES_GOHEAP_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define GOHEAP_RECORD      128
#define GOHEAP_PIECE       32   /* records in one event */
#define GOHEAP_PIECES      1024 /* of one process, at most */
#define GOHEAP_PER_PROCESS (GOHEAP_PIECE * GOHEAP_PIECES)
#define GOHEAP_ADDRESSES   (512 * 1024)

/* Value of the map `processes`, by tgid. */
struct goheap_process {
	__u64 start_ns; /* as in stack_event: of the leader */
	__u64 cycle;    /* address of runtime.mProfCycle, 0: not known */
	__u32 exec_id;
	__u32 first; /* of its addresses in the array `addresses` */
	__u32 count;
	__u32 taken; /* the program has read them */
};
_Static_assert(sizeof(struct goheap_process) == 32, "wire size");

enum goheap_cause {
	GOHEAP_EXIT = 0,   /* it ended by itself; `code` is what it returned */
	GOHEAP_SIGNAL = 1, /* `code` is the signal */
	GOHEAP_OOM = 2     /* killed because memory ran out */
};

struct goheap_last {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 start_ns;
	__u32 tgid, exec_id;
	__u32 cause, code; /* enum goheap_cause */
	__u32 cycle;       /* runtime.mProfCycle as read */
	__u32 cycle_known;
	__u32 first; /* of these records, within the process's */
	__u32 count;
	__u32 total;                      /* of the process */
	__u32 missing[GOHEAP_PIECE / 32]; /* bit: this record could not be read */
	__u8 records[GOHEAP_PIECE][GOHEAP_RECORD];
};
_Static_assert(sizeof(struct goheap_last) == 16 + 40 + GOHEAP_PIECE * GOHEAP_RECORD, "wire size");

/* What the program counts, one value a CPU. */
struct goheap_tally {
	__u64 processes; /* last profiles begun */
	__u64 pieces, ring_full;
};

#endif
