/* SPDX-License-Identifier: Apache-2.0 */
/* waitcells: how the verbs about waiting print: durations, options in common, JSON keys. */
#ifndef SONDE_TOOLS_WAITCELLS_H
#define SONDE_TOOLS_WAITCELLS_H

#include <jansson.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/table.h"
#include "tools/waitsum.h"

/* "1.24 s", "38.0 ms", "7 us"; "-" for 0 where that means not known (`known` false). */
void waitcell_duration(struct table *t, uint64_t ns, bool known);
void waitcell_percent(struct table *t, uint64_t part, uint64_t whole);
/* "process" (also NULL), "thread", "command", "container"; EXIT_USAGE with the list. */
int waitcell_by(const char *word, enum waitsum_by *by, struct err *e);
/* null for "" and NULL. */
json_t *waitcell_text(const char *s);
json_t *waitcell_number(uint64_t v, bool known);

#endif
