/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journallines: what a container wrote into systemd's journal last (Docker's and Podman's log
 * driver journald), from the journal's own files; no program is run and nobody is asked.
 *
 *   1. Looked at are the newest JOURNALLINES_FILES files of the system's journal, of
 * /var/log/journal and /run/log/journal (where there is none, of the host's, seen from a
 * container); of a user's container that user's files too. They are read as the files of Docker
 * are: a part of each, and whoever keeps the host's logs on a server that does not answer waits.
 *   2. A container's lines are those with its id, as its runtime wrote it, from the user who runs
 * the runtime: whoever else writes the same id into the journal is not heard.
 */
#ifndef SONDE_HOST_FAMILY_JOURNALLINES_H
#define SONDE_HOST_FAMILY_JOURNALLINES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containerlog.h"

#define JOURNALLINES_FILES 8

/* What it wrote before `until_ns`, UTC, goes to `log`. */
void journallines_read(struct containerlog *log, const struct container_ref *ref, int64_t until_ns);
/* The folder in which this host's journal is, for people; NULL: none. Static buffer. */
const char *journallines_folder(void);

#endif
