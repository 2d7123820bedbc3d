/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onecpu: a tracer and what it steps take turns, so they stay on one CPU together: a stop that has
 * to wake the other CPU takes three times as long on a virtual machine. Children inherit it.
 */
#ifndef SONDE_TESTS_ONECPU_H
#define SONDE_TESTS_ONECPU_H

#include <sched.h>

/* Stay on the CPU that runs us now; the CPUs that were allowed before. Where it is refused, all
 * goes on as before. */
static inline cpu_set_t onecpu_stay(void)
{
	cpu_set_t before, one;
	int cpu = sched_getcpu();

	CPU_ZERO(&before);
	CPU_ZERO(&one);
	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return before;
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	return before;
}

/* As it was; a set of none changes nothing. */
static inline void onecpu_leave(const cpu_set_t *before)
{
	if (CPU_COUNT(before))
		(void)sched_setaffinity(0, sizeof(*before), before);
}

#endif
