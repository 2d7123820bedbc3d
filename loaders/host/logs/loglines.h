/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loglines: the last lines of containers' logs, read when one ended badly, unless --log-lines is
 * off: of Docker's json-file and of Podman's k8s-file, in root's own folders; of a container
 * that has none of these, what it wrote into systemd's journal (journallines.h). A log that is kept
 * elsewhere (fluentd, syslog, Docker's own form `local`, ...) is not read.
 *
 * A container that is removed as it ends takes its log with it: the log of each that runs is held
 * open, from its start on, LOGLINES_HELD at most. In a minute LOGLINES_READS logs are read at most.
 */
#ifndef SONDE_HOST_FAMILY_LOGLINES_H
#define SONDE_HOST_FAMILY_LOGLINES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/proc/container.h"

#define LOGLINES_HELD  512
#define LOGLINES_READS 60

struct loglines_held;
struct dockerfiles;

struct loglines {
	bool on;
	struct loglines_held *held; /* by id */
	int64_t minute_ns;
	uint32_t reads; /* in it */
};

void loglines_release(struct loglines *l);
/* A container that started, or was met: its log is held from now on. */
void loglines_meet(struct loglines *l, const struct dockerfiles *docker,
		   const struct container_ref *ref, int64_t now_ns);
/* Those that were not met for a while are let go. */
void loglines_round(struct loglines *l, int64_t now_ns);
/* What it wrote before `until_ns`, UTC, line by line, the oldest first; nothing, where it is not
 * known where that is. */
void loglines_read(struct loglines *l, const struct dockerfiles *docker,
		   const struct container_ref *ref, int64_t until_ns, int64_t now_ns,
		   void (*line)(void *ctx, const char *line, bool cut), void *ctx);

#endif
