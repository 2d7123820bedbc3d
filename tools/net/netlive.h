/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlive: who begins to talk to whom, as it comes: a line for each new edge of the map of
 * services, and one for the first trouble of an edge. New is what the map of the time before
 * (--last, else 15 minutes) has not.
 *
 * The store is read again about once a second, more seldom where that takes long: it takes a
 * twentieth of a core at most. It ends with SIGINT, SIGTERM or SIGHUP, or when nobody reads what it
 * writes; that is no error.
 */
#ifndef SONDE_TOOLS_NETLIVE_H
#define SONDE_TOOLS_NETLIVE_H

#include "schema/base/err.h"
#include "tools/cli/verb.h"

/* Is the range one that a clock can follow? 0, or EXIT_USAGE. */
int netlive_check(const struct verb_call *call, struct err *e);
/* Lines on standard output (with call->json an object each) until it is told to end. */
int netlive_run(struct verb_call *call, struct err *e);

#endif
