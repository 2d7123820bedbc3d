/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_read: profile.proto (google/pprof) as a fold. Pure over bytes that anybody may have
 * written; bounded by PPROF_ITEMS of each kind. docs/decisions/0063 says why there is no library
 * here.
 *
 *  1. Which of its values are taken, and as what: tools/formats/pprof_kind.h. Of CPU samples
 *     without any time the unit is samples.
 *  2. Locations are leaf first; a location's lines are innermost first, all but the last inlined
 *     into the next.
 *  3. A frame without a name is "module+0xaddress"; a module is the last component of its mapping's
 *     file, but "[kernel.kallsyms]" is "[kernel]", and a perf map "[jit]", as the store calls them.
 *  4. Labels pid (process_id), tid (thread_id), comm (process_name), thread (thread_name),
 * container and container_id are taken over into leaves, of memory also bytes (the size of one
 * object).
 *  5. Negative values (a difference is no profile), references to what is not there, and a message
 *     that does not end are errors.
 */
#ifndef SONDE_TOOLS_PPROF_READ_H
#define SONDE_TOOLS_PPROF_READ_H

#include <stddef.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

#define PPROF_ITEMS (4u << 20)

/* Not compressed. `name` is for errors (EXIT_USAGE). */
int pprof_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
	       struct fold **out, struct err *e);

#endif
