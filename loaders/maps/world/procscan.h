/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procscan: which processes there are, by /proc alone: for who may not have perf's side-band, nor
 * programs (a reader of Go heaps needs CAP_SYS_PTRACE and no more). What came and went between two
 * looks is not seen; what a process has mapped since is, a few seconds later.
 */
#ifndef SONDE_MAPS_PROCSCAN_H
#define SONDE_MAPS_PROCSCAN_H

#include <stdint.h>

struct world;

struct procscan {
	uint64_t next_ns;
	uint32_t round; /* of looks */
};

/* Scans about once a second; call it at each tick. Reports a new process at once, and checks each
 * known one in every fifth scan: another start time means another process, another executable means
 * an exec. */
void procscan_tick(struct procscan *s, struct world *w, uint64_t now_ns);

#endif
