/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early: what may be gone before an exec's turn comes in the order of time. A container's mount
 * namespace ends with its last process, /proc/PID with the process, and Docker's file on the
 * container soon after: 50 ms is enough for all that, and on a busy host sonde-maps is not even run
 * within it.
 *
 * So a thread waits for the execs that the program of probes/maps.bpf.c calls urgent (another root
 * in another mount namespace, once in MAPS_URGENT_NS a namespace), and holds at once the root and
 * the executable by O_PATH descriptors, which open nothing and cannot block, and reads the
 * container's name. It runs as SCHED_FIFO where it may, because it has some 20 us of work and no
 * second chance. Descriptors are held for EXEC_RACE_KEEP_NS: they keep a file system too.
 */
#ifndef SONDE_MAPS_EXEC_RACE_H
#define SONDE_MAPS_EXEC_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/clock.h"

struct containers;
struct exec_race;
struct root_id;

#define EXEC_RACE_MAX     64
#define EXEC_RACE_KEEP_NS NSEC_PER_SEC

/* ring_fd: the ring of urgent events (struct maps_event); containers: borrowed. NULL: there can be
 * no such thread. */
struct exec_race *exec_race_start(int ring_fd, struct containers *containers);
void exec_race_stop(struct exec_race *e); /* NULL is fine, here and below */
/* What the process held, or another one of the same root; the caller's, O_PATH, -1: not held.
 * *exe_fd is of this process alone. false: neither. */
bool exec_race_get(struct exec_race *e, uint32_t tgid, uint64_t start_ns,
		   const struct root_id *root, int *root_fd, int *exe_fd);
/* Close what was held long enough. */
void exec_race_tick(struct exec_race *e, uint64_t now_ns);

#endif
