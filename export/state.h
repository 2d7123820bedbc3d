/* SPDX-License-Identifier: Apache-2.0 */
/* state: totals in a file, so that counters survive a restart (statetext.h has its form). One file
 * for each store, never in the store's folder. */
#ifndef SONDE_EXPORT_STATE_H
#define SONDE_EXPORT_STATE_H

#include <limits.h>
#include <stddef.h>

#include "export/totals.h"
#include "schema/base/err.h"

/* The folder of states: `given`, $STATE_DIRECTORY (systemd), /var/lib/sonde-export for root, else
 * $XDG_STATE_HOME/sonde or ~/.local/state/sonde. Created if missing. */
int state_folder(const char *given, char path[PATH_MAX], struct err *e);

struct state {
	char path[PATH_MAX];
	int lock_fd;
};
/* Locks the state of this store, waiting for another process that has it, and reads it. `dir` is
 * that of state_folder; call state_close in any case. */
int state_open(struct state *s, const char *dir, const char *store, struct totals *t,
	       struct err *e);
int state_save(const struct state *s, struct totals *t, struct err *e);
void state_close(struct state *s);

#endif
