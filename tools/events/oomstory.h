/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oomstory: out-of-memory kills in a range, each with its explanation: which limit was reached,
 * which processes held memory then (the kernel's list), how much memory the container and the
 * others had before, whose lines made memory grow (oomgrew.h), and the functions that used most CPU
 * time before. A kill that is not in the
 * kernel's log has only what sonde recorded.
 */
#ifndef SONDE_TOOLS_OOMSTORY_H
#define SONDE_TOOLS_OOMSTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/events/oomgrew.h"
#include "tools/select/select.h"

#define OOMSTORY_BEFORE_NS (900 * 1000000000ll) /* the curve's length */
#define OOMSTORY_STACKS_NS (60 * 1000000000ll)  /* the stacks before */
#define OOMSTORY_POINTS    30
#define OOMSTORY_OTHERS    5
#define OOMSTORY_TASKS     5
#define OOMSTORY_STACKS    3

struct oomstory_holder {
	char *name;   /* command or container */
	uint32_t pid; /* 0: a container */
	uint64_t bytes;
};

struct oomstory_function {
	char *name;
	double share; /* of the CPU time before */
};

struct oomstory {
	int64_t at_ns;
	char *comm, *container; /* "": in none */
	uint32_t pid;
	char *cgroup, *asked_by; /* whose limit: "": the host's memory, or unknown; NULL: the
				    kernel's log was not read */
	bool own_limit;          /* it is that of the cgroup that the victim was in */
	int64_t limit, usage, anon, file, shmem; /* bytes; -1: not known */
	struct oomstory_holder tasks[OOMSTORY_TASKS];
	size_t n_tasks;
	size_t all_tasks;              /* that the kernel listed */
	double curve[OOMSTORY_POINTS]; /* bytes; -1: not measured; the last one has the kill in it
					*/
	double most;                   /* of the curve; -1: none */
	struct oomstory_holder others[OOMSTORY_OTHERS];
	size_t n_others; /* containers, most memory first, but the victim's own */
	struct oomstory_function stacks[OOMSTORY_STACKS];
	size_t n_stacks;
	struct oomgrew grew;
};

struct oomstories {
	struct oomstory *rows;
	size_t n;     /* in order of time */
	size_t total; /* of the range, with those that `most` left out */
};

/* `most` of them, whole: the last of each container (outside of containers of each command), then
 * the last of all. None is no error. */
int oomstories_read(const struct selection *sel, size_t most, struct oomstories *out,
		    struct err *e);
void oomstories_release(struct oomstories *x);

#endif
