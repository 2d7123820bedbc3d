/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlive: new connections as they appear: a line for each new edge of the map of services, and one
 * for the first trouble of an edge. An edge is new if the map of the time before (--last, else 15
 * minutes) does not have it.
 *
 * The store is read again about once a second, less often where reading takes long: it uses a
 * twentieth of a core at most. It ends with SIGINT, SIGTERM or SIGHUP, or when its reader closes
 * the pipe; that is not an error.
 */
#ifndef SONDE_TOOLS_NETLIVE_H
#define SONDE_TOOLS_NETLIVE_H

#include "schema/base/err.h"
#include "tools/cli/verb.h"

/* Is the range one that a clock can follow? 0, or EXIT_USAGE. */
int netlive_check(const struct verb_call *call, struct err *e);
/* Prints lines on standard output (with call->json an object each) until a signal ends it. */
int netlive_run(struct verb_call *call, struct err *e);

#endif
