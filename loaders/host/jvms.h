/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jvms: heap, collections and safepoints of Java's virtual machines, of each that writes them into
 * its hsperfdata file (jvmfile.h). Nothing is sent to the machine or attached to it.
 *
 * Which file: the one that the process itself has mapped (/proc/PID/maps has its path and inode),
 * opened below its own root, with that inode: neither a file that another process left there nor
 * one of another pid namespace. If it is damaged or removed (by a cleaner of /tmp), the log says so
 * once and the process has no rows; a machine with -XX:-UsePerfData has no file.
 *
 * A process is checked if it has libjvm.so mapped: each time while it is young, then once a minute.
 */
#ifndef SONDE_HOST_FAMILY_JVMS_H
#define SONDE_HOST_FAMILY_JVMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/run/meter.h"
#include "schema/base/strbuf.h"

struct hostmaps_process;
struct jvms_known;

struct jvms {
	struct meter meter;
	struct jvms_known *known; /* by pid */
	uint64_t round;
	struct strbuf text;
};

void jvms_init(struct jvms *j, int64_t idle_ns);
void jvms_release(struct jvms *j);
/* since_ns: of the previous round; 0: this is the first. */
void jvms_read(struct jvms *j, const struct meter_round *r, struct hostmaps_process *p,
	       int64_t since_ns);
void jvms_end(struct jvms *j);

#endif
