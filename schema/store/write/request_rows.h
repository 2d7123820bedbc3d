/* SPDX-License-Identifier: Apache-2.0 */
/* request_rows: the request rows of a batch, in their order of arrival. */
#ifndef SONDE_STORE_WRITE_REQUEST_ROWS_H
#define SONDE_STORE_WRITE_REQUEST_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define REQUEST_ROW_NUMBERS 5

struct request_row {
	int64_t ts;                          /* start of the bucket, seconds since 1970 */
	uint32_t run, process;               /* process: DICT_PROCESS, 0 none */
	uint32_t text[4];                    /* protocol, service, operation, status: DICT_TEXT */
	uint8_t side, result, part;          /* enum store_part */
	uint64_t value[REQUEST_ROW_NUMBERS]; /* n and the other numbers, in the table's order */
	uint32_t *steps;                     /* n_steps of them, its own; NULL: none */
	size_t n_steps;
	unsigned first_step;
};

struct request_rows {
	struct request_row *rows;
	uint32_t n, cap;
	size_t step_bytes;
};

void request_rows_release(struct request_rows *r);
size_t request_rows_bytes(const struct request_rows *r);
/* Copies the row and its steps. */
void request_rows_add(struct request_rows *r, const struct request_row *row);
/* Requests of one run; 0: of all. */
uint64_t request_rows_events(const struct request_rows *r, uint32_t run);

#endif
