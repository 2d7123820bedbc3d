/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_kind: which of a profile's sample types is stored, and as what. Pure over the names that
 * the file gives.
 *
 *  1. A kind of value is in the file if both its sample types are (store/model/kinds.h has their
 *     names: alloc_objects with alloc_space); of cpu and wallclock the time alone is enough, of
 *     memory the bytes.
 *  2. What is taken is the kind that was asked for; else the one that the file's default type is of
 *     (default_sample_type, or the last sample type where that is not said, as `go tool pprof`
 *     takes it).
 *  3. Where several kinds have the same names (contentions and delay are what both a block and a
 *     mutex profile of Go have), the comment that sonde's own exports have decides, then the leaves
 *     of the stacks: Go books a contended mutex where it is unlocked, and a wait where it waits.
 *     Else the answer is that --type must say it.
 *  4. CPU time has other forms: counts of "samples" with a period of time (count x period), and
 *     counts of cycles that say no time at all ("cycles_sample", by perf_to_profile).
 *  5. Where the default is of no kind --type cpu takes any time, or any count, as that; --type
 *     inuse and alloc take "objects" and "space", which may be either.
 *  6. All else (a count of the program's own) is no kind that the store has: refused,
 *     with what the file holds.
 */
#ifndef SONDE_TOOLS_PPROF_KIND_H
#define SONDE_TOOLS_PPROF_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/model/kinds.h"

struct pprof_type {
	const char *type, *unit;
};

struct pprof_names { /* what a file says; strings are never NULL */
	const struct pprof_type *types;
	size_t n_types;
	const char *default_type; /* "" if it says none */
	struct pprof_type period_type;
	uint64_t period;
	const char *comment;       /* the first, or "" */
	const char *const *leaves; /* names of the functions that stacks end in */
	size_t n_leaves;
};

struct pprof_kind {
	const struct store_kind_info *kind;
	size_t value, count; /* indexes of sample types; SIZE_MAX: none */
	double scale;        /* of the value, to ns or bytes */
	bool timed;          /* false: of CPU samples no time is known */
	uint64_t period; /* ns of a CPU sample, bytes from one sampled allocation to the next; 0:
			    not said, or none */
};

/* `asked`: 0 if no --type was given. EXIT_USAGE where nothing can be taken; `name` is the file's.
 */
int pprof_kind_choose(const struct pprof_names *p, enum store_kind asked, const char *name,
		      struct pprof_kind *out, struct err *e);

#endif
