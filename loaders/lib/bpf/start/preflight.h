/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preflight: what can be known before anything is loaded, so that a refusal names its cause:
 * rights, kernel version, type information, lockdown. And the rest of what `--check` tells of a
 * host, whatever the family.
 */
#ifndef SONDE_BPF_PREFLIGHT_H
#define SONDE_BPF_PREFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"

struct check;

/* The first cause for which loading cannot work: EXIT_PERMISSION or EXIT_PREREQUISITE. `prog` is
 * for the fix. */
int preflight(const char *prog, struct err *e);
/* Only that our boot clock is the kernel's: what a family needs too that can do without programs.
 */
int preflight_clock(const char *prog, struct err *e);
/* Each of them as an item, and then what is only good to know. needed: without programs there is no
 * capture; else it is less without them. */
void preflight_check(struct check *c, const char *prog, const char *store_dir, bool needed);

/* kernel.NAME as a number, or `otherwise` if it is not there: sysctl_kernel("perf_event_max_stack",
 * 127). */
int64_t sysctl_kernel(const char *name, int64_t otherwise);

#endif
