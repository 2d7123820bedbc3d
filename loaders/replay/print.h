/* SPDX-License-Identifier: Apache-2.0 */
/* print: what `sonde replay` shows: a table, JSON, or a line for each request. */
#ifndef SONDE_REPLAY_PRINT_H
#define SONDE_REPLAY_PRINT_H

#include <stdio.h>

#include "loaders/replay/flows.h"
#include "loaders/replay/tally.h"

/* "127.0.0.1:6379", "[::1]:80". */
void print_service(const struct flow_ends *ends, char out[TALLY_SERVICE_MAX]);
void print_client(const struct flow_ends *ends, char out[TALLY_SERVICE_MAX]);
/* `most` rows; 0: all. */
void print_table(FILE *f, struct tally_row **rows, size_t n, size_t most);
void print_json(FILE *f, struct tally_row **rows, size_t n, const struct flows_stat *stat);
/* What was not seen, in words; nothing if there is nothing to say. */
void print_loss(FILE *f, const struct flows_stat *stat, uint64_t blind);
void print_request(FILE *f, const struct proto_request *r, const struct flow_ends *ends, bool json);

#endif
