/* SPDX-License-Identifier: Apache-2.0 */
/* waitcells: how the verbs about waiting print: durations, options in common, JSON keys. */
#ifndef SONDE_TOOLS_WAITCELLS_H
#define SONDE_TOOLS_WAITCELLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/cli/verb.h"
#include "tools/print/table.h"
#include "tools/waits/waitsum.h"

struct row; /* tools/print/row.h */

/* A duration; "-" where it is not known. */
void waitcell_duration(struct table *t, uint64_t ns, bool known);
/* A container's id, also as a part of a cgroup's path, by its first 12 digits, as engines show it;
 * all else as it is. */
void waitcell_addname(struct strbuf *out, const char *name);
/* "-" for NULL and "". */
void waitcell_name(struct table *t, const char *name);
/* "812", "3 400 procs" of several, "-" of none. The second as a cell. */
const char *waitcell_pid_text(uint32_t pid, size_t n_processes, char *buf, size_t size);
void waitcell_pid(struct table *t, uint32_t pid, size_t n_processes);
void waitcell_percent(struct table *t, uint64_t part, uint64_t whole);
/* "process" (also NULL), "thread", "command", "container"; else EXIT_USAGE with the list. */
int waitcell_by(const char *word, enum waitsum_by *by, struct err *e);
/* The sentence above (unless --quiet), and the table without columns that say nothing. */
void waitcell_print(struct table *t, const struct strbuf *brief, const struct verb_call *call);
/* Did a timer end more than half of it? */
bool waitcell_is_timed(const struct waitsum_row *r);
/* A row of `sonde waits`. */
void waitcell_row(struct row *o, const struct waitsum_row *r);
/* Those that a quota held back: an array. */
json_t *waitcell_held(const struct waitheld *h);

#endif
