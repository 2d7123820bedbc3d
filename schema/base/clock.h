/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: kernel stamps are CLOCK_BOOTTIME nanoseconds, the store holds UTC. utc = boot +
 * clock_boot_offset_ns(). The offset changes when the wall clock is set: writers read it again and
 * record it.
 */
#ifndef SONDE_BASE_CLOCK_H
#define SONDE_BASE_CLOCK_H

#include <stdint.h>

#define NSEC_PER_SEC 1000000000ll

int64_t clock_boot_ns(void);
int64_t clock_utc_ns(void);
/* Stops while the machine sleeps: for timeouts on other processes, which sleep too. */
int64_t clock_mono_ns(void);
/* Sleeps until that clock reaches mono_ns; returns at once if it has. */
void clock_sleep_until(int64_t mono_ns);
/* CPU time of this process, user and system, all threads. */
int64_t clock_cpu_ns(void);
/* UTC minus boot clock, read so that a preemption between the two clocks does not show (best of
 * five). */
int64_t clock_boot_offset_ns(void);

#endif
