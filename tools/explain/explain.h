/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain: what is different in a window from the time before it, as statements, the most important
 * first. From the store alone; statements are what tools/diff/diff.h calls significant.
 *
 *  1. Each kind of value that both windows have is folded with containers (and commands outside of
 * them) as its first level, and compared by diff: so groups, and functions over all groups, are
 * tested by the same statistics (docs/decisions/0062). The error rate (5 %) is shared by the kinds.
 * Groups are also tested among themselves, at half of that rate, so that a container that started
 * is not lost among a build's thousands of functions.
 *  2. A statement is of a group, with the function in it that changed most in the same direction;
 * of a function that no stated group covers; or of the total, if no group makes up half of its
 * change.
 *  3. What is less than EXPLAIN_LEAST of its kind's total is not a statement.
 *  4. What waits were for (tools/waits/waitrules.h) is a separate statement, over all waits that
 * are not idle.
 *  5. A statement of waits for a CPU, of a reason, or of Java's monitors has its causes: what ran
 * meanwhile, the CPU quota, which threads ended the waits, which had the monitor (explain_cause.c).
 *  6. Only what was recorded long enough on both sides is compared: EXPLAIN_LEAST_S, two buckets,
 * and of the time before at least half as long as of the window. Kinds left out for that reason are
 * named.
 * Of heaps the same by process (explain_unread.h).
 *  7. Statements are ranked by their share of their kind's total, the larger of both
 * windows; blocked time that includes idle waits counts a quarter. Waits that are idle by nature (a
 * shell that waits for a child or a pipe, a sleep) come last: they are seldom why something was
 * slow.
 *  8. "Mostly" is said of EXPLAIN_MOSTLY of a change or more; the largest part below that is called
 * so, and one below EXPLAIN_PART is not named. Who ended waits, or held a lock, is not said where
 * that is more than all that waited (EXPLAIN_BEYOND times): then most of it is of other waits.
 */
#ifndef SONDE_TOOLS_EXPLAIN_H
#define SONDE_TOOLS_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/diff/diff.h"
#include "tools/events/event_list.h"
#include "tools/explain/felt_span.h"
#include "tools/logs/logfailed.h"
#include "tools/logs/logread.h"
#include "tools/logs/logrise.h"
#include "tools/net/netnew.h"
#include "tools/requests/reqrunning.h"
#include "tools/select/select.h"
#include "tools/timeline/incidents.h"

#define EXPLAIN_LEAST   0.02
#define EXPLAIN_ALPHA   0.05
#define EXPLAIN_LEAST_S 5
#define EXPLAIN_KINDS   8
#define EXPLAIN_CAUSES  2
#define EXPLAIN_HUNG_NS (10 * 1000000000ll)
#define EXPLAIN_MOSTLY  0.5
#define EXPLAIN_PART    0.1
#define EXPLAIN_BEYOND  1.5

enum explain_about {
	EXPLAIN_ALL,
	EXPLAIN_CONTAINER,
	EXPLAIN_COMMAND,
	EXPLAIN_FUNCTION,
	EXPLAIN_REASON
};
enum explain_change { EXPLAIN_MORE, EXPLAIN_LESS, EXPLAIN_BEGAN, EXPLAIN_GONE };

enum explain_cause_what { EXPLAIN_NEIGHBOUR, EXPLAIN_QUOTA, EXPLAIN_WAKER, EXPLAIN_HOLDER };
struct explain_cause {
	enum explain_cause_what what;
	char *name; /* container or command; of a quota its cgroup; of a holder the thread */
	char *of;   /* of a quota: the container that the cgroup is; else NULL */
	bool container;
	uint32_t pid; /* of a waker, else 0 */
	uint64_t ns[2];
	double v[2];                       /* seconds each second */
	uint64_t periods[2], throttled[2]; /* of a quota */
	bool mostly;                       /* rule 8 */
};

struct explain_statement {
	const struct diff *d; /* that it is of */
	enum explain_about about;
	enum explain_change change;
	const char *name, *module; /* "restic"; of a function its module too; of a reason "lock";
				      borrowed from the folds */
	const char *whole;         /* what the filters name, borrowed; "": all processes */
	struct diff_value v;
	int64_t since_ns;           /* 0: not known */
	const char *in, *in_module; /* group: its function that changed most; function, reason: the
				       group; NULL: none */
	double in_v[2];
	uint64_t in_ns[2];
	bool mostly; /* rule 8, of `in` */
	bool idle;   /* most of its change is of waits that are idle by nature */
	double score;
	struct explain_cause causes[EXPLAIN_CAUSES];
	size_t n_causes;
};

/* The window that was asked about, where only a part of it is explained: that in which requests
 * were slower. */
struct explain_asked {
	struct felt_span felt; /* what NULL: all of it is explained */
	int64_t from_ns, to_ns;
	char range[128]; /* for people */
	bool read;       /* requests are those of both windows, of the whole host */
	struct chain_requests requests;
};

struct explain {
	struct selection *sel[2]; /* DIFF_BEFORE, DIFF_AFTER */
	struct explain_asked asked;
	bool borrowed; /* they are the caller's */
	struct diff *diff[EXPLAIN_KINDS];
	size_t n_diffs;
	struct fold *fold[2 * EXPLAIN_KINDS];
	struct explain_statement *rows;
	size_t n;
	struct strbuf uncompared; /* "cpu, alloc (7 s before, 60 s in the window), ...": rule 6 */
	struct incidents incidents[2];         /* of containers, in both windows */
	struct event_list happenings;          /* in the window */
	struct logread logs[2];                /* what was logged, in both windows */
	struct logrise rises[LOGRISE_MOST];    /* of them, what came more often than before */
	struct logfailed failed[LOGRISE_MOST]; /* meanwhile, for each */
	size_t n_rises;
	struct netnew talk;          /* who talks to whom that did not before */
	struct reqrunning hung[2];   /* requests that lasted EXPLAIN_HUNG_NS or more */
	bool host_before, l7_before; /* that family recorded some of the time before: "not before"
					can be said */
};

struct explain_span {
	char from[48], to[48];
};
/* `a` selects this range; `s` holds its texts. */
void explain_span_set(struct select_args *a, struct explain_span *s, int64_t from_ns,
		      int64_t to_ns);
/*
 * The two windows. `before_ns`: how long the time before is; 0: ten minutes, or as long as the
 * window. Without a range: the last minute of the newest recording, or its second half if not as
 * much was recorded before. If requests were slower in a part of the window only, that is the
 * window (felt_span.h). On failure nothing is the caller's.
 */
int explain_open(const char *store, const struct select_args *select, char *const *words,
		 size_t n_words, int64_t before_ns, struct explain *out, struct err *e);
/* Fills in all but the windows. EXIT_NOTHING where one of both has nothing. */
int explain_compare(struct explain *x, struct err *e);
/* Only CPU time is compared, and what happened to containers is read: of two selections, which stay
 * the caller's. */
int explain_cpu(struct selection *const sel[2], struct explain *out, struct err *e);
void explain_release(struct explain *x);
/* Fills in the statements' causes. */
int explain_causes(struct explain *x, struct err *e);

/* "restic began to use 0.87 cores" */
void explain_say(const struct explain_statement *s, struct strbuf *out);
/* "2 requests ran for 10 s or more, the longest for 2 min 20 s: SELECT ..., asked by web of db,
 * which still ran at the end; not before": of those of one operation and service, by
 * its longest, hung[DIFF_AFTER].rows[i]. False: a longer one has said it. */
bool explain_say_hung(const struct explain *x, size_t i, struct strbuf *out);
/* The SELECT that gives v.ns of a side over the views of docs/SCHEMA.md. False where filters narrow
 * (it would say more). */
bool explain_query(const struct explain *x, const struct explain_statement *s, int side,
		   struct strbuf *out);
/* The same of a cause. */
bool explain_cause_query(const struct explain *x, const struct explain_statement *s,
			 const struct explain_cause *c, int side, struct strbuf *out);
/* The command that shows more. `store` NULL: need not be named. */
void explain_command(const struct explain *x, const struct explain_statement *s, const char *store,
		     struct strbuf *out);
/* "0.87 cores", "1.2 MiB/s": an amount per second of the statement's kind. */
const char *explain_amount(const struct diff *d, double v, char *buf, size_t size);

#endif
