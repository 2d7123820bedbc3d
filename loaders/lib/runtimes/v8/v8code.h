/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8code: code that V8 generated: which object an address is in, and which functions run there.
 *
 * No list of code objects can be read from outside. Code begins at multiples of 32 bytes, after the
 * head of its object, whose first word is the map of such objects: so this searches backwards from
 * the address for the head, and accepts it only if its type, its start and its size show that the
 * address is inside.
 */
#ifndef SONDE_RUNTIMES_V8CODE_H
#define SONDE_RUNTIMES_V8CODE_H

#include "loaders/lib/runtimes/v8/v8object.h"
#include "loaders/lib/runtimes/v8/v8tables.h"

#define V8_CODE_MAX      (1u << 20) /* bytes of one */
#define V8_CODES_KEPT    64u
#define V8_MISSED_KEPT   256u
#define V8_BYTECODES_MAX 256u

enum v8_tier {
	V8_TIER_OTHER,
	V8_TIER_INTERPRETED,
	V8_TIER_BASELINE,
	V8_TIER_MAGLEV,
	V8_TIER_TURBOFAN
};

struct v8_code {
	uint64_t head;       /* where the object begins that its instructions lie in */
	uint64_t code;       /* the Code */
	uint64_t start, end; /* of its instructions */
	enum v8_tier tier;
};

struct v8codes {
	struct v8_code kept[V8_CODES_KEPT];
	uint32_t sure[V8_CODES_KEPT];    /* the turn at which it was there */
	uint64_t missed[V8_MISSED_KEPT]; /* addresses that lie in none, by their hash */
	unsigned next;
	uint32_t turn;
	uint64_t map; /* of the objects that code lies in; 0: not met */
};

/* Before each stopped thread. */
void v8codes_fresh(struct v8codes *c);
/* Before each sampled stack: what is kept is looked at again before it is believed; which addresses
 * lie in no code is believed for a while. */
void v8codes_turn(struct v8codes *c);
/* The code that `pc` lies in. false: none. */
bool v8code_find(struct v8heap *h, struct v8codes *c, uint64_t pc, struct v8_code *out);
/* The offset in the bytecode that baseline code goes on behind; V8_NOWHERE: not known. */
int64_t v8code_baseline(struct v8heap *h, const struct v8_code *code, uint64_t bytecodes,
			uint64_t pc);
struct v8_function {
	uint64_t shared;
	int64_t bytecode; /* V8_NOWHERE: not known */
};
/* The functions of the `n` frames of a translation, by the code's DeoptimizationData; how many
 * (some frames have none). 0: unknown. */
size_t v8code_functions(struct v8heap *h, uint64_t data, const struct v8_inlined *frames, size_t n,
			struct v8_function *out);
/* The functions that optimised code represents at a return address, outermost first, if that is
 * `shared`. 0: unknown. */
size_t v8code_inlined(struct v8heap *h, const struct v8_code *code, uint64_t shared, uint64_t pc,
		      struct v8_function out[V8_INLINED_MAX]);
/* The function that optimised code was made of; 0: not known. */
uint64_t v8code_own(struct v8heap *h, const struct v8_code *code);
/* Is it the baseline code of that function? */
bool v8code_is_baseline_of(struct v8heap *h, const struct v8_code *code, uint64_t shared);
/* The same, appended, innermost first. */
size_t v8code_optimised(struct v8heap *h, const struct v8_code *code, uint64_t shared, uint64_t pc,
			size_t at, struct script_stack *out);

#endif
