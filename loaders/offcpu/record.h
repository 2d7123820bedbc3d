/* SPDX-License-Identifier: Apache-2.0 */
/* record: what comes through the ring (probes/offcpu.h), checked before anything in it is believed.
 * Pure. */
#ifndef SONDE_OFFCPU_RECORD_H
#define SONDE_OFFCPU_RECORD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/offcpu.h"

/* 0, and how many amounts it accounts for: none for a stack, whose wait is not over, and for a
 * wake-up; -EBADMSG: it is not one of ours. */
int record_value(const void *record, size_t size, uint64_t *n);
/* A struct offcpu_end. Of a record that record_value took. */
bool record_is_end(const struct stack_event *ev, size_t size);
/* A struct offcpu_wake, likewise. */
bool record_is_wake(const struct stack_event *ev, size_t size);

#endif
