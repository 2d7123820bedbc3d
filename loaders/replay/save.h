/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep: requests of a capture into a store, as a run of the family "replay": summed by second,
 * service, operation, status and result. What is summed is bounded; past that it is written, and
 * adds up there.
 */
#ifndef SONDE_REPLAY_SAVE_H
#define SONDE_REPLAY_SAVE_H

#include "loaders/lib/protocols/conn.h"
#include "schema/base/err.h"

struct keep;

/* Opens the store in folder `dir`, made if need be. `capture`: what the run is called. */
int save_open(const char *dir, const char *capture, struct keep **out, struct err *e);
/* Names are the protocols' and are written as they are then known (protocols_operation_now). */
int save_add(struct keep *k, struct protocols *s, const struct proto_request *r,
	     const char *service);
/* Writes what is left, and is gone. */
int save_close(struct keep *k, struct protocols *s, struct err *e);

#endif
