/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procs_more: what the processes of a window have in addition to CPU time, as far as it was
 * recorded: a fold for each kind of value that is a duration (waits) or bytes at the window's end
 * (memory).
 */
#ifndef SONDE_TOOLS_PROCS_MORE_H
#define SONDE_TOOLS_PROCS_MORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/kinds.h"
#include "tools/fold/fold.h"
#include "tools/select/select.h"

struct procs_more {
	struct fold *fold[STORE_KINDS]; /* in order of the kinds */
	char title[STORE_KINDS]
		  [16]; /* of columns: "OFFCPU" for what --type and --sort call offcpu */
	size_t n;
};

/* None of them is no error. Release in any case. */
int procs_more_make(struct procs_more *m, const struct selection *sel, struct err *e);
void procs_more_release(struct procs_more *m);
/* Of which of them the key is the name, as in --type: from 0; m->n: of none. */
size_t procs_more_named(const struct procs_more *m, const char *key);
bool procs_more_takes(const struct store_kind_info *kind);
/* The names that such a key may be, whether recorded or not: "offcpu, runqueue, inuse". */
void procs_more_names(struct strbuf *out);
/* As people read it: how many threads at once, or bytes. "-" for 0. A buffer of 32 bytes. */
const char *procs_more_say(const struct fold *f, uint64_t amount, char *buf, size_t size);

#endif
