/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weight: sonde's share of a busy host. With autogroup (kernel.sched_autogroup_enabled, on by
 * default) each session is one group, and nice counts only within it.
 */
#ifndef SONDE_SUPERVISOR_WEIGHT_H
#define SONDE_SUPERVISOR_WEIGHT_H

#define WEIGHT_NICE -5 /* as in sonded.service */

/* Gives the session of this process, and of its children, more weight. Does nothing if the session
 * is not its own: others' programs are in it. */
void weight_raise(void);

#endif
