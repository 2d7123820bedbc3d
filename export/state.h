/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state: totals in a file, so that counters go on where they were (statetext.h has its form). One
 * file for each store, in a folder of ours (never the store's).
 */
#ifndef SONDE_EXPORT_STATE_H
#define SONDE_EXPORT_STATE_H

#include <limits.h>
#include <stddef.h>

#include "export/totals.h"
#include "schema/base/err.h"

/* The folder that states are in: `given`, $STATE_DIRECTORY (systemd), /var/lib/sonde-export for
 * root, else $XDG_STATE_HOME/sonde or
 * ~/.local/state/sonde. It is made if it is not there. */
int state_folder(const char *given, char path[PATH_MAX], struct err *e);

struct state {
	char path[PATH_MAX];
	int lock_fd;
};
/* Waits for whoever has the state of this store, and reads it. `dir` as state_folder told;
 * state_close in any case. */
int state_open(struct state *s, const char *dir, const char *store, struct totals *t,
	       struct err *e);
int state_save(const struct state *s, struct totals *t, struct err *e);
void state_close(struct state *s);

#endif
