/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podmanlog: what Podman writes of its containers into the log of its events, where it keeps that
 * in a file (events_logger = file, the default without systemd; with it, it is in the journal,
 * which is not read): their creation and removal, how each ended, how often it was started again,
 * its health. Podman has no file else that tells of it: its state is in a database. No engine is
 * asked.
 *
 *   1. What stands in the log at the first look is known, and not told. Later each line is told
 * once: those past the place of the look before, and later than all told before, since Podman makes
 * the file anew when it is too long.
 *   2. A line that is being written is read when it is whole.
 */
#ifndef SONDE_HOST_FAMILY_PODMANLOG_H
#define SONDE_HOST_FAMILY_PODMANLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/proc/containerfile.h"

#define PODMANLOG_PATH "/run/libpod/events/events.log" /* root's own */

struct podmanlog_known;

struct podmanlog_state {
	char name[256];
	bool removed;
	int exit_code;
	bool has_ended; /* and not started since */
	uint32_t restarts;
	char health[24];
};

struct podmanlog {
	struct podmanlog_known *all; /* by id */
	uint64_t ino, at;
	int64_t last_ns; /* time of the newest line that was read */
	bool begun;
};

void podmanlog_release(struct podmanlog *p);
/* was: its health before. */
void podmanlog_look(struct podmanlog *p, const char *path,
		    void (*told)(void *ctx, const struct container_happened *x, const char *was),
		    void *ctx);
/* One that was removed is remembered for a while. NULL: Podman's log says nothing of it. */
const struct podmanlog_state *podmanlog_state(const struct podmanlog *p, const char *id);

#endif
