/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview: what the host did in a range, and in the time before it, as long: load, memory and
 * disks; the containers (and commands outside of them) that matter; failed checks; the slowest and
 * the failing operations; requests that run without an answer.
 *
 *   1. Rows are ranked by what happened to them (out-of-memory kills, restarts, failed requests),
 *      then by their share of the CPUs, the memory and what was read and written; those that answer
 *      the slowest operations come before others of their size.
 *   2. Memory is what the kernel cannot reclaim (tools/processes/process_usage.h).
 *   3. What a family did not record is not known, which is not 0; `known` says which were.
 */
#ifndef SONDE_TOOLS_OVERVIEW_H
#define SONDE_TOOLS_OVERVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/idmap.h"
#include "tools/checks/checks.h"
#include "tools/requests/reqrows.h"
#include "tools/requests/reqrunning.h"
#include "tools/select/select.h"

enum { OVERVIEW_BEFORE, OVERVIEW_NOW };
enum overview_family {
	OVERVIEW_CPU,
	OVERVIEW_OFFCPU,
	OVERVIEW_HOST,
	OVERVIEW_NET,
	OVERVIEW_L7,
	OVERVIEW_FAMILIES
};
extern const char *const OVERVIEW_FAMILY_NAMES[OVERVIEW_FAMILIES];

struct overview_host { /* -1: not known */
	double cores[2], load[2];
	double waited_cpu[2], waited_mem[2], waited_io[2]; /* share of the time, 0 to 1 */
	double mem_used[2], mem_total, swapped[2];         /* bytes; pages each second */
	double cpus;
	char disk[64]; /* the busiest; "": none */
	double disk_busy[2];
	double fsync_us[2], fsyncs[2]; /* by family disk: the calls' time, and how many */
	double disk_errors[2];         /* by family disk: requests that failed */
};

struct overview_row {
	char *name;
	bool container;
	bool has_cpu;                           /* in one of both */
	bool there[2], alive[2];                /* in that window; at its end */
	bool has_mem[2], has_io[2], has_net[2]; /* it was read then */
	double cpu[2];                          /* cores */
	double mem[2];                          /* bytes */
	double io[2], net[2];                   /* bytes a second */
	double requests[2], failed[2];          /* that it answered; 0 where none was seen */
	uint64_t restarts[2], oom[2];
	double score;
};

/* An operation of `ops`, and its row before (NULL: it was not asked). */
struct overview_op {
	const struct reqrows_row *now, *before;
};

struct overview {
	struct selection *sel[2];
	bool known[2][OVERVIEW_FAMILIES];
	double seconds[2][OVERVIEW_FAMILIES];
	struct overview_host host;
	struct overview_row *rows; /* most important first */
	size_t n, cap;
	struct idmap row_of;     /* by name, while they are read */
	struct checkfiles files; /* that the results point to */
	struct check_results checks;
	struct reqrows ops[2];     /* by operation, as servers saw them (else clients) */
	struct overview_op *pairs; /* of ops, without streams */
	size_t n_pairs;
	struct reqrunning running;
	bool any;   /* some family recorded in the range */
	bool ended; /* nothing records any longer */
};

/* `select`: a range, or none. EXIT_NOTHING where nothing was recorded. Release in any case. */
int overview_read(const char *store, const struct select_args *select, struct overview *out,
		  struct err *e);
void overview_release(struct overview *o);

/* The slowest by what they took more than before, then by p95; and those that failed most. At most
 * `most` of either; returns how many. Streams are left out. */
size_t overview_slowest(const struct overview *o, struct overview_op *out, size_t most);
/* Did it take OVERVIEW_SLOWER times as long as before, and a millisecond more? If not, it is only
 * the slowest that there is. */
#define OVERVIEW_SLOWER 1.4
bool overview_is_slower(const struct overview_op *x);
size_t overview_failing(const struct overview *o, struct overview_op *out, size_t most);

struct verb_call;
/* `rows`: lines of the screen, 0: no matter. */
void overview_print(const struct overview *o, const struct verb_call *call, unsigned lines);
int overview_json(const struct overview *o, size_t rows);

#endif
