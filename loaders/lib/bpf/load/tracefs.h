/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracefs: the numbers of tracepoints, which perf_event_open wants, and their fields. Only tracefs
 * has them. Where it is not mounted it is opened without mounting it: a mount that is part of no
 * namespace and ends with its descriptor. That needs CAP_SYS_ADMIN.
 */
#ifndef SONDE_BPF_TRACEFS_H
#define SONDE_BPF_TRACEFS_H

#include <stdint.h>

#include "schema/base/err.h"

struct strbuf;

/* The folder of events, to be closed by the caller; -errno, with the reason. */
int tracefs_open(struct err *e);
/* The number of "GROUP/NAME"; -ENOENT: this kernel has no such tracepoint. */
int tracefs_id(int events, const char *name, uint64_t *id);
/* The text of its file `format`, added to *out; -ENOENT: there is no such tracepoint. */
int tracefs_format(int events, const char *name, struct strbuf *out);

#endif
