/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter: from readings to rows. A reading has counters as the kernel counts them; the store gets
 * the difference from the previous reading of the same thing, and gauges as they are.
 *
 *   1. The first reading of a thing is where its counters begin: its row has only gauges. A thing
 *      that was created since the previous reading (`young`), or created again (with another
 *      identity), began at 0.
 *   2. A counter that goes backwards was reset: that bucket has no value for it.
 *   3. A thing in which nothing moved (no counter, no gauge) gets a row once every `idle_ns`; 0:
 *      none. A thing in which little moved gets one every `little_ns` (0: each time), with
 *      everything that moved since the previous row. Little is less than METER_LITTLE_US and
 *      METER_LITTLE_BYTES of each counter, and of sizes a thirty-second part and 1 MiB; tallies
 *      alone are little, other counts never.
 *   4. A difference that the store rejected is added to the next one. Do not end a round in which a
 *      source could not be read: the missing things would start again as new.
 */
#ifndef SONDE_BPF_METER_H
#define SONDE_BPF_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/facts/fact.h"

struct family_host;
struct meter_thing;

struct meter {
	const struct fact *fact;
	int64_t idle_ns, little_ns;
	struct meter_thing *things;
	uint64_t round;
	bool begun; /* one round is over */
};

/* Where readings go. h NULL: they only set the beginning. */
struct meter_round {
	struct family_host *h;
	int64_t now_ns, utc_ns; /* of the reading (boot clock), and the time that it stands for */
};

void meter_release(struct meter *m);
/* Fills in the columns that are keys or references: called before each attempt to store the row.
 * false: store nothing. */
typedef bool (*meter_names)(void *ctx, struct fact_row *row);
struct meter_reading {
	const char *key;   /* identifies the thing */
	uint64_t identity; /* changes if the thing is created again */
	bool young;        /* for a new thing: it was created since the last round */
	struct fact_row row;
};
void meter_take(struct meter *m, const struct meter_round *r, const struct meter_reading *x,
		meter_names names, void *ctx);
/* What the next difference of a thing starts from; NULL: it was never read. Borrowed until the next
 * call. */
const struct fact_row *meter_last(const struct meter *m, const char *key, uint64_t identity);
/* Store a row made without a meter. false: the store rejected it. */
bool meter_put(const struct fact *f, const struct meter_round *r, struct fact_row *row,
	       meter_names names, void *ctx);
/* The thing is unchanged, though it was not read. */
void meter_keep(struct meter *m, const char *key);
/* End of a round: forget the things that were not read in it. */
void meter_end(struct meter *m);

#define METER_LITTLE_US    10000
#define METER_LITTLE_BYTES (64u << 10)
enum meter_move { METER_STILL, METER_LITTLE, METER_MOVED };

/* Pure: rules 1 to 3. `last` NULL: first reading; `since`: it began at 0. */
enum meter_move meter_difference(const struct fact *f, const struct fact_row *last, bool since,
				 const struct fact_row *now, struct fact_row *out);

#endif
