/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_wall: on and off CPU in one tree, adding up to the wall time of each process and thread
 * name.
 *
 * Amounts are the scheduler's account of each thread (table wait_row): running, blocked by class,
 * ready by class. Stacks only divide them: samples of kind cpu the time it ran, amounts of kinds
 * offcpu and runqueue the time it waited, each within its thread and class (and slice, if there are
 * slices with stacks). Time without a stack is directly below the thread.
 *
 *   1. Time on CPU is in the stack's own frames.
 *   2. Time off CPU has one more frame at its end, which says why: "[waits: lock]", "[idle: poll]"
 *      (tools/waits/waitrules.h), "[ready: preempted]"; "[waits: sleep, not over]" for waits that
 *      began before the capture or outlast it.
 *   3. A frame below which nothing ran is of origin FOLD_OFF: common callers are shared, below them
 *      the two are separate.
 *
 * The number n counts stretches of time. A thread that was never sampled while it ran shows "[on
 * CPU]".
 */
#ifndef SONDE_TOOLS_FOLD_WALL_H
#define SONDE_TOOLS_FOLD_WALL_H

#include "schema/base/err.h"
#include "tools/fold/fold.h"

#define FOLD_WALL_NAME "wall"

/* As fold_make, of which it is a part (fold_opts.wall). EXIT_NOTHING where off-CPU time was not
 * recorded. */
int fold_wall_make(const struct selection *sel, const struct fold_opts *o, struct fold **out,
		   struct err *e);

#endif
