/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: what was used in each step of a range, by process and by group of processes: CPU time,
 * and what Go programs allocated and held. A step that nothing recorded is no step without use:
 * `covered_ns` tells them apart.
 *
 * Groups are containers, and outside of them commands (all processes of a name are one: a build's
 * compilers), unless asked otherwise. Values are kept by process and step, only where there is
 * something: they come from one pass over the rows of each kind.
 */
#ifndef SONDE_TOOLS_TIMELINE_H
#define SONDE_TOOLS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/select/filter.h"
#include "tools/select/select.h"

#define TIMELINE_STEPS 8640 /* at most: a day of ten seconds each */
#define TIMELINE_ALL   UINT32_MAX

enum timeline_by {
	TIMELINE_BY_BOTH,
	TIMELINE_BY_CONTAINER,
	TIMELINE_BY_COMMAND,
	TIMELINE_BY_PROCESS
};
enum timeline_of { TIMELINE_CPU, TIMELINE_ALLOC, TIMELINE_INUSE, TIMELINE_OF };

struct timeline_process {
	uint32_t pid;
	int64_t start_ns;
	char *comm;
	uint32_t group;
	char *ended; /* how, where that is on record; else NULL */
};

struct timeline_group {
	char *name;            /* "web", "cc1", "[host]" */
	enum filter_kind kind; /* what `name` is: FILTER_CONTAINER, FILTER_COMM or FILTER_PID */
	bool is_host;          /* all that runs in no container: no filter names it */
	uint32_t n_processes;
	uint32_t first_process; /* those of `by_group` that are its own */
	uint32_t pid;           /* of its first process */
	uint64_t cpu_ns;
};

struct timeline_cell {
	uint32_t process, step;
	uint64_t value; /* ns, bytes */
};

/* Something that happened: time, and words. */
struct timeline_event {
	int64_t from_ns, to_ns; /* equal: a moment */
	const char *kind; /* "gap", "began", "ended", "killed", "lost", "process ended", "oom",
			     "restart", "new container", "kept", or one of tools/events
			     (listed_event_kind) */
	char *text;
	char *many; /* what events of a kind that say the same are folded by: text before and after
		       "N times"; NULL: none */
	char *who;  /* NULL: the capture itself */
	uint64_t n; /* of lost: how many samples; else how often, 0: once */
};

struct timeline {
	const struct selection *sel;
	int64_t from_ns, step_ns; /* step 0 begins at from_ns, a multiple of step_ns */
	size_t n_steps;
	uint64_t *covered_ns; /* of each step, while CPU samples were recorded */
	uint64_t period_ns;   /* of a sample */
	uint32_t cpus;
	struct timeline_process *processes;
	size_t n_processes;
	struct timeline_group *groups;
	size_t n_groups;
	uint32_t *by_group; /* processes, group after group */
	struct timeline_cell *cells[TIMELINE_OF];
	size_t n_cells[TIMELINE_OF];     /* by process, then step */
	size_t *first_cell[TIMELINE_OF]; /* of each process, n_processes + 1 of them */
	struct timeline_event *events;
	size_t n_events; /* in order of time */
};

/* EXIT_NOTHING where the range has no samples. `sel` must outlive it. */
int timeline_make(const struct selection *sel, enum timeline_by by, struct timeline **out,
		  struct err *e);
void timeline_free(struct timeline *t);

/* Sum of a group, or TIMELINE_ALL, into n_steps values. Memory in use holds from one reading to the
 * next. */
void timeline_series(const struct timeline *t, enum timeline_of of, uint32_t group, uint64_t *out);
/* Cores in each step; -1 where less than half of it was recorded. */
void timeline_cores(const struct timeline *t, const uint64_t *ns, double *out);
/* The process of a group (TIMELINE_ALL: of all) that used most CPU in steps [first, end); its CPU
 * time. */
uint32_t timeline_busiest(const struct timeline *t, uint32_t group, size_t first, size_t end,
			  uint64_t *ns);
/* The option that selects a group, ready for a shell, after a space: " --comm 'my build'". "" for
 * [host] and all. */
void timeline_filter(const struct timeline *t, uint32_t group, struct strbuf *out);

int64_t timeline_time(const struct timeline *t,
		      size_t step); /* when it begins; n_steps: when the last one ends */

#endif
