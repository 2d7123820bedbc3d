/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weight: sonde's share of a busy host. With autogroup (kernel.sched_autogroup_enabled, on by
 * default) each session is one group, and nice counts only within it.
 */
#ifndef SONDE_HOST_WEIGHT_H
#define SONDE_HOST_WEIGHT_H

#include <stdbool.h>

#define WEIGHT_DAEMON (-10) /* it needs that while it starts; then its limit bounds it */
#define WEIGHT_RECORD (-10) /* as the loaders' own nice value: a recording is short */

/* Gives the session of this process, and of its children, the weight of that nice value. Does
 * nothing if the session is not its own: others' programs are in it. */
void weight_raise(int nice);
/* The same for a new session, which this process begins: no terminal's signals reach it any more.
 * false: it leads a process group, and nothing has changed. */
bool weight_session(int nice);

#endif
