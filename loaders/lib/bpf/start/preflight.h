/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preflight: checks before anything is loaded, so that an error names its cause: rights, kernel
 * version, type information, lockdown. And the rest of what `--check` reports about a host,
 * whatever the family.
 */
#ifndef SONDE_BPF_PREFLIGHT_H
#define SONDE_BPF_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct check;

/* The first reason why loading cannot work: EXIT_PERMISSION or EXIT_PREREQUISITE. `prog` appears in
 * the fix. */
int preflight(const char *prog, struct err *e);
/* Only: is our boot clock the kernel's? A family that works without programs needs this too. */
int preflight_clock(const char *prog, struct err *e);
/* Limits of this process that no capture can live with: EXIT_PREREQUISITE. Of each family. */
int preflight_limits(struct err *e);
/* Each check as an item, then information. needed: without programs there is no capture; else a
 * capture has less without them. */
void preflight_check(struct check *c, const char *prog, const char *store_dir, bool needed);

/* Helpful rights that are missing, and what that costs, as check_rights and the recording say it;
 * without `kernel_stacks` not of those that only name the kernel's functions.
 * false: none is. */
bool preflight_lacks(bool kernel_stacks, char *text, size_t size, const char **fix);
/* This process has the capability (CAP_SYS_PTRACE). */
bool preflight_has(int cap);
/* Why the kernel's symbols have no addresses, for people; returns what helps. */
const char *preflight_hidden(char *why, size_t size);

/* What may have refused a program although the rights are there, for people; returns what helps. */
const char *preflight_refused(char *why, size_t size);

/* kernel.NAME as a number, or `otherwise` if it does not exist:
 * sysctl_kernel("perf_event_max_stack", 127). */
int64_t sysctl_kernel(const char *name, int64_t otherwise);

#endif
