/* SPDX-License-Identifier: Apache-2.0 */
/* requestrows: what a batch has of store/write/requests.h, as it came. */
#ifndef SONDE_STORE_WRITE_REQUEST_ROWS_H
#define SONDE_STORE_WRITE_REQUEST_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define REQUESTROW_NUMBERS 5

struct requestrow {
	int64_t ts;          /* start of the bucket, seconds since 1970 */
	uint32_t run, process; /* process: DICT_PROCESS, 0 none */
	uint32_t text[4];    /* protocol, service, operation, status: DICT_TEXT */
	uint8_t side, result;
	uint64_t value[REQUESTROW_NUMBERS]; /* n and the other numbers, in the table's order */
	uint32_t *steps;     /* n_steps of them, its own; NULL: none */
	size_t n_steps;
};

struct requestrows {
	struct requestrow *rows;
	uint32_t n, cap;
	size_t step_bytes;
};

void requestrows_release(struct requestrows *r);
size_t requestrows_bytes(const struct requestrows *r);
/* Copies the row and its steps. */
void requestrows_add(struct requestrows *r, const struct requestrow *row);
/* Requests of one run; 0: of all. */
uint64_t requestrows_events(const struct requestrows *r, uint32_t run);

#endif
