/* SPDX-License-Identifier: Apache-2.0 */
/* cursor: how far a target is: a file for each target and store, replaced whole. */
#ifndef SONDE_PUSH_CURSOR_H
#define SONDE_PUSH_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"

struct cursor_state {
	int64_t sent_ts;   /* everything before it was accepted by the receiver; 0: nothing yet */
	int64_t trying_ts; /* where the range that begins there ends, once it was tried; 0: it was
			      not, or it is a whole one */
	uint64_t rows, missed_s; /* sent; removed from the store before they were sent */
	uint64_t refused;        /* rows that the receiver refused for good */
	bool fresh;              /* where it begins is not in the file yet; not in it either */
};

/* A missing or foreign file reads as an empty one. */
int push_cursor_read(const char *dir, const char *store, const char *target,
		     struct cursor_state *out, struct err *e);
int push_cursor_write(const char *dir, const char *store, const char *target,
		      const struct cursor_state *c, struct err *e);

#endif
