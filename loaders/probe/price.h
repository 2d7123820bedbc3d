/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price: what a hit of each kind of hook takes from who runs into it, measured on this machine: it
 * runs into a probe that it set itself, many times, with and without it. The least of several
 * rounds counts, which is what it takes without other load. Where that cannot be measured (rights),
 * it is an estimate.
 */
#ifndef SONDE_PROBE_PRICE_H
#define SONDE_PROBE_PRICE_H

#include <stdbool.h>
#include <stdint.h>

struct prices { /* ns */
	uint64_t tracepoint;
	uint64_t call;     /* both ends of a system call */
	uint64_t emulated; /* of code: an instruction that the kernel carries out itself */
	uint64_t stepped;  /* any other one */
	bool measured;
};

/* Some 0.3 s. */
void prices_measure(struct prices *out);
/* Of a probe in code whose instruction insn_price has this estimate for. */
uint64_t prices_code(const struct prices *p, uint64_t estimate);

#endif
