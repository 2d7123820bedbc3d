/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets: chooses the processes that loaders look into. A loader says what it wants
 * (targetfeed.h). Each process that sonde-maps reports is compared with that and with [targets]
 * (rules.h); those that match are sent to the loader, and withdrawn when they end or the
 * configuration excludes them. It listens to sonde-maps only while a loader wants processes.
 */
#ifndef SONDE_SUPERVISOR_TARGETS_H
#define SONDE_SUPERVISOR_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/config/conf.h"
#include "supervisor/children/service.h"

struct targets;

struct targets *targets_new(void);
void targets_free(struct targets *t);
/* For a loader that starts: the pipe for its targets, to become its descriptor TARGETS_FD; -1:
 * none. The other end stays here. */
#define TARGETS_FD 4
int targets_begin(struct targets *t, const struct service *s);
/* Reduces a loader to this step (targetfeed.h). false: not sent; try again. */
bool targets_step(struct targets *t, const struct service *s, unsigned int step);
/* Twice a second, at most. `socket`: where sonde-maps listens. */
void targets_tick(struct targets *t, const struct conf *c, const char *store, const char *socket,
		  const struct service *loaders, size_t n);
/* How many processes a loader has now. */
size_t targets_given(const struct targets *t, const struct service *s);

#endif
