/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podmanlog: what Podman writes about its containers into its event log, if that is a file
 * (events_logger = file, the default without systemd; with it, it is in the journal, which is not
 * read): their creation and removal, how each ended, how often it was restarted, its health. Podman
 * has no other file with that: its state is in a database. No engine is asked.
 *
 *   1. Lines that are in the log at the first look are known, and not reported. Later each new line
 *      is reported once: it is past the end of the previous look, or later than all reported
 *      before, since Podman starts a new file when it is too long.
 *   2. A line is read when it is complete.
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
