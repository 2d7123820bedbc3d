/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: kernel stamps are CLOCK_BOOTTIME nanoseconds, the store holds UTC. utc = boot +
 * clock_boot_offset_ns(). The offset changes when the wall clock is set: whoever stores data reads
 * it again and keeps it on record.
 */
#ifndef SONDE_BASE_CLOCK_H
#define SONDE_BASE_CLOCK_H

#include <stdint.h>

#define NSEC_PER_SEC 1000000000ll

int64_t clock_boot_ns(void);
int64_t clock_utc_ns(void);
/* Stands still while the machine sleeps: for patience with others, who slept too. */
int64_t clock_mono_ns(void);
/* Sleep until that clock says mono_ns; at once where it does already. */
void clock_sleep_until(int64_t mono_ns);
/* CPU time of this process, user and system, all threads. */
int64_t clock_cpu_ns(void);
/* UTC minus boot clock, read so that a preemption between the two clocks does not show (best of
 * five). */
int64_t clock_boot_offset_ns(void);

#endif
