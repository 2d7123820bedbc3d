/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_read: profile.proto (google/pprof) as a fold. Pure over bytes that anybody may have written; bounded by
 * PPROF_ITEMS of each kind. docs/decisions/0063 says why there is no library here.
 *
 *  1. The two types of the kind of value that is asked for (fold_opts.kind; store/kinds.h has their names), or that the
 *     default type is of. Else the value is the sample type with a unit of time; beside it the one with unit "count" gives the samples. With
 *     counts alone, and a period of time, the value is count x period. With neither (a heap profile) it is the default
 *     type, else the last one, and the fold has no length of time: only shares of it mean something.
 *  2. Locations are leaf first; a location's lines are innermost first, all but the last inlined into the next.
 *  3. A frame without a name is "module+0xaddress"; a module is the last component of its mapping's file,
 *     but "[kernel.kallsyms]" is "[kernel]", and a perf map "[jit]", as the store calls them.
 *  4. Labels pid, tid, comm, thread, container and container_id are taken over into leaves.
 *  5. Negative values (a difference is no profile), references to what is not there, and a message that does not end
 *     are errors.
 */
#ifndef SONDE_TOOLS_PPROF_READ_H
#define SONDE_TOOLS_PPROF_READ_H

#include <stddef.h>

#include "schema/base/err.h"
#include "tools/fold.h"

#define PPROF_ITEMS (4u << 20)

/* Not compressed. `name` is for errors (EXIT_USAGE). */
int pprof_read(const void *data, size_t len, const char *name, const struct fold_opts *o, struct fold **out, struct err *e);

#endif
