/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugefaults: when another program (probes/mem/mem_huge.bpf.h) samples the faults that bring huge
 * pages, and how many each sample represents.
 *
 * The program runs at each allocation of a page on the host, at some 50 ns. While a person waits it
 * is attached all the time, if the kernel makes huge pages at all. Otherwise it is attached while
 * /proc/vmstat says that faults bring some, until a minute after the last one; and where the host
 * allocates more than HUGEFAULTS_ALLOCS pages a second, only in one of `turns` seconds, drawn by
 * chance: then each of its samples represents that many more. Of each `turns` seconds in a row it
 * is one, so that a process that gets huge pages for a while is met in its part of them: where each
 * second were drawn for itself, a process of 20 s may be met in none.
 */
#ifndef SONDE_MEM_HUGEFAULTS_H
#define SONDE_MEM_HUGEFAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/mem/period.h"

#define HUGEFAULTS_ASK_NS  4000000000ll /* between looks while no fault brings any */
#define HUGEFAULTS_OVER_NS 60000000000ll
#define HUGEFAULTS_ALLOCS  10000 /* a second: 0.05 % of a core at 50 ns */
#define HUGEFAULTS_TURNS   64

struct hugefaults {
	int fd;         /* /proc/vmstat; -1: it is not asked */
	bool attends;   /* a person waits */
	bool on;        /* attach the program */
	uint32_t every; /* how many of these faults are one sample, while it is attached */
	uint32_t turns;
	struct period period;
	uint64_t faults, allocs;  /* that the kernel had counted at the last look */
	int64_t asked_ns, met_ns; /* boot clock; of the last look, of the last fault. 0: none */
	bool active;              /* there were some in the last minute */
	uint32_t left, turn; /* of `turns` seconds in a row: how many are left, at which it is on */
	uint64_t random;
};

/* The order of a huge page by `hpage_pmd_size` of sysfs, if the kernel makes any by itself (its
 * `enabled`); 0: it makes none. Both are texts of files. Pure. */
uint32_t hugefaults_order_of(const char *enabled, const char *size);
uint32_t hugefaults_order(void);
/* Pure: faults that brought a huge page, and pages that were allocated, of /proc/vmstat. 0 or
 * -EBADMSG. */
int hugefaults_parse(const char *text, size_t len, uint64_t *faults, uint64_t *allocs);

/* `rate`: samples a second that are wanted. */
void hugefaults_open(struct hugefaults *x, bool attends, uint32_t rate);
/* From then on it is never on. */
void hugefaults_close(struct hugefaults *x);
/* Each second: decides `on`, `every` and `turns`. `seen`: faults that samples represented
 * while it was attached. */
void hugefaults_tick(struct hugefaults *x, uint64_t seen, int64_t now_ns);
/* Pure: the same, of what the kernel has counted. */
void hugefaults_decide(struct hugefaults *x, uint64_t faults, uint64_t allocs, int64_t now_ns);
/* Have there been any since it was opened? `seen` as above. */
bool hugefaults_met(const struct hugefaults *x, uint64_t seen);

#endif
