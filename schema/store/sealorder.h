/* SPDX-License-Identifier: Apache-2.0 */
/* sealorder: packs a day that is being made (packing.h) by the numbers of packorder.h. Not for other rooms. */
#ifndef SONDE_STORE_SEALORDER_H
#define SONDE_STORE_SEALORDER_H

#include <stdint.h>

struct sqlite3;

/* After all else, in the day's transaction. `t0`: the day's. A SQLite code. */
int sealorder_pack(struct sqlite3 *day, int64_t t0);

#endif
