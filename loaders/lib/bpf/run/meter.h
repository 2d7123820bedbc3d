/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter: from readings to rows. A reading has counters as the kernel counts them; what goes to the
 * store is the difference to the reading before of the same thing, and gauges as they are.
 *
 *   1. The first reading of a thing is where its counters begin: its row has gauges alone. One that
 *      came to be since the reading before (`young`), or was made anew (its identity is another),
 *      began at 0.
 *   2. A counter that goes backwards was reset: it is not measured in that bucket.
 *   3. A thing in which nothing moved (no counter, no gauge) has a row once every `idle_ns`; 0: it
 *      has none. One in which little moved has one every `little_ns` (0: each time), with all that
 *      moved since the one before. Little is less than METER_LITTLE_US and METER_LITTLE_BYTES of
 *      each counter, and of sizes a thirty-second part and 1 MiB; tallies alone are little, other
 *      counts never.
 *   4. A difference that the store could not take is part of the next one. A round in which a
 *      source could not be read is not to be ended: what is missing in it would begin anew.
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

/* Where readings go. h NULL: they are only the beginning. */
struct meter_round {
	struct family_host *h;
	int64_t now_ns, utc_ns; /* of the reading (boot clock), and the time that it stands for */
};

void meter_release(struct meter *m);
/* Fills in the columns that are keys or references: called before each attempt to store the row.
 * false: nothing is to be stored. */
typedef bool (*meter_names)(void *ctx, struct fact_row *row);
struct meter_reading {
	const char *key;   /* tells things apart */
	uint64_t identity; /* is it still the same one? */
	bool young;        /* where it is new here: it came to be since the round before */
	struct fact_row row;
};
void meter_take(struct meter *m, const struct meter_round *r, const struct meter_reading *x,
		meter_names names, void *ctx);
/* What the next difference of a thing is to; NULL: it was never read. Borrowed until the next call.
 */
const struct fact_row *meter_last(const struct meter *m, const char *key, uint64_t identity);
/* A row that was made without a meter. false: the store could not take it. */
bool meter_put(const struct fact *f, const struct meter_round *r, struct fact_row *row,
	       meter_names names, void *ctx);
/* It is as it was, without a reading. */
void meter_keep(struct meter *m, const char *key);
/* All things were taken: those that were not are forgotten. */
void meter_end(struct meter *m);

#define METER_LITTLE_US    10000
#define METER_LITTLE_BYTES (64u << 10)
enum meter_move { METER_STILL, METER_LITTLE, METER_MOVED };

/* Pure: rules 1 to 3. `last` NULL: there is none; `since`: it began at 0. */
enum meter_move meter_difference(const struct fact *f, const struct fact_row *last, bool since,
				 const struct fact_row *now, struct fact_row *out);

#endif
