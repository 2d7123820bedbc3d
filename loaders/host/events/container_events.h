/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_events: what happens to containers and to the host, as events: containers that start,
 * stop and restart (container_life.h), with what Docker's files and Podman's log report
 * (dockerfiles.h, podmanlog.h); out-of-memory kills with the kernel's report (oomlog.h); the time
 * that the host was suspended.
 *
 * An end is noted at once and stored CONTAINER_EVENTS_SETTLE_NS later, when the runtime has written
 * its own record. What the rules of [targets] exclude is not stored; in a list of memory users it
 * is one row.
 */
#ifndef SONDE_HOST_FAMILY_CONTAINER_EVENTS_H
#define SONDE_HOST_FAMILY_CONTAINER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/host/logs/dockerfiles.h"
#include "loaders/host/events/container_life.h"
#include "loaders/host/logs/loglines.h"
#include "loaders/host/logs/podmanlog.h"
#include "schema/base/strbuf.h"

#define CONTAINER_EVENTS_SETTLE_NS 1500000000ll

struct container_events_end;
struct container_events_oom;
struct family_host;

struct container_events {
	struct container_life life;
	struct dockerfiles docker;
	struct podmanlog podman;
	struct loglines lines;
	struct container_events_end *ends;
	size_t n_ends, cap_ends; /* of containers, and their starts */
	struct container_events_oom *ooms;
	size_t n_ooms, cap_ooms;
	uint64_t dropped;  /* of either: there were too many to be kept */
	int64_t asleep_ns; /* boot clock beyond the one that stops while the host is suspended; 0:
			      not known */
	struct family_host *h; /* of the call at hand */
};

void container_events_init(struct container_events *x);
void container_events_release(struct container_events *x);
/* family.ended */
void container_events_ended(struct container_events *x, const struct hostmaps_process *p);
/* A process that runs, in a round. */
void container_events_meet(struct container_events *x, const struct hostmaps_process *p);
/* A round is over. */
void container_events_round(struct container_events *x, struct family_host *h, int64_t now_ns);
/* Between rounds; `all`: the capture ends. */
void container_events_poll(struct container_events *x, struct family_host *h, int64_t now_ns,
			   bool all);

/* As everywhere: a container's name, else the first digits of its id. */
void container_events_container_name(const struct family_host *h, const struct dockerfiles *docker,
				     const struct container_ref *ref, char *out, size_t size);

#endif
