/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents: what happened to each container in a range: restarts, out-of-memory kills, time lost
 * to its CPU quota. From the store's counters, not from processes that happened to be sampled.
 *
 *  1. An instance of a container is (id, when it was started). One that follows another of the same
 * id is a restart; so is a first one whose runtime counts restarts already. Restarts that were not
 * seen are taken from the runtime's count.
 *  2. One of the same name with another id was recreated.
 *  3. It is down where its last event is an end (down_ns).
 *  4. Kills for memory are the ends of processes (view process_ends). Time held back is cpu.stat's
 * (tools/waits/waitheld.h).
 */
#ifndef SONDE_TOOLS_INCIDENTS_H
#define SONDE_TOOLS_INCIDENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/idmap.h"
#include "schema/base/strbuf.h"
#include "tools/select/select.h"

/* How often, and when first and last (UTC ns). */
struct incident_count {
	uint64_t n;
	int64_t first_ns, last_ns;
};

struct incident_container {
	char *name; /* as everywhere: its name, else the first digits of its id */
	char *id;
	struct incident_count restarts, made_anew, oom;
	struct incident_count restarted; /* as family host tells, which misses none */
	char *oom_comm;                  /* of the process that was killed last, NULL: none */
	uint64_t exits;                  /* ends with the status that failed most often */
	uint32_t exit_status;
	uint64_t throttled_ns;  /* its CPU quota held it back, summed over CPUs */
	int64_t down_ns, up_ns; /* its last end with no start after it, its last start; UTC ns, 0:
				   none (family host) */
	char *down_how;         /* "exit 1", "signal 9 (KILL)", "": not known; NULL: no end */
};

struct incidents {
	struct incident_container *rows;
	size_t n;
	bool throttling_known; /* it was recorded in the range: 0 is 0 */
	struct idmap row_of;   /* hash of a name -> row */
};

enum incident { INCIDENT_OOM, INCIDENT_RESTART, INCIDENT_MADE_ANEW, INCIDENTS };

/* The number of restarts: the larger of the two counts. */
static inline const struct incident_count *incident_restarts(const struct incident_container *c)
{
	return c->restarted.n > c->restarts.n ? &c->restarted : &c->restarts;
}

/* Of one that is down: not as it was asked to, nor as a job that is done. */
bool incident_ended_badly(const struct incident_container *c);
/* Of the containers that the selection's filters let through. */
int incidents_read(const struct selection *sel, struct incidents *out, struct err *e);
void incidents_release(struct incidents *x);
const struct incident_count *incident_count(const struct incident_container *c, enum incident what);
/* "out of memory 4 times (tail)", "restarted 21 times (exit 1)"; nothing where it did not happen.
 */
void incident_say(const struct incident_container *c, enum incident what, struct strbuf *out);
/* All of it, restarts by incident_restarts: "memhog: out of memory 4 times (tail), restarted 4
 * times"; nothing where nothing happened to it. */
void incidents_say(const struct incident_container *c, struct strbuf *out);
/* NULL: nothing is known of a container of that name. */
const struct incident_container *incidents_named(const struct incidents *x, const char *name);

#endif
