/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journallines: what a container wrote into systemd's journal last (Docker's and Podman's log
 * driver journald), from the journal's own files; it runs no program and asks no service.
 *
 *   1. It reads the newest JOURNALLINES_FILES files of the system's journal, in /var/log/journal
 *      and /run/log/journal (or the host's, seen from a container); of a user's container that
 *      user's files, too. Like Docker's files they are read in part, and reading blocks if the logs
 *      are on a server that does not answer.
 *   2. A container's lines are those with its id, as its runtime wrote it, from the user who runs
 *      the runtime: lines of other users with the same id are ignored.
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
