/* SPDX-License-Identifier: Apache-2.0 */
/* batch: what is committed at once: sums by (bucket, series), losses and costs, and the dictionary
 * they speak of. */
#ifndef SONDE_STORE_WRITE_BATCH_H
#define SONDE_STORE_WRITE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/store/write/amounts.h"
#include "schema/store/write/dict.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/request_rows.h"
#include "schema/store/write/wait_rows.h"
#include "schema/store/write/writer.h"

struct batch_row {
	int64_t ts; /* start of the bucket, seconds since 1970 */
	uint64_t n;
	uint32_t series; /* DICT_SERIES */
	uint32_t run;
};

struct batch_loss {
	int64_t ts;
	uint64_t n;
	uint32_t run;
	bool carried; /* of a dropped batch */
	char reason[35];
};

struct batch_cost {
	int64_t ts;
	uint32_t run;
	bool carried;
	char program[51];
	struct store_cost cost; /* its `program` is not used */
};

struct batch_unwound {
	int64_t ts; /* start of the minute, seconds since 1970 */
	uint64_t n;
	uint32_t run, exe, image, reason; /* exe: DICT_TEXT, image: DICT_IMAGE */
};

struct batch_end {
	int64_t ts; /* start of the ten seconds, seconds since 1970 */
	uint64_t n;
	uint32_t run, comm, container, how, status; /* comm: DICT_TEXT, container: DICT_CONTAINER */
};

struct batch_rate {
	int64_t ts;
	uint64_t bytes;
	uint32_t run, process; /* DICT_PROCESS */
};

struct batch_note {
	uint32_t run, process, value; /* DICT_PROCESS, DICT_TEXT */
	char key[32];
};

struct batch {
	struct batch *next;
	struct batch *fine; /* what goes into the ring, too (commit/fine.h); NULL: nothing */
	struct dict *dict;  /* a reference; its `fine` borrows it */
	struct batch_row *rows;
	uint32_t n_rows, cap_rows;
	uint32_t *slots; /* rows by (ts, series): index + 1 */
	uint32_t n_slots;
	struct amounts amounts;
	struct wait_rows waits;
	struct request_rows requests;
	struct factrows facts;
	struct batch_rate *rates;
	uint32_t n_rates, cap_rates;
	struct batch_note *notes;
	uint32_t n_notes, cap_notes;
	struct batch_loss *losses;
	uint32_t n_losses, cap_losses;
	struct batch_cost *costs;
	uint32_t n_costs, cap_costs;
	struct batch_unwound *unwound;
	uint32_t n_unwound, cap_unwound;
	struct idmap unwound_at; /* hash -> index in `unwound` */
	struct batch_end *ends;
	uint32_t n_ends, cap_ends;
	struct idmap ends_at; /* hash -> index in `ends` */
	uint32_t *
		ended; /* DICT_PROCESS: those that are written though nothing was counted of them */
	uint32_t n_ended, cap_ended;
	struct batch_spared { /* samples that only the ring gets: the others count for them */
		uint32_t run;
		uint64_t n;
	} * spared;
	uint32_t n_spared, cap_spared;
	int64_t *until; /* of a `fine`: run i + 1 has been handed over up to then, UTC */
	uint32_t n_until;
	int64_t begun_ns; /* boot clock */
};

#define BATCH_ENDS_NAMED                                                 \
	256 /* ends that keep their command name; of more, all have none \
	     */

struct batch *batch_new(struct dict *dict); /* takes over the reference */
void batch_free(struct batch *b);           /* not the dictionary */
size_t batch_bytes(const struct batch *b);
void batch_add(struct batch *b, uint32_t run, int64_t ts, uint32_t series, uint64_t n);
void batch_spare(struct batch *b, uint32_t run, uint64_t n);
void batch_rate(struct batch *b, const struct batch_rate *r);
void batch_note(struct batch *b, const struct batch_note *n);
void batch_loss(struct batch *b, uint32_t run, int64_t ts, const char *reason, uint64_t n);
void batch_cost(struct batch *b, uint32_t run, int64_t ts, const struct store_cost *c);
void batch_unwound(struct batch *b, const struct batch_unwound *u);
void batch_end(struct batch *b, const struct batch_end *e);
void batch_ended(struct batch *b, uint32_t process);
/* The bucket of its first event of that run; there is one. */
int64_t batch_first_ts(const struct batch *b, uint32_t run);
/* Rows of samples, amounts, waits, requests and facts. */
uint32_t batch_count(const struct batch *b);
/* Events of one run (0: of all) in it: samples, those that were spared too, amounts, waits,
 * requests and facts; and losses too.
 */
uint64_t batch_samples(const struct batch *b, uint32_t run);
uint64_t batch_events(const struct batch *b, uint32_t run);
/* Has it anything of this run, also what is no event? */
bool batch_has(const struct batch *b, uint32_t run);
/* `from` is about to be dropped: its losses and costs, summed by name, go into `to`; how stacks
 * ended goes with its samples. */
void batch_carry(struct batch *to, const struct batch *from);
/* How stacks ended in the latest minute of `from` goes into `to`, of the same dictionary: more of
 * it is to come. */
void batch_hold_minute(struct batch *to, struct batch *from);

#endif
