/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksql: functions for the queries of checks, in addition to SQLite's.
 *
 *   is_stream(protocol, service, operation, status, result, first_us, total_us): 1 if such a
 *     request lasts until its client leaves (tools/requests/reqstream.h), else 0. NULL: not known.
 *   slope(x, y): an aggregate: by how much y grows where x grows by 1, by least squares. NULL where
 *     all x are the same.
 */
#ifndef SONDE_TOOLS_CHECKSQL_H
#define SONDE_TOOLS_CHECKSQL_H

struct sqlite3;

/* SQLite's code. */
int checksql_register(struct sqlite3 *db);

#endif
