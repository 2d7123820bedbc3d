/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure: does anybody on this host wait for memory? By the kernel's own account,
 * /proc/pressure/memory (PSI), which has the waits of all cgroups. A program at each switch of
 * threads is worth its cost only then: a capture that records always attaches it at the first wait,
 * of which it so misses up to a second, and detaches it after PRESSURE_OVER_NS without one.
 */
#ifndef SONDE_MEM_PRESSURE_H
#define SONDE_MEM_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRESSURE_OVER_NS 60000000000ll

struct pressure {
	int fd; /* -1: this kernel has no such account */
	uint64_t stalled_us;
	int64_t last_ns; /* when it became more; 0: not yet */
};

void pressure_open(struct pressure *p);
void pressure_close(struct pressure *p);
/* About once a second: has anybody waited within PRESSURE_OVER_NS? */
bool pressure_is(struct pressure *p, int64_t now_ns);

/* The account's text: us that some thread waited. 0 or -EBADMSG. */
int pressure_parse(const char *text, size_t len, uint64_t *stalled_us);

#endif
