/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy: when sonded restarts a child that ended, and when it gives up. Pure.
 *
 *   1. It waits 0.5 s, 1 s, 2 s, ... up to 60 s (up to 10 s for a child that had been ready: being
 *      killed is not its fault), each varied at random by up to a quarter, so that several children
 *      do not restart in step.
 *   2. The delays start again for a child that was ready for POLICY_HEALTHY_NS.
 *   3. It gives up at once where a retry cannot help: a wrong command line, a kernel that lacks a
 *      feature, a missing privilege. Otherwise it gives up after POLICY_TRIES failures in a row of
 *      a child that never became ready, or POLICY_CRASHES of one that did. It never gives up
 *      because the store is full, locked or damaged.
 *   4. A child that is silent, or does not end, hangs only if it had time to act: time that it
 *      waited for a CPU (starved.h) does not count.
 */
#ifndef SONDE_SUPERVISOR_POLICY_H
#define SONDE_SUPERVISOR_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define POLICY_HEALTHY_NS 10000000000ll
#define POLICY_TRIES      8
#define POLICY_FAILING    2 /* failures in a row from which on status and up report it as failing */
#define POLICY_CRASHES    50
#define POLICY_HUNG_NS    20000000000ll /* ready, but silent for this long: it hangs */
#define POLICY_SLOW_NS    60000000000ll /* started, but not ready after this long */

/* `failures`: in a row, this one included (from 1). `random`: any 32 bits. */
int64_t policy_delay_ns(unsigned int failures, bool was_ready, uint32_t random);
/* `exit`: its exit code, -1: a signal ended it. */
bool policy_gives_up(unsigned int failures, bool was_ready, int exit);

enum policy_verdict { POLICY_IN_TIME, POLICY_STARVED, POLICY_HANGS };
/* `silent_ns`: since its last sign of life; `waited_ns` of it for a CPU; `most_ns`: the time that
 * it has. POLICY_STARVED: that time is over, but it could not use it. */
enum policy_verdict policy_judge(int64_t silent_ns, int64_t waited_ns, int64_t most_ns);

#endif
