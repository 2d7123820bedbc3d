/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_list: what happened in a range, from the view `events`, in order of time.
 *
 *   1. The end of a container's first process is left out: the container has an event for it. So is
 *      a process that just failed (exit code, no signal) after less than EVENT_LIST_FAILED_NS.
 *   2. A container that started again EVENT_LIST_LOOP times or more, with at most EVENT_LIST_GAP_NS
 *      from one to the next, is one row, "restart loop", with the number of restarts, and how it
 *      usually ended.
 *   3. Equal events (kind, subject, name, detail) within EVENT_LIST_GAP_NS are one row.
 *
 * `every`: without rules 2 and 3, and without the second part of rule 1.
 */
#ifndef SONDE_TOOLS_EVENT_LIST_H
#define SONDE_TOOLS_EVENT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/select/select.h"

#define EVENT_LIST_LOOP      3
#define EVENT_LIST_GAP_NS    (900 * 1000000000ll)
#define EVENT_LIST_FAILED_NS (10 * 1000000000ll)

struct listed_event {
	int64_t first_ns, last_ns;                                            /* UTC; equal: once */
	char *kind, *subject, *name, *detail, *which, *comm, *container, *by; /* never NULL */
	uint32_t pid;                                                         /* 0: none */
	int64_t lived_ns; /* of a process that ended; -1: not one */
	uint64_t n;
	bool gone; /* while it is made */
};

struct event_list {
	struct listed_event *rows;
	size_t n;
	bool recorded; /* family host was, at some time in the range */
};

int event_list_read(const struct selection *sel, bool every, struct event_list *out, struct err *e);
void event_list_release(struct event_list *x);
/* Rules 1 to 3, of rows in any order. */
void event_list_fold(struct event_list *x, bool every);
/* "web: stopped, exit 1 (SIGTERM from runc (812)), 21 times". */
void listed_event_say(const struct listed_event *x, struct strbuf *out);
/* Its kind as a word that outlives it. */
const char *listed_event_kind(const struct listed_event *x);
/* Does tools/timeline/incidents.h cover it: the end of a process, an out-of-memory kill, a start?
 */
bool listed_event_is_incident(const struct listed_event *x);
/* Is it bad news: killed, failed, stopped by an error, full, throttled, ...? */
bool listed_event_is_bad(const struct listed_event *x);

#endif
