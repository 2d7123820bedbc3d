/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets: which processes the loaders that go into processes are to look at. A loader says what it
 * wants (targetfeed.h); what sonde-maps tells of who runs is compared with that and with [targets]
 * (rules.h); what fits is given to the loader, and taken back when it has ended or the
 * configuration excludes it. While nobody wants anything sonde-maps is not listened to.
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
/* A loader begins: the pipe that it is given targets by, to be its descriptor TARGETS_FD; -1: there
 * is none. Ours stays. */
#define TARGETS_FD 4
int targets_begin(struct targets *t, const struct service *s);
/* Tell a loader to do less by so many steps than all it does (targetfeed.h). false: it was not
 * told; try again. */
bool targets_step(struct targets *t, const struct service *s, unsigned int step);
/* Twice a second, at most. `socket`: where sonde-maps listens. */
void targets_tick(struct targets *t, const struct conf *c, const char *store, const char *socket,
		  const struct service *loaders, size_t n);
/* How many a loader has been given now. */
size_t targets_given(const struct targets *t, const struct service *s);

#endif
