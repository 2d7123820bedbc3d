/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitheld: cgroups that their CPU quota held back in a window, over all its segments, with the
 * container that each one is; and the time that the hypervisor took.
 */
#ifndef SONDE_TOOLS_WAITHELD_H
#define SONDE_TOOLS_WAITHELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/read/reader.h"

struct selection;

struct waitheld_row {
	char *cgroup;
	char *container; /* its name, else its id; "": no container that ran something then */
	bool wanted; /* a process that the filters let through was in it; of no filters: any cgroup
			is */
	uint64_t periods, throttled;
	uint64_t throttled_ns; /* summed over CPUs */
};

struct waitheld {
	struct waitheld_row *rows; /* most time first, once sorted */
	size_t n, cap;
	uint64_t steal_ns, cpu_ns; /* cpu_ns 0: not known */
};

/* What one segment tells, after the window and the run of `q`. */
int waitheld_read(struct waitheld *h, const struct selection *sel, struct store_segment *seg,
		  const struct store_dict *d, const struct store_query *q, struct err *e);
void waitheld_sort(struct waitheld *h);
void waitheld_release(struct waitheld *h);

#endif
