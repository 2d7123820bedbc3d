/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groupfiles: reads the files of one cgroup, and makes the columns for which v1 has two files or
 * more.
 *
 * A hierarchy that is not mounted, and a file that this kernel lacks, add nothing to the row.
 * `path` is the cgroup's, below the mount points.
 */
#ifndef SONDE_HOST_GROUPFILES_H
#define SONDE_HOST_GROUPFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/host/cgroups.h"

struct fact_row;

/* CPU time of a cgroup in ns. */
struct groupfiles_cpu {
	uint64_t user, system;
};

/* Into c->text. */
bool groupfiles_read(struct cgroups *c, enum cgroups_hierarchy h, const char *path,
		     const char *name);
/* The quota in us, of a period in another file; -1: no limit. */
void groupfiles_quota(struct cgroups *c, const char *path, uint64_t quota, struct fact_row *row);
/* `last`: what it gave before; it changes. */
void groupfiles_cpu(struct cgroups *c, const char *path, struct groupfiles_cpu *last,
		    struct fact_row *row);
/* From the limit of memory that the row has. */
void groupfiles_swap_limit(struct cgroups *c, const char *path, struct fact_row *row);
/* Adds to mem_max. Unsets it where that limit was reached, or nearly, and the kernel did not count
 * it. */
void groupfiles_swap_max(struct cgroups *c, const char *path, struct fact_row *row);

#endif
