/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named_share: table run_named of an archive: how many samples each run has in its last hour, and
 * of how many the innermost frame has a function. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKED_NAMED_SHARE_H
#define SONDE_STORE_PACKED_NAMED_SHARE_H

struct sqlite3;

/* Of a file whose tables are rows. A run without samples then has no row; of a file with ids that
 * no writer of ours gave, none has. SQLite's code. */
int named_share_make(struct sqlite3 *db);

#endif
