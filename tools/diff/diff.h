/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff: two folds as one tree with two values a node, and function by function what changed and
 * whether it is more than noise. A function is (name, module), as in tools/fold/ranking/top.h; a
 * recursion counts once in its total.
 *
 *  1. Values are amounts per second in which something recorded (CPU time: cores), or shares of
 * all, as asked. Of a gauge (memory in use) they are the mean of its values at the ends of slices,
 * and so are the numbers of each node.
 *  2. Where both sides have slices of time (tools/fold/fold_slices.h), a function's self and total
 * are compared by Welch's test over slices (what is on one side only: by the number of slices that
 * have it), else (a profile from a file, a window of a few buckets) by the test of two counts,
 * which assumes that samples are independent. Slices less than half recorded are not compared.
 *  3. What has fewer than DIFF_LEAST samples on both sides together is not tested. All tests are
 * adjusted together, so that at most `alpha` of the rows called significant are expected to be
 * noise: 62 % of alpha are for self, 10 % for total (mostly the same changes, seen from above), 8 %
 * for callers, the rest is held back; within each, a quarter is shared equally, the rest by
 * samples.
 *  4. Callers are pairs (caller, function) seen on one side only, tested alike.
 *  5. Of a function that changed, `since_ns` is where its level moved: over both sides where they
 * follow each other, else within the later one.
 */
#ifndef SONDE_TOOLS_DIFF_H
#define SONDE_TOOLS_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/fold/fold.h"

#define DIFF_LEAST  10
#define DIFF_SLICES 64 /* a side, at most */

enum diff_per { DIFF_PER_SECOND, DIFF_PER_SAMPLE };
enum { DIFF_BEFORE = 0, DIFF_AFTER = 1 };

struct diff_side {
	const struct fold *f; /* borrowed: with slices, or without where it has no times */
	double seconds;       /* recorded; 0: not known */
	uint64_t ns, samples;
	double whole;    /* what amounts are divided by */
	size_t n_slices; /* that are compared */
	uint64_t
		means; /* number of moments that the fold's amounts are sums of (a gauge); else 1 */
	double slice_s;
};

struct diff_value {
	uint64_t ns[2], samples[2];
	double v[2];          /* in diff_unit, or share of all (0 to 1) */
	double p, q;          /* 1 where it was not tested */
	double se, df, level; /* of the difference; at which it counts. 0 where it was not tested */
	bool tested, significant;
};

struct diff_function {
	const struct fold_frame *frame; /* one of its frames; function 0: all */
	bool inlined;                   /* also as a caller */
	struct diff_value self, total;
	int64_t since_ns;            /* 0: no place found */
	uint32_t callers, n_callers; /* those of `callers` that are its own, most samples first */
};

struct diff_caller {
	uint32_t caller, function;
	uint64_t samples; /* on the side where it is */
	bool gone;        /* was there before; else it is new */
	bool significant;
	double p, q;
};

struct diff_node {
	uint32_t function, parent, depth; /* node 0 is the root; they come depth first */
	uint64_t self_ns[2], total_ns[2], self_samples[2], total_samples[2];
};

struct diff {
	struct diff_side side[2];
	enum diff_per per;
	bool by_slices;  /* else by counts */
	bool names_only; /* one side does not say modules (folded stacks): names alone are compared
			  */
	double alpha;
	struct diff_function *functions;
	size_t n_functions;
	struct diff_caller *callers;
	size_t n_callers;
	struct diff_node *nodes; /* none, where the folds have no tree (fold_opts.flat) */
	size_t n_nodes;
	size_t n_tested, n_significant; /* functions: by self or total */
};

/* The folds must outlive it. DIFF_PER_SECOND needs the time of both: else it is -EINVAL with
 * EXIT_USAGE. */
int diff_make(const struct fold *before, const struct fold *after, enum diff_per per, double alpha,
	      struct diff **out, struct err *e);
void diff_free(struct diff *d);
/* Without its nodes. */
void diff_shed(struct diff *d);

/* Functions that differ, as indexes: what is significant first, then the larger change of self, of
 * total. The caller's. */
uint32_t *diff_movers(const struct diff *d, size_t *n);
const char *diff_unit(
	const struct diff *d); /* "cores", "bytes per second", "bytes", "share", ... */
/* The change that would have been found four times in five; 0 where it was not tested. */
double diff_detectable(const struct diff_value *v);
double diff_percent(const struct diff_value *v); /* NAN if there was nothing before */

#endif
