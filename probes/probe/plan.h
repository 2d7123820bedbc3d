/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plan: what one probe is, for its program, and what it sends.
 *
 * There is one object for each probe: the loader writes a struct probe_plan into its .rodata, and
 * the verifier, which knows these bytes, leaves out all that the probe does not ask for.
 *
 *   1. Each hit that the conditions let through is added to a sum, by process and by the arguments
 *      that the probe is summed by: exact at any rate. Sums are kept by epoch, as disk.h says.
 *   2. Single hits go into the ring as records, `rate` a second at most: of every `probe_every`
 * one, by lot, which counts for that many (`weight`).
 *   3. hits = chosen + passed over, chosen = sent + what found no room, of each by its reason.
 *   4. A pair is two hooks, and its hit is the second one: a function's begin and one of its ways
 *      out (PROBE_PAIR_RETURN), or any two (PROBE_PAIR_KEYS). What the first one has is kept by
 *      key until the second one comes (struct probe_begun). The key of a function's call is where
 *      its frame begins: recursion, other threads and other stacks have another one. A stack of Go
 *      moves, so there it is the distance from the stack's upper end, with the goroutine. The
 *      return address, kept too, tells a call that never returned (an exception) from the next one
 *      that begins at the same place.
 */
#ifndef SONDE_PROBES_PROBE_PLAN_H
#define SONDE_PROBES_PROBE_PLAN_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "probes/lib/tally.h"
#include "probes/lib/who.h"

#define PROBE_ARGS  8
#define PROBE_CONDS 4
#define PROBE_BY    2
#define PROBE_STR   256  /* bytes of one text, with its final 0 */
#define PROBE_TEXT  1024 /* of all texts of a hit: those that find no room are missing */
#define PROBE_KEY   112  /* of a text that is summed by; longer ones are cut */
#define PROBE_COND  48   /* of one that is compared */
#define PROBE_SLOTS \
	32 /* slot n of a histogram counts values of 2^n to 2^(n+1)-1; 0 also 0; the last more */
#define PROBE_COMM  16
#define PROBE_SITES 64 /* hooks of a function's call: its begin, its ways out */
#define PROBE_PAGE  4096
#define PROBE_KEPT  2 /* texts of the first hook that are kept */
#define PROBE_BEGUN 4096

#define PROBE_RET  PROBE_ARGS /* numbers of what is no argument */
#define PROBE_NS   (PROBE_ARGS + 1)
#define PROBE_NONE 255

enum probe_from {
	PROBE_FROM_NOTHING = 0,
	PROBE_FROM_CONTEXT,  /* `size` bytes at `offset` of what the program was called with */
	PROBE_FROM_CALL,     /* argument `offset` of a system call, from 0 on */
	PROBE_FROM_CALL_NR,  /* which system call it is */
	PROBE_FROM_CONSTANT, /* `more` */
	PROBE_FROM_RETURNED, /* what the function returned */
	PROBE_FROM_PID,
	PROBE_FROM_TID,
	PROBE_FROM_CPU
};

enum probe_text {
	PROBE_NUMBER = 0,
	PROBE_TEXT_USER,     /* the value is an address of the process */
	PROBE_TEXT_CONTEXT,  /* it lies at `offset` itself, in `more` bytes, not all with a final 0
			      */
	PROBE_TEXT_DATA_LOC, /* the value says where, from the context on: its low 16 bits */
	PROBE_TEXT_REL_LOC,  /* the same from behind the field on */
	PROBE_TEXT_COUNTED   /* the value is an address of the process, the length lies at `more` */
};

struct probe_fetch {
	__u8 from; /* enum probe_from */
	__u8 text; /* enum probe_text */
	__u8 size; /* of a number in bytes: 1, 2, 4, 8 */
	__u8 is_signed;
	__u16 offset;
	__u8 deref; /* the value is an address of the process, plus `more`: read there */
	__u8 begun; /* of a pair: at its first hook */
	__s64 more;
};
_Static_assert(sizeof(struct probe_fetch) == 16, "wire size");

enum probe_op { /* as in probespec_op */
		PROBE_EQ,
		PROBE_NE,
		PROBE_LT,
		PROBE_LE,
		PROBE_GT,
		PROBE_GE,
		PROBE_BITS,
		PROBE_BEGINS
};

struct probe_cond {
	__u8 arg; /* PROBE_NONE: there is no condition */
	__u8 op;
	__u8 is_signed;
	__u8 length; /* of `text`, which decides where the argument is a text */
	__u32 unused;
	__s64 number;
	char text[PROBE_COND];
};
_Static_assert(sizeof(struct probe_cond) == 64, "wire size");

enum probe_pair { PROBE_ALONE = 0, PROBE_PAIR_RETURN, PROBE_PAIR_KEYS };

enum probe_place { PROBE_NOWHERE, PROBE_REGISTER, PROBE_STACK, PROBE_KNOWN };
enum probe_when { PROBE_ALWAYS, PROBE_TAKEN, PROBE_NOT_TAKEN };

struct probe_value { /* part of what a function returned */
	__u8 place;  /* enum probe_place */
	__u8 bytes;  /* 4: a signed number of 32 bits */
	__u16 reg;   /* in struct pt_regs */
	__s32 at;    /* from RSP; the number */
};

struct probe_site { /* a hook of a function's call */
	__u8 begins;
	__u8 when, condition; /* enum probe_when; of a jcc */
	__u8 others;          /* in a function that it jumps to: others call it, too */
	__u16 base, unused2;  /* in struct pt_regs: RSP or RBP */
	__s32 frame;          /* base + this: RSP at the function's first instruction */
	__u32 unused3;
	struct probe_value value[2]; /* their sum */
};
_Static_assert(sizeof(struct probe_site) == 32, "wire size");

struct probe_plan {
	struct probe_fetch args[PROBE_ARGS];
	struct probe_fetch key[2][PROBE_BY]; /* PROBE_PAIR_KEYS: of the first hook, of the second */
	struct probe_cond conds[PROBE_CONDS];
	__u8 by[PROBE_BY]; /* arguments, PROBE_RET; PROBE_NONE */
	__u8 sum, hist;    /* the same, or PROBE_NS */
	__u8 stack;        /* stacks too */
	__u8 ends;         /* it has PROBE_NS */
	__u8 returns;      /* it has PROBE_RET */
	__u8 errors;       /* which is an error from -4095 to -1: a system call */
	__u8 index;        /* which probe it is */
	__u8 pair;         /* enum probe_pair */
	__u8 go;           /* its stack moves */
	__u8 kept;         /* texts of the first hook */
	__u8 ret_size, ret_signed;
	__u8 unused[5];
	__u32 rate; /* single records a second */
	__u32 self; /* the loader's tgid, whose hits do not count */
};

struct probe_key {
	struct who_id who;
	__u32 epoch, unused;
	__s64 number[PROBE_BY]; /* of arguments that are numbers */
	char text[PROBE_KEY];   /* of the one that is a text; cut if it is longer */
};
_Static_assert(sizeof(struct probe_key) == 152, "wire size");

struct probe_sum {
	__u64 hits, errors; /* errors: a system call returned less than 0 */
	__u64 ns;
	__s64 sum;
	__u32 hist[PROBE_SLOTS]; /* of `hist`; else of ns */
};
_Static_assert(sizeof(struct probe_sum) == 160, "wire size");

struct probe_counts {      /* of one CPU, or of all */
	__u64 runs;        /* of the program that counts */
	__u64 hits;        /* in scope, and all conditions hold */
	__u64 passed_over; /* by lot, or over the rate: in the sums alone */
	__u64 ring_full;   /* single records that found no room */
	__u64 busy;        /* runs that were left out: this CPU's scratch was in use */
	__u64 crowded;     /* hits whose sum has no process and no key: the map is full */
	__u64 unpaired;    /* of a call or a pair: ends without a beginning, or the reverse */
	__u64 unfollowed;  /* beginnings that found no room */
};

#define PROBE_F_ENDS    1 /* ns holds */
#define PROBE_F_RETURNS 2 /* ret holds */
struct probe_event {
	struct who_id who;
	__u64 time_ns; /* CLOCK_BOOTTIME, at the hit; of a system call at its end */
	__u64 ns;
	__s64 ret;
	__u32 tid;
	__u32 weight;  /* how many hits it represents */
	__u16 missing; /* bit by argument: it could not be read */
	__u16 n_text;  /* bytes of `text` */
	__u8 index;
	__u8 flags;
	__u16 unused;
	char comm[PROBE_COMM];
	__s64 value[PROBE_ARGS]; /* a number; of a text its place in `text`, which has its final 0
				  */
	char text[PROBE_TEXT + PROBE_STR];
};
_Static_assert(sizeof(struct probe_event) == 136 + PROBE_TEXT + PROBE_STR, "wire size");

/* The tag of a stack, which counts as its weight, of a system call twice (hits, and their time):
 * bits 63..58 the probe, 57..40 the weight, 39..0 ns. */
#define PROBE_TAG_INDEX(t)  ((__u32)((t) >> 58))
#define PROBE_TAG_WEIGHT(t) ((__u32)((t) >> 40 & 0x3ffff))
#define PROBE_TAG_NS(t)     ((t)&0xffffffffffull)

#endif
