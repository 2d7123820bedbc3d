/* SPDX-License-Identifier: Apache-2.0 */
/* segcount: counts what one segment holds, so that its removal can be recorded. Only reads. */
#ifndef SONDE_STORE_RETENTION_SEGCOUNT_H
#define SONDE_STORE_RETENTION_SEGCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define SEGCOUNT_FAMILIES 16

struct segcount_family {
	char name[24];
	uint64_t rows;   /* of sample, amount, wait_row and the facts */
	uint64_t events; /* the sum of their n */
	uint64_t lost;   /* booked in loss_row */
};

struct segcount {
	struct segcount_family family[SEGCOUNT_FAMILIES]; /* the last, "": all others */
	uint32_t n;
	int64_t from_ns, to_ns; /* UTC: what its rows span; 0: it has none */
};

/* -EBADMSG: damaged. */
int segcount_read(const char *path, struct segcount *out, struct err *e);
/* Adds by name; `into` holds SEGCOUNT_FAMILIES. */
void segcount_add(struct segcount_family *into, uint32_t *n, const struct segcount_family *f);

#endif
