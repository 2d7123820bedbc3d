/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu: what the program and its loader share. How it works is in offcpu.bpf.c.
 *
 * Every thread has a state since it left the CPU or came to it; each stretch in a state goes, when
 * it ends, into a sum kept by (thread, class, flags). Sums only grow: the loader reads them from
 * time to time and takes differences, so that nothing is lost between two readings. A thread has a
 * unique number (`id`), which changes at exec and when it changes its name; the map `who` says
 * which thread that is, and outlives it until the loader has read its last sums.
 */
#ifndef SONDE_PROBES_OFFCPU_H
#define SONDE_PROBES_OFFCPU_H

#include "probes/lib/stack.h"
#include "probes/offcpu_draw.h"

/* As stored (schema/store/model/stored.h): never renumbered. */
enum offcpu_class {
	OFFCPU_OTHER = 0,
	OFFCPU_LOCK = 1,
	OFFCPU_DISK = 2,
	OFFCPU_NETWORK = 3,
	OFFCPU_PIPE = 4,
	OFFCPU_POLL = 5,
	OFFCPU_SLEEP = 6,
	OFFCPU_FAULT = 7,
	OFFCPU_STOP = 8,
	OFFCPU_CHILD = 9,
	OFFCPU_MEMORY = 10,
	OFFCPU_WOKEN = 16,     /* ready: from its wake-up until it ran */
	OFFCPU_PREEMPTED = 17, /* ready: it could have gone on */
	OFFCPU_YIELDED = 18,   /* ready: it gave way */
	OFFCPU_RUNNING = 32,
	/* of the table of system calls only */
	OFFCPU_BY_FILE = 64, /* by what its first argument, a descriptor, is */
	OFFCPU_RESTART = 65  /* goes on with the one before */
};

enum offcpu_flags {                          /* as stored */
		    OFFCPU_F_BEFORE = 1,     /* began before the capture: the part inside it */
		    OFFCPU_F_UNFINISHED = 2, /* the loader's: still lasted at its end */
		    OFFCPU_F_UNINTERRUPTIBLE = 4,
		    OFFCPU_F_IOWAIT = 8,
		    OFFCPU_F_STACKLESS =
			    16 /* the loader's too: began while no stacks were taken. Not stored */
};

#define OFFCPU_LONG_NS                                                             \
	1000000000 /* a thread that waited so long waits as long again, most often \
		    */

#define OFFCPU_SYSCALLS 512

enum offcpu_state { OFFCPU_S_RUNNING = 1, OFFCPU_S_BLOCKED = 2, OFFCPU_S_READY = 3 };

/* Where stacks are taken as threads leave: how often something came lately, and which one of a
 * block is chosen. See limit_weight. */
struct offcpu_limit {
	__u32 window;      /* number of the window */
	__u32 now, before; /* events in it so far, and in the one before */
	__u32 until;       /* the share is computed again if `now` is larger */
	__u32 shift;       /* one in 2^shift is chosen */
	__u32 at, pick;    /* events of a block of 2^shift so far; the chosen one */
	__u32 pad;
};

/* What a thread waits on. */
enum offcpu_object_kind {
	OFFCPU_ON_NOTHING = 0,
	OFFCPU_ON_FUTEX = 1, /* value: its address */
	OFFCPU_ON_FILE = 2,  /* value: its inode's number; fd */
	OFFCPU_ON_PEER = 3,  /* family, peer, port: of the other end */
	OFFCPU_ON_GIL = 5, /* value: as of a futex. The lock that lets one thread of an interpreter
			      run at a time */
	OFFCPU_ON_PORT =
		4 /* family, port: of this end; there is no other one, or it has no address */
};
struct offcpu_object {
	__u64 value;
	__u32 fd;
	__u16 family;
	__u16 port;    /* of the host's byte order */
	__u8 peer[16]; /* IPv4: the first four */
	__u8 kind;     /* enum offcpu_object_kind */
	__u8 pad[7];
};

/* The slots of a thread's sums: those used last. */
enum offcpu_sum_of {
	OFFCPU_SUM_RUNNING = 0,
	OFFCPU_SUM_BLOCKED,
	OFFCPU_SUM_READY,
	OFFCPU_SUM_LAST
};
#define OFFCPU_SUM_KNOWN  (1u << 31)
#define OFFCPU_WAKE_TURNS (1u << 14) /* of wake_turn; a power of two */
struct offcpu_sum_at {
	__u32 what; /* OFFCPU_SUM_KNOWN | flags << 16 | class; 0: none yet */
	__u32 slot; /* in `sums` */
};

struct offcpu_wake_at {
	__u64 waker;
	__u32 what; /* OFFCPU_SUM_KNOWN | wake_turn << 17 | context << 16 | class; 0: none yet */
	__u32 slot; /* in `wake_sums` */
};

/* Value of the map `threads`, by task_struct's address: it lives as long as the thread. What each
 * switch needs comes first. */
struct offcpu_thread {
	__u64 id;       /* 0: `who` had no room for it */
	__u64 since_ns; /* in this state; 0 while the entry is made */
	__u64 woken_ns; /* blocked: ready since; 0: not yet woken */
	__u8 state;     /* enum offcpu_state */
	__u8 class;     /* of the stretch: enum offcpu_class */
	__u8 flags;     /* of the stretch: enum offcpu_flags */
	__u8 in_scope;
	__u8 call_class; /* of the last system call it waited in */
	__u8 hinted;     /* woken while it ran */
	__u8 slow;       /* its last wait was a long one */
	__u8 left;       /* the wait's begin was seen */
	struct offcpu_sum_at sums[OFFCPU_SUM_LAST];
	struct offcpu_wake_at woken_by; /* what its last wake-up was added to */
	__u64 waker; /* id of the thread that woke it; 0: an interrupt did, or it is not known */
	__u64 comm[2];
	__u64 out_ns;   /* time_ns of the stack that was taken of the wait */
	__u64 start_ns; /* of the process, as in stack_event */
	__u32 tgid, tid, exec_id;
	__u32 weight; /* how many waits the stack of this one represents; 0: no stack */
	struct offcpu_limit limit;
	__u64 serves;            /* who serves requests on it, of the wait whose stack is taken
				    (inflight.bpf.h): a goroutine goes nowhere while its thread waits */
	__u64 tag;               /* of the request that is served, as the wait ends */
	struct offcpu_object on; /* of the wait, where its stack was taken */
	__u32 tried;             /* without a number: the last reading by which there was no room */
	__u32 pad;
	__u64 unused[5];
};
/* The kernel keeps an entry behind 48 bytes of the hash's and the key: `id` ends their cache line,
 * since_ns to woken_by are the next one, in each entry. */
_Static_assert((56 + sizeof(struct offcpu_thread)) % 64 == 0, "whole cache lines");
_Static_assert(__builtin_offsetof(struct offcpu_thread, waker) == 72, "one cache line");

struct offcpu_who { /* value of the map `who`, by id */
	__u64 task; /* key in `threads` while it lives */
	__u64 start_ns, cgroup_id;
	__u32 tgid, tid, exec_id;
	__u32 flags; /* STACK_F_KTHREAD */
	char comm[STACK_COMM_LEN];
};

/* How long stretches were, in steps of an eighth of a power of two (schema/store/model/hist.h, rule
 * 1). Of a sum only the powers that it has something of have steps: power 0 is [0, 8) ns, power p
 * [2^(p+2), 2^(p+3)). */
#define OFFCPU_POWERS 64 /* a power of two: an index is masked */
#define OFFCPU_STEPS  8
#define OFFCPU_COARSE (1u << 31)
struct offcpu_steps { /* value of the array `steps` */
	__u32 n[OFFCPU_STEPS];
};

struct offcpu_key { /* of the map `totals`: the value is a slot in `sums` */
	__u64 id;
	__u32 class, flags;
};
struct offcpu_sum { /* value of the array `sums` */
	__u64 n, total_ns;
	__u64 max_ns[2]; /* of the readings with this last bit */
	__u32 reading[2];
	__u32 last;                  /* the program's own: 1 + the power that the last one had */
	__u32 last_steps;            /* and the number of its steps: the next one is often alike */
	struct draw_stratum stratum; /* so far a cache line */
	__u32 power[OFFCPU_POWERS];  /* 0: nothing yet; 1 + the number of its steps; OFFCPU_COARSE |
					how many: there were no steps left */
};

/* Slots in `sums` that are free, in the queue `free_slots`, steps in `free_steps`, and slots of
 * `wake_sums` in `free_wakes`: zeroed by the loader, which has them back when it has read the last
 * of a thread. */
struct offcpu_slots {
	__u32 first, n;
};

/* Value of the map `rests`, by class: stretches of threads that the tables have no room for. */
#define OFFCPU_RESTS (OFFCPU_RUNNING + 1)
struct offcpu_rest {
	__u64 n, total_ns;
	__u64 power[OFFCPU_POWERS]; /* of lengths of [2^i, 2^(i+1)) ns; 0: below 2 ns */
};

enum offcpu_context {
	OFFCPU_IN_THREAD = 0,
	OFFCPU_IN_INTERRUPT = 1
};                       /* as stored; soft interrupts too */
struct offcpu_wake_key { /* of the map `wakes`: the value is a slot in `wake_sums`, which counts
			    waits that ended so */
	__u64 id, waker; /* waker 0: the CPU was idle */
	__u32 class, context;
};
/* Who had the CPU meanwhile, of the map `culprits`: by 0 and OFFCPU_BY_IDLE, OFFCPU_BY_UNKNOWN
 * where it is no thread. */
#define OFFCPU_BY_IDLE    1
#define OFFCPU_BY_UNKNOWN 2
struct offcpu_culprit_key {
	__u64 id, by; /* ids of threads are larger than 2^40 */
};
struct offcpu_count {
	__u64 n, total_ns;
};

#define OFFCPU_STINTS 1024 /* of each CPU are remembered: who had it. A power of two */
#define OFFCPU_WALKED 64   /* of them are gone through for one wait, where all of its time is */
/* of each CPU are remembered longer: stints that span a multiple of 2^OFFCPU_SPAN_SHIFT ns. A power
 * of two */
#define OFFCPU_SPANS      2048
#define OFFCPU_SPAN_SHIFT 22 /* 4.2 ms: they go back by 8.6 s and more */
#define OFFCPU_MOMENTS    16 /* of one wait, else */
struct offcpu_stint {
	__u64 id, from_ns, to_ns;
};
/* A wait that has ended, and is reported on its own. */
struct offcpu_drawn {
	__u64 task; /* whose it is, by its address; 0: none */
	__u64 ended_ns, blocked_ns, ready_ns;
	__u32 weight;  /* how many it counts for; 0: none but its request */
	__u32 blocked; /* 1: it was blocked, even if that lasted no time */
};
/* How finely it is looked for who had the CPU: offcpu_culprit.bpf.h. */
struct offcpu_blame {
	__u32 window; /* its number */
	__u32 added;  /* in it, so far */
	__u32 until;  /* the step doubles when more are added */
	__u32 shift;  /* parts below 2^shift ns are drawn by chance; 0: none */
};
struct offcpu_cpu {          /* the program's own, by CPU. What each switch needs comes first */
	__u64 task, running; /* who came to it last, as far as was seen: its address and id */
	__u64 last_ns;       /* the last switch */
	__u64 idle_ns;       /* idle since; 0: it is not */
	struct offcpu_drawn drawn; /* until the thread goes on, and its stack is taken */
	__u64 began_ns;            /* the program, at the present switch */
	__u32 next;                /* stint to write */
	__u32 woken;               /* waits that ended here, told without a stack */
	struct offcpu_draw blocked, ready, wakes; /* of waits, by what they were; of wake-ups */
	struct draw_stratum waking;               /* of wake-ups */
	__u64 stack;                              /* an address on the present stack */
	__u64 moment_ns; /* until it is looked again for who had it, of the time that threads were
			    ready in */
	struct offcpu_slots free, free_steps, free_wakes; /* taken from the queues */
	__u32 next_span;                                  /* to write, of the map `spans` */
	__u32 crowded;                                    /* 1: the ring was nearly full */
	struct offcpu_blame blame;
	struct offcpu_limit limit, slow; /* of stacks that are taken as threads leave: of all; of
					    those that will wait for long */
	struct offcpu_stint stint[OFFCPU_STINTS];
};

/* Behind a stack_event without frames whose `end` is OFFCPU_RECORD_END: the wait whose stack was
 * taken is over. It is found by the event's tid and out_ns, which is that stack's time_ns. A stack
 * is taken when the thread goes on, right before this record; by kernels older than 6.15 as it
 * leaves, and then the wait begins when the stack has been taken. With weight 0 no stack was taken:
 * the record is there for its request (ev.tag), and other waits represent it in sums. */
#define OFFCPU_RECORD_END 255
struct offcpu_end {
	struct stack_event ev;
	__u64 out_ns, blocked_ns, ready_ns;
	__u32 weight;
	__u8 class;   /* of the blocked part; OFFCPU_PREEMPTED or OFFCPU_YIELDED: it was not blocked
		       */
	__u8 blocked; /* 1: there is one, even if it lasted no time */
	__u8 pad[2];
	__u64 waker; /* as in offcpu_thread */
	struct offcpu_object on;
};
_Static_assert(sizeof(struct offcpu_end) == 80 + 80, "wire size");

/* After the stack of a waker, likewise: found by the event's tid and time_ns, which are that
 * stack's. A wake-up reported this way is in no sum of `wakes`. `ev` is of the waker, the rest of
 * the sleeper. */
#define OFFCPU_RECORD_WAKE 254
struct offcpu_wake {
	struct stack_event ev;
	__u64 start_ns, slept_ns;
	__u32 tgid, tid, exec_id;
	__u8 class;   /* of the wait */
	__u8 context; /* enum offcpu_context */
	__u16 flags;  /* STACK_F_KTHREAD */
	char thread[STACK_COMM_LEN];
};
_Static_assert(sizeof(struct offcpu_wake) == 80 + 48, "wire size");

/* The program's own tally, by CPU, in the map `tally`. Runs: of all programs but the reading of
 * threads at the start. */
#define OFFCPU_TALLY_SLOTS 32
struct offcpu_tally {
	__u64 switches;
	__u64 stacks;     /* taken */
	__u64 stack_seen; /* amounts that the ended waits with a stack come to: weight x (blocked,
			     ready) */
	__u64 stack_lost; /* of those, lost: the ring was full */
	__u64 lost;       /* switches lost for lack of room in `threads` */
	__u64 pairs_lost; /* wake-ups, and times that others ran meanwhile, that `wakes` and
			     `culprits` had no room for */
	__u64 unfollowed; /* child processes that the set of --'s had no room for */
	__u64 named;      /* threads that got a number */
	__u64 unnamed;    /* those that got none, for lack of room in `who` */
	__u64 pairs;      /* new ones in `wakes` */
	__u64 neighbours; /* the same in `culprits` */
	__u64 late;       /* stacks sent to be unwound later */
	__u64 plain_ns, plain_runs; /* switches without a stack */
	__u64 stack_ns, stack_runs; /* those with one */
	__u64 wake_ns; /* wake-ups; of those without a stack, one in some is timed and represents
			  the others */
	__u64 slot[OFFCPU_TALLY_SLOTS];
};

#endif
