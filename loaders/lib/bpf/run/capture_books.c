/* SPDX-License-Identifier: Apache-2.0 */
/* capture_books: what was seen, stored and lost, what that cost, and when it goes to the store. */
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/run/private.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"

/* flush a bucket this long after its end, with what was held back meanwhile */
#define READY_NS (300 * MSEC)
/* A commit takes as much as a hundred samples: a capture that has lasted for a while hands over
 * several short buckets at once. If it is killed, so much more is lost (and counted). */
#define APART_NS     (4000 * MSEC)
#define APART_AGE_NS (10000 * MSEC)

void capture_books_begin(struct capture_books *b)
{
	struct ledger_figures figures;
	struct family_tally t;

	ledger_init(&b->ledger, b->config->f->name, b->config->obj);
	capture_books_tally(b, &t);
	ledger_read(&b->ledger, b->config->maps, &t, &figures);
	ledger_begin(&b->ledger, &figures);
}

static uint64_t slots_p99(const uint64_t slot[FAMILY_TALLY_SLOTS])
{
	uint64_t all = 0, sum = 0;

	for (int i = 0; i < FAMILY_TALLY_SLOTS; i++)
		all += slot[i];
	for (int i = 0; i < FAMILY_TALLY_SLOTS && all; i++) {
		sum += slot[i];
		if (sum * 100 >= all * 99)
			return 2ull << i;
	}
	return 0;
}

void capture_books_tally(struct capture_books *b, struct family_tally *t)
{
	struct programs_figures programs;
	uint64_t runs = 0, missed;

	*t = (struct family_tally){0};
	if (b->config->f->tally)
		b->config->f->tally(b->config->state, t);
	programs_read(b->ledger.obj, &programs);
	missed = programs.missed > t->missed_apart ? programs.missed - t->missed_apart : 0;
	for (int i = 0; i < FAMILY_TALLY_SLOTS; i++)
		runs += t->slot[i];
	b->r->lost[CAPTURE_LOST_RING] = t->lost;
	b->r->lost[CAPTURE_LOST_ROOM] = t->no_room;
	b->r->lost[CAPTURE_LOST_PAIRS] = t->pairs;
	b->r->lost[CAPTURE_LOST_UNKNOWN] = b->host->unknown;
	b->r->lost[CAPTURE_LOST_THROTTLED] = t->throttled;
	b->r->lost[CAPTURE_LOST_MISSED] = missed;
	b->r->seen = t->seen + t->throttled + missed + b->host->added + b->host->refused +
		     b->host->unknown;
	if (t->seen)
		store_run_offered(b->config->store, b->config->run,
				  t->seen + b->host->added + b->host->refused + b->host->unknown);
	b->r->unfollowed = t->unfollowed;
	b->r->run_ns = runs ? t->run_ns / runs : 0;
	b->r->run_p99_ns = slots_p99(t->slot);
}

void capture_books_stored(struct capture_books *b, uint64_t stored)
{
	b->r->stored = stored;
	b->r->lost[CAPTURE_LOST_STORE] = b->refused + (b->added > stored ? b->added - stored : 0);
}

/* Stores the losses since the last call in the current bucket. A count is lower than before where
 * the kernel could not be asked: then nothing is lost. */
static void losses_book(struct capture_books *b)
{
	int64_t now = capture_utc(b->clock, b->until_ns);

	for (int i = 0; i < CAPTURE_LOST_N; i++) {
		if (i == CAPTURE_LOST_STORE || b->r->lost[i] <= b->booked_lost[i])
			continue;
		store_loss(b->config->store, b->config->run, now, capture_loss_names[i],
			   b->r->lost[i] - b->booked_lost[i]);
		b->booked_lost[i] = b->r->lost[i];
	}
	b->r->maps_lost = hostmaps_lost(b->config->maps);
	if (b->r->maps_lost > b->booked_maps_lost) {
		store_loss(b->config->store, b->config->run, now, "maps",
			   b->r->maps_lost - b->booked_maps_lost);
		b->booked_maps_lost = b->r->maps_lost;
	}
}

void capture_books_ledger(struct capture_books *b)
{
	struct family_tally t;
	struct ledger_figures now;

	capture_books_tally(b, &t);
	ledger_read(&b->ledger, b->config->maps, &t, &now);
	ledger_book(&b->ledger, b->config->maps, &now, b->config->store, b->config->run,
		    capture_utc(b->clock, b->until_ns));
	b->booked_ns = clock_boot_ns();
}

void capture_books_flush(struct capture_books *b)
{
	b->handed_ns = clock_boot_ns();
	store_run_until(b->config->store, b->config->run, capture_utc(b->clock, b->until_ns));
	losses_book(b);
	store_flush(b->config->store);
}

/*
 * Early flushes, for a person who watches a capture begin: the first samples go to the store at
 * once, again when their names are known, and then each time the capture has become twice as old.
 */
static bool begins_due(struct capture_books *b, int64_t now)
{
	bool first = !b->first_flushed, named = !b->first_named && !naming_waits(b->config->naming);

	if (!b->added || (!first && now - b->clock->attached_ns > CAPTURE_BEGIN_NS))
		return false;
	b->first_flushed = true;
	b->first_named |= named;
	if (!first && !named &&
	    now - b->clock->attached_ns < 2 * (b->flushed_ns - b->clock->attached_ns))
		return false;
	b->flushed_ns = now;
	return true;
}

static bool is_apart(const struct capture_books *b, int64_t now)
{
	return now - b->clock->attached_ns < APART_AGE_NS || now - b->handed_ns >= APART_NS;
}

/* Later, whole buckets are flushed after they end. */
void capture_books_flush_due(struct capture_books *b)
{
	int64_t bucket = capture_utc(b->clock, b->until_ns - READY_NS) /
			 ((int64_t)b->config->o->options->bucket_s * NSEC_PER_SEC);
	struct family_tally t;
	int64_t now = clock_boot_ns();

	if (begins_due(b, now)) {
		b->flushed_bucket = bucket > b->flushed_bucket ? bucket : b->flushed_bucket;
		capture_books_flush(b);
	} else if (bucket > b->flushed_bucket && is_apart(b, now)) {
		b->flushed_bucket = bucket;
		capture_books_tally(b, &t);
		capture_books_flush(b);
	}
}

double capture_books_self_cores(struct capture_books *b, const struct family_tally *t,
				struct ledger_figures *now)
{
	int64_t wall = clock_boot_ns() - b->clock->attached_ns;

	ledger_read(&b->ledger, b->config->maps, t, now);
	ledger_settle(&b->ledger, now);
	return wall > 0 ? (double)ledger_busy_ns(&b->ledger, now) / (double)wall : 0;
}
