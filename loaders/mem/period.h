/* SPDX-License-Identifier: Apache-2.0 */
/*
 * period: how many page faults a sample represents. Where faults are few all small growth shall be
 * seen, where they are many samples shall not cost: the period follows the number of faults, so
 * that samples come at about the same rate. A sample carries its own period, so sums stay right.
 * It varies by a quarter around what is wanted, as regular code would meet a constant one in step.
 * To set another one interrupts each CPU, and makes its next fault a sample: where there are few
 * faults it stays for PERIOD_DRAWS samples. Pure.
 */
#ifndef SONDE_MEM_PERIOD_H
#define SONDE_MEM_PERIOD_H

#include <stdint.h>

#define PERIOD_MIN   16
#define PERIOD_DRAWS 8 /* samples until it is varied again */
#define PERIOD_MAX   65536

struct period {
	uint32_t fixed; /* 0: by the number of faults */
	uint32_t rate;  /* samples a second that are wanted */
	uint32_t least; /* the shortest period */
	uint32_t shift; /* samples are one in 2^shift of those */
	double wanted;  /* before it is varied */
	double from;    /* what `now` was varied from */
	uint32_t now;   /* in force; 0: none yet */
	uint64_t drawn; /* faults when it was varied */
	uint64_t faults;
	int64_t at_ns; /* `faults` were counted until then; 0: not yet */
	uint64_t random;
};

/* `least`: PERIOD_MIN, or 1 of faults that are rare. */
void period_init(struct period *p, uint32_t fixed, uint32_t rate, uint32_t least);
/* One in 4^step of the samples. */
void period_reduce(struct period *p, uint32_t step);
/* The period from now on; `faults`: all so far. */
uint32_t period_next(struct period *p, uint64_t faults, int64_t now_ns);

#endif
