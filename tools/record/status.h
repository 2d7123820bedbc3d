/* SPDX-License-Identifier: Apache-2.0 */
/* status: what `sonde status` says of recordings and of the store: status_facts.c reads it,
 * status_print.c prints it. */
#ifndef SONDE_TOOLS_STATUS_H
#define SONDE_TOOLS_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/files/folder.h"
#include "schema/store/read/reader.h"
#include "tools/fold/endings.h"
#include "tools/select/select.h"

struct status_loss {
	char *reason;
	uint64_t n;
	int64_t from_ns, to_ns; /* UTC: when; both 0: not known */
};

/* A program that its family does not record, or whose generated code has no names, and why. */
struct status_refused {
	char *comm, *why;
	int64_t pid;
	bool unnamed;
};

/* What one recording holds, over its segments. */
struct status_facts {
	const struct select_recording *rec; /* borrowed */
	uint64_t samples;
	uint64_t events;           /* of other kinds: their n; of gauges the readings */
	uint64_t looked_at, named; /* lately: samples, those with a named leaf */
	struct store_own_cost own; /* what sonde itself took: schema/store/read/reader.h */
	uint64_t private_bytes, map_bytes;
	struct status_loss *losses;
	size_t n_losses, cap_losses;
	struct status_refused *refused; /* of its newest segment */
	size_t n_refused, cap_refused;
	struct endings endings;
	bool live;
};
struct status_store {
	struct store_segment_info
		*segments; /* open, the first SELECT_OPEN of them: store_segments_close */
	size_t n_segments;
	uint64_t bytes;
	int64_t from_ns, to_ns;
	char (*aside)[SEGMENT_NAME_MAX]; /* damaged files that were set aside; the caller's (free)
					  */
	size_t n_aside;
};
int status_store_fill(struct status_store *s, const char *store, struct err *e);
int status_fill(struct status_facts *f, const struct status_store *store,
		const struct select_recording *rec, struct err *e);
void status_release(struct status_facts *f);

/* The newest recording first. */
void status_print(const char *store, const struct status_store *s, const struct status_facts *f,
		  size_t n);
/* `daemon`: what the sonded that keeps the store says, NULL: none does. */
int status_print_json(const char *store, const struct status_store *s, const struct status_facts *f,
		      size_t n, size_t of, json_t *daemon);

#endif
