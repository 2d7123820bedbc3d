/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitgroups: what was read of the waits of a window, by group (a process, a command...) and class:
 * what is exact of each, and what its stacks say: parts, each a reason. Groups are distinguished by
 * their text, since ids differ from segment to segment. waitrows makes rows of them.
 */
#ifndef SONDE_TOOLS_WAITGROUPS_H
#define SONDE_TOOLS_WAITGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "schema/base/idmap.h"
#include "schema/base/tables/pairsums.h"
#include "schema/store/model/hist.h"
#include "schema/store/read/reader.h"
#include "tools/waits/waitobjects.h"
#include "tools/waits/waitrules.h"
#include "tools/waits/waitsum.h"

#define WAITGROUP_READY "run queue" /* class of those that are ready, and not running */

struct waitamount {
	uint64_t n, value, max; /* value, max: ns */
	double n_variance, value_variance;
	struct hist hist;
};

struct waitpart { /* of one class in one group: what its stacks say */
	const char *reason;
	bool idle;
	struct waitamount stacks;
	uint32_t functions; /* its row in waitgroups.functions + 1: where they wait,
			       waitstack_own; 0: none */
	struct waitobject *objects;
	const char *purpose;
	uint64_t purpose_ns, ruled_ns; /* of stacks */
};

struct waitgroup_thread {
	uint64_t exact, stacks; /* ns */
	uint64_t longest;       /* of its stacks' waits, in: */
	size_t part;
};

struct waitgroup { /* one class in one group, partial or not */
	char *key;
	char *container, *comm, *thread, *class;
	uint32_t pid;
	bool partial;
	bool kernel, go;        /* of threads of the kernel; of Go programs */
	struct idmap processes; /* hash of pid and start; where it is of one process: empty */
	struct waitamount exact;
	uint64_t timer_ns; /* as a row's */
	struct waitpart *parts;
	size_t n_parts, cap_parts;
	struct idmap thread_of; /* hash of a thread -> its place in `threads` + 1 */
	struct waitgroup_thread *threads;
	size_t n_threads, cap_threads;
	UT_hash_handle hh;
};

/* With `by` set, else zeroed, it is empty. */
struct waitgroups {
	enum waitsum_by by;
	struct waitgroup *all; /* a list by hh */
	char **names;          /* of functions, each once */
	size_t n_names, cap_names;
	struct idmap names_at;     /* hash of a name -> its place */
	struct pairsums functions; /* ns by part and place in `names` */
	uint32_t n_parts;          /* that have some */
};

/* The group of this process's thread for a class; it is made if it is not there. */
struct waitgroup *waitgroups_of(struct waitgroups *g, const struct store_process_row *p,
				const char *thread, const char *class, bool partial);
/* Its place among the group's threads. */
size_t waitgroup_thread_of(struct waitgroup *c, const struct store_process_row *p, uint32_t tid);
/* The part that a stack with this rule (NULL: none) is of. Until the next part is made. */
struct waitpart *waitgroup_part(struct waitgroup *c, const struct waitrule *rule);
/* Are waits of its class idle, if no stack says otherwise? */
bool waitgroup_idle_by_class(const struct waitgroup *c);
/* The place of a function's name in `names`. */
uint32_t waitgroups_name(struct waitgroups *g, const char *name);
/* That part waited so long in the function of that name. Before they are read: pairsums_settle. */
void waitgroups_add_function(struct waitgroups *g, struct waitpart *part, uint32_t name,
			     uint64_t ns);
void waitamount_add(struct waitamount *a, uint64_t n, uint64_t value, uint64_t max);
void waitgroups_release(struct waitgroups *g);

#endif
