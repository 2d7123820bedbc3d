/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8code: code that V8 made: which object an address lies in, and which functions stand at it.
 *
 * Code is not in a list that can be read from outside. It begins at multiples of 32 bytes, behind the head of its object, whose first word is the
 * map of such objects: so the head is looked for backwards from the address, and taken only if its type, its start and its size say
 * that the address lies in it.
 */
#ifndef SONDE_RUNTIMES_V8CODE_H
#define SONDE_RUNTIMES_V8CODE_H

#include "loaders/lib/runtimes/v8object.h"
#include "loaders/lib/runtimes/v8tables.h"

#define V8_CODE_MAX   (1u << 20) /* bytes of one */
#define V8_CODES_KEPT 16u

enum v8_tier { V8_TIER_OTHER, V8_TIER_INTERPRETED, V8_TIER_BASELINE, V8_TIER_MAGLEV, V8_TIER_TURBOFAN };

struct v8_code {
	uint64_t code;       /* the Code */
	uint64_t start, end; /* of its instructions */
	enum v8_tier tier;
};

struct v8codes {
	struct v8_code kept[V8_CODES_KEPT];
	uint64_t missed[V8_CODES_KEPT]; /* addresses that lie in none */
	unsigned next, next_missed;
	uint64_t map;        /* of the objects that code lies in; 0: not met */
};

/* Before each thread. */
void v8codes_fresh(struct v8codes *c);
/* The code that `pc` lies in. false: none. */
bool v8code_find(struct v8heap *h, struct v8codes *c, uint64_t pc, struct v8_code *out);
/* The offset in the bytecode that baseline code goes on behind; V8_NOWHERE: not known. */
int64_t v8code_baseline(struct v8heap *h, const struct v8_code *code, uint64_t bytecodes, uint64_t pc);
/* The functions that optimised code stands for at a return address, innermost first, if the outermost is `shared`. 0: not known. */
size_t v8code_optimised(struct v8heap *h, const struct v8_code *code, uint64_t shared, uint64_t pc, size_t at, struct script_stack *out);

#endif
