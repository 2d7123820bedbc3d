/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota: what delays threads other than contention: CPU quota of cgroups (cpu.stat, v1 and v2) and
 * time that the hypervisor took (/proc/stat). Read with the sums; a group that exists at the first
 * reading counts from then on, one that is created later from its beginning, up to 5 s late.
 *
 * cpu.stat is lines "NAME NUMBER": nr_periods, nr_throttled, and throttled_usec (v2) or
 * throttled_time in ns (v1). /proc/stat begins "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL
 * ...", in clock ticks, all CPUs together.
 */
#ifndef SONDE_OFFCPU_QUOTA_H
#define SONDE_OFFCPU_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/store/write/waits.h"

struct family_host;

struct quota_group {
	char *path; /* below the mount point: "/docker/abc" */
	struct store_throttle before;
	bool known; /* `before` holds */
	bool seen;  /* at the last look at the tree */
};

struct quota {
	char root[512]; /* where the cpu controller's hierarchy is mounted; "": nowhere */
	struct quota_group *groups; /* that have had a quota */
	size_t n, cap;
	struct store_steal steal;   /* since boot, as read last */
	int64_t looked_ns, read_ns; /* boot clock, 0: never */
};

void quota_init(struct quota *q);
void quota_release(struct quota *q);
/* Stores the difference since the last call; `h` NULL: this is the first reading. */
void quota_read(struct quota *q, struct family_host *h, int64_t now_ns);

/* Pure. false: it is not such a file. */
bool quota_parse_cpustat(const char *text, size_t len, struct store_throttle *out);
/* cpu_ns is the sum of all fields but guests', which are in others; ticks a second as sysconf says.
 */
bool quota_parse_stat(const char *text, size_t len, long ticks, struct store_steal *out);

#endif
