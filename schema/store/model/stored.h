/* SPDX-License-Identifier: Apache-2.0 */
/* stored: the numeric codes in the store's tables, for writers and readers. Never renumbered; most
 * have a table that explains them. */
#ifndef SONDE_STORE_MODEL_STORED_H
#define SONDE_STORE_MODEL_STORED_H

/* Which processes a run covered wholly; stored, never renumbered. */
enum store_scope {
	STORE_SCOPE_HOST = 0,
	STORE_SCOPE_NARROW = 1, /* wholly covers each process that has a series in it
				   (--pid, --cgroup, --container) */
	STORE_SCOPE_PARTIAL = 2 /* covers no process wholly (--comm) */
};

/* run.state of a run whose rows are in another file: here it hides those of others
 * (archive/keep.h). The comment on the table (schema/sql) has states 0 to 3. */
#define STORE_RUN_ELSEWHERE 4
/* run.options of what was kept of the ring begins so; the reason follows. */
#define STORE_KEPT "kept: "

/* How a process ended; stored, never renumbered (table end_kind). */
enum store_end_how {
	STORE_END_NONE = 0,
	STORE_END_EXIT = 1,
	STORE_END_SIGNAL = 2,
	STORE_END_OOM = 3,
	STORE_END_EXEC = 4,
	STORE_END_UNKNOWN = 5
};

/* Stored, never renumbered (table process). */
enum store_linking { STORE_LINKING_UNKNOWN = 0, STORE_STATIC = 1, STORE_DYNAMIC = 2 };
enum store_libc { STORE_LIBC_UNKNOWN = 0, STORE_GLIBC = 1, STORE_MUSL = 2 };

enum store_image_kind {
	STORE_IMAGE_ELF = 0,
	STORE_IMAGE_KERNEL = 1,
	STORE_IMAGE_VDSO = 2,
	STORE_IMAGE_JIT = 3,
	STORE_IMAGE_BPF = 4,
	STORE_IMAGE_MODULE = 5,
	STORE_IMAGE_UNKNOWN = 6,
	/* + the runtime (view frames): the text of a script; its path is as the program has it, its
	   key the path of the interpreter's file */
	STORE_IMAGE_SCRIPT = 16,
	STORE_IMAGE_SCRIPT_END = 32
};

/*
 * What sonde itself takes, its own cost, is defined once for all reports: CPU time of a
 * recording's loader, of its share of sonde-maps and of that one's sonde-index children, and the
 * run time of their BPF programs. While it records this is booked by program, in the bucket where
 * it was measured, every 10 s; so much of it as fell before the capture was ready, and after it was
 * over (names that come late, the last commits), is booked apart, under the programs
 * STORE_COST_START and STORE_COST_END, and is in no rate. store_own_cost (reader.h) sums it.
 * sonded, sonde-seal and the query tool are in no recording.
 */
#define STORE_COST_START "start"
#define STORE_COST_END   "end"

/* Stored: never renumbered; the same as table wait_class. */
enum store_wait_class {
	STORE_WAIT_OTHER = 0,
	STORE_WAIT_LOCK = 1, /* futex */
	STORE_WAIT_DISK = 2,
	STORE_WAIT_NETWORK = 3, /* sockets, those of one host too */
	STORE_WAIT_PIPE = 4,
	STORE_WAIT_POLL = 5, /* poll, select, epoll */
	STORE_WAIT_SLEEP = 6,
	STORE_WAIT_FAULT = 7,       /* page fault */
	STORE_WAIT_STOP = 8,        /* stopped, or traced */
	STORE_WAIT_CHILD = 9,       /* wait(2) */
	STORE_WAIT_MEMORY = 10,     /* reclaim, swap, memory.high: whatever the call is */
	STORE_READY_WOKEN = 16,     /* from its wake-up until it ran */
	STORE_READY_PREEMPTED = 17, /* it could have gone on: involuntary switches */
	STORE_READY_YIELDED = 18,   /* it gave way */
	STORE_RUNNING = 32
};

enum store_wait_flags {
	STORE_WAIT_BEFORE = 1,     /* began before the capture: the part inside it */
	STORE_WAIT_UNFINISHED = 2, /* still lasted at its end: the part inside it */
	STORE_WAIT_UNINTERRUPTIBLE = 4,
	STORE_WAIT_IOWAIT = 8
};

/* INTERRUPT: hard or soft, while that thread was on the CPU; what comes over loopback is still by
 * who sent it */
enum store_wake_context { STORE_WAKE_THREAD = 0, STORE_WAKE_INTERRUPT = 1 };
enum store_culprit_kind {
	STORE_CULPRIT_THREAD = 0,
	STORE_CULPRIT_IDLE = 1,
	STORE_CULPRIT_UNKNOWN = 2
};

/* Stored: never renumbered. */
enum store_side { STORE_SIDE_CAPTURE = 0, STORE_SIDE_CLIENT = 1, STORE_SIDE_SERVER = 2 };
enum store_result {
	STORE_RESULT_OK = 0,
	STORE_RESULT_ERROR = 1,
	STORE_RESULT_ONE_WAY = 2,
	STORE_RESULT_OPENED = 3,
	STORE_RESULT_NO_ANSWER = 4,
	STORE_RESULT_BLIND = 5
};

#endif
