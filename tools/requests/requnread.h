/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requnread: whose bytes inside TLS were not read, and until when (view request_bytes, where the
 * protocol is tls): a library's probes come when its file has been indexed, and there are libraries
 * that have none.
 */
#ifndef SONDE_TOOLS_REQUNREAD_H
#define SONDE_TOOLS_REQUNREAD_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

struct requnread_row {
	char *comm;  /* "": unknown */
	int64_t pid; /* 0: unknown */
	uint64_t bytes;
	int64_t until_s; /* utc: the last bucket of them */
};
struct requnread {
	struct requnread_row *rows; /* most bytes first */
	size_t n, cap;
};

int requnread_read(const struct selection *sel, struct requnread *out, struct err *e);
void requnread_release(struct requnread *u);
/* One line; nothing where all was read. */
void requnread_print(const struct requnread *u, FILE *out);
/* An array of them. */
json_t *requnread_json(const struct requnread *u, size_t most);

#endif
