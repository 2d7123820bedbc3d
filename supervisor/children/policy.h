/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy: when a child that ended is started again, and when not. Pure.
 *
 *   1. It waits 0.5 s, 1 s, 2 s, ... to 60 s (10 s for one that had been ready: whoever kills it is
 * not its fault), each a quarter more or less by chance, so that several do not come back in step.
 *   2. One that was ready for POLICY_HEALTHY_NS begins anew.
 *   3. It is given up at once where nothing will change by itself: a wrong command line, a kernel
 * that lacks something, a right that is missing. Else after POLICY_TRIES in a row that never became
 * ready; one that did, after POLICY_CRASHES. A store that is full, locked or damaged is no reason:
 * it is tried on.
 */
#ifndef SONDE_SUPERVISOR_POLICY_H
#define SONDE_SUPERVISOR_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define POLICY_HEALTHY_NS 10000000000ll
#define POLICY_TRIES      8
#define POLICY_CRASHES    50
#define POLICY_HUNG_NS    20000000000ll /* ready, and silent for so long: it hangs */
#define POLICY_SLOW_NS    60000000000ll /* started, and not ready for so long */

/* `failures`: in a row, this one included (from 1). `random`: any 32 bits. */
int64_t policy_delay_ns(unsigned int failures, bool was_ready, uint32_t random);
/* `exit`: its exit code, -1: a signal ended it. */
bool policy_gives_up(unsigned int failures, bool was_ready, int exit);

#endif
