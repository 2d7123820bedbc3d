/* SPDX-License-Identifier: Apache-2.0 */
/* batch: sums in memory. The rows' table is open addressing, at most 3/4 full. */
#include "schema/store/write/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

struct batch *batch_new(struct dict *dict)
{
	struct batch *b = mem_alloc(sizeof(*b));

	b->dict = dict;
	b->begun_ns = clock_boot_ns();
	return b;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	free(b->rows);
	free(b->slots);
	amounts_release(&b->amounts);
	wait_rows_release(&b->waits);
	request_rows_release(&b->requests);
	factrows_release(&b->facts);
	free(b->rates);
	free(b->notes);
	free(b->losses);
	free(b->costs);
	free(b->unwound);
	idmap_release(&b->unwound_at);
	free(b->ends);
	idmap_release(&b->ends_at);
	free(b->ended);
	free(b->spared);
	free(b->until);
	batch_free(b->fine);
	free(b);
}

size_t batch_bytes(const struct batch *b)
{
	return sizeof(*b) + (b->fine ? batch_bytes(b->fine) : 0) + b->cap_rows * sizeof(*b->rows) +
	       b->n_slots * sizeof(*b->slots) + amounts_bytes(&b->amounts) +
	       wait_rows_bytes(&b->waits) + request_rows_bytes(&b->requests) +
	       factrows_bytes(&b->facts) + b->cap_rates * sizeof(*b->rates) +
	       b->cap_notes * sizeof(*b->notes) + b->cap_losses * sizeof(*b->losses) +
	       b->cap_costs * sizeof(*b->costs) + b->cap_unwound * sizeof(*b->unwound) +
	       b->unwound_at.cap * sizeof(*b->unwound_at.slots) + b->cap_ends * sizeof(*b->ends) +
	       b->ends_at.cap * sizeof(*b->ends_at.slots) + b->cap_ended * sizeof(*b->ended);
}

static uint32_t *batch_slot(const struct batch *b, int64_t ts, uint32_t series)
{
	uint32_t i = (uint32_t)hash_u64((uint64_t)ts, series) & (b->n_slots - 1);

	for (; b->slots[i]; i = (i + 1) & (b->n_slots - 1)) {
		const struct batch_row *r = &b->rows[b->slots[i] - 1];

		if (r->ts == ts && r->series == series)
			break;
	}
	return &b->slots[i];
}

static void batch_grow(struct batch *b)
{
	free(b->slots);
	b->n_slots = b->n_slots ? b->n_slots * 2 : 256;
	b->slots = mem_array(b->n_slots, sizeof(*b->slots));
	for (uint32_t i = 0; i < b->n_rows; i++)
		*batch_slot(b, b->rows[i].ts, b->rows[i].series) = i + 1;
}

void batch_add(struct batch *b, uint32_t run, int64_t ts, uint32_t series, uint64_t n)
{
	uint32_t *slot;

	if ((b->n_rows + 1) * 4 > b->n_slots * 3)
		batch_grow(b);
	slot = batch_slot(b, ts, series);
	if (*slot) {
		b->rows[*slot - 1].n += n;
		return;
	}
	mem_grow(b->rows, b->n_rows, b->cap_rows);
	b->rows[b->n_rows++] = (struct batch_row){.ts = ts, .n = n, .series = series, .run = run};
	*slot = b->n_rows;
}

void batch_rate(struct batch *b, const struct batch_rate *r)
{
	mem_grow(b->rates, b->n_rates, b->cap_rates);
	b->rates[b->n_rates++] = *r;
}

void batch_note(struct batch *b, const struct batch_note *n)
{
	mem_grow(b->notes, b->n_notes, b->cap_notes);
	b->notes[b->n_notes++] = *n;
}

void batch_loss(struct batch *b, uint32_t run, int64_t ts, const char *reason, uint64_t n)
{
	struct batch_loss *l;

	for (uint32_t i = 0; i < b->n_losses; i++) {
		l = &b->losses[i];
		if (l->run == run && l->ts == ts && !strcmp(l->reason, reason)) {
			l->n += n;
			return;
		}
	}
	mem_grow(b->losses, b->n_losses, b->cap_losses);
	l = &b->losses[b->n_losses++];
	*l = (struct batch_loss){.ts = ts, .n = n, .run = run};
	snprintf(l->reason, sizeof(l->reason), "%s", reason);
}

void batch_cost(struct batch *b, uint32_t run, int64_t ts, const struct store_cost *c)
{
	struct batch_cost *x;

	mem_grow(b->costs, b->n_costs, b->cap_costs);
	x = &b->costs[b->n_costs++];
	*x = (struct batch_cost){.ts = ts, .run = run, .cost = *c};
	x->cost.program = NULL;
	snprintf(x->program, sizeof(x->program), "%s", c->program);
}

static bool same_unwound(const struct batch_unwound *a, const struct batch_unwound *b)
{
	return a->ts == b->ts && a->run == b->run && a->exe == b->exe && a->image == b->image &&
	       a->reason == b->reason;
}

void batch_unwound(struct batch *b, const struct batch_unwound *u)
{
	uint64_t key = hash_u64(hash_u64((uint64_t)u->ts, (uint64_t)u->run << 8 | u->reason),
				(uint64_t)u->exe << 32 | u->image),
		 at;

	if (idmap_get(&b->unwound_at, key, &at) && same_unwound(&b->unwound[at], u)) {
		b->unwound[at].n += u->n;
		return;
	}
	mem_grow(b->unwound, b->n_unwound, b->cap_unwound);
	b->unwound[b->n_unwound] = *u;
	idmap_set(&b->unwound_at, key, b->n_unwound++);
}

static int64_t latest_minute(const struct batch *b)
{
	int64_t ts = INT64_MIN;

	for (uint32_t i = 0; i < b->n_unwound; i++)
		ts = b->unwound[i].ts > ts ? b->unwound[i].ts : ts;
	return ts;
}

void batch_hold_minute(struct batch *to, struct batch *from)
{
	int64_t ts = latest_minute(from);
	uint32_t n = from->n_unwound;

	idmap_clear(&from->unwound_at);
	from->n_unwound = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct batch_unwound u = from->unwound[i];

		batch_unwound(u.ts == ts ? to : from, &u); /* writes no further than it has read */
	}
}

static bool same_end(const struct batch_end *a, const struct batch_end *b)
{
	return a->ts == b->ts && a->run == b->run && a->comm == b->comm &&
	       a->container == b->container && a->how == b->how && a->status == b->status;
}

void batch_end(struct batch *b, const struct batch_end *e)
{
	struct batch_end x = *e;
	uint64_t key, at;

	if (b->n_ends >= BATCH_ENDS_NAMED)
		x.comm = 0;
	key = hash_u64(hash_u64(hash_u64((uint64_t)x.ts, (uint64_t)x.run << 8 | x.how),
				(uint64_t)x.comm << 32 | x.container),
		       x.status);
	if (idmap_get(&b->ends_at, key, &at) && same_end(&b->ends[at], &x)) {
		b->ends[at].n += x.n;
		return;
	}
	mem_grow(b->ends, b->n_ends, b->cap_ends);
	b->ends[b->n_ends] = x;
	idmap_set(&b->ends_at, key, b->n_ends++);
}

void batch_ended(struct batch *b, uint32_t process)
{
	mem_grow(b->ended, b->n_ended, b->cap_ended);
	b->ended[b->n_ended++] = process;
}

int64_t batch_first_ts(const struct batch *b, uint32_t run)
{
	for (uint32_t i = 0; i < b->n_rows; i++)
		if (b->rows[i].run == run)
			return b->rows[i].ts;
	for (uint32_t i = 0; i < b->amounts.n; i++)
		if (b->amounts.rows[i].run == run)
			return b->amounts.rows[i].ts;
	for (uint32_t i = 0; i < b->waits.n; i++)
		if (b->waits.rows[i].run == run)
			return b->waits.rows[i].ts;
	for (uint32_t i = 0; i < b->requests.n; i++)
		if (b->requests.rows[i].run == run)
			return b->requests.rows[i].ts;
	for (uint32_t i = 0; i < b->facts.n; i++)
		if (b->facts.rows[i].run == run)
			return b->facts.rows[i].ts;
	return 0;
}

uint32_t batch_count(const struct batch *b)
{
	return b->n_rows + b->amounts.n + b->waits.n + b->requests.n + b->facts.n;
}

void batch_spare(struct batch *b, uint32_t run, uint64_t n)
{
	uint32_t i = 0;

	while (i < b->n_spared && b->spared[i].run != run)
		i++;
	if (i == b->n_spared) {
		mem_grow(b->spared, b->n_spared, b->cap_spared);
		b->spared[b->n_spared++] = (struct batch_spared){.run = run};
	}
	b->spared[i].n += n;
}

uint64_t batch_samples(const struct batch *b, uint32_t run)
{
	uint64_t n = amounts_events(&b->amounts, run) + wait_rows_events(&b->waits, run) +
		     request_rows_events(&b->requests, run) + factrows_events(&b->facts, run);

	for (uint32_t i = 0; i < b->n_rows; i++)
		n += !run || b->rows[i].run == run ? b->rows[i].n : 0;
	for (uint32_t i = 0; i < b->n_spared; i++)
		n += !run || b->spared[i].run == run ? b->spared[i].n : 0;
	return n;
}

uint64_t batch_events(const struct batch *b, uint32_t run)
{
	uint64_t n = batch_samples(b, run);

	for (uint32_t i = 0; i < b->n_losses; i++)
		n += b->losses[i].run == run ? b->losses[i].n : 0;
	return n;
}

bool batch_has(const struct batch *b, uint32_t run)
{
	bool has = batch_events(b, run);

	for (uint32_t i = 0; !has && i < b->facts.n; i++)
		has = b->facts.rows[i].run == run;
	return has;
}

static void batch_carry_loss(struct batch *to, const struct batch_loss *l)
{
	for (uint32_t i = 0; i < to->n_losses; i++) {
		struct batch_loss *x = &to->losses[i];

		if (x->carried && x->run == l->run && !strcmp(x->reason, l->reason)) {
			x->n += l->n;
			return;
		}
	}
	mem_grow(to->losses, to->n_losses, to->cap_losses);
	to->losses[to->n_losses] = *l;
	to->losses[to->n_losses++].carried = true;
}

static void batch_carry_cost(struct batch *to, const struct batch_cost *c)
{
	for (uint32_t i = 0; i < to->n_costs; i++) {
		struct batch_cost *x = &to->costs[i];

		if (x->carried && x->run == c->run && !strcmp(x->program, c->program)) {
			x->cost.cpu_ns += c->cost.cpu_ns;
			x->cost.runs += c->cost.runs;
			return;
		}
	}
	mem_grow(to->costs, to->n_costs, to->cap_costs);
	to->costs[to->n_costs] = *c;
	to->costs[to->n_costs++].carried = true;
}

void batch_carry(struct batch *to, const struct batch *from)
{
	for (uint32_t i = 0; i < from->n_losses; i++)
		batch_carry_loss(to, &from->losses[i]);
	for (uint32_t i = 0; i < from->n_costs; i++)
		batch_carry_cost(to, &from->costs[i]);
}
