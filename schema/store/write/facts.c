/* SPDX-License-Identifier: Apache-2.0 */
/* facts: the producer's side of store/write/facts.h and the rows that a batch has of it. */
#include "schema/store/write/facts.h"

#include <errno.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/write/writer_state.h"

/* --- rows of a batch --- */

void factrows_release(struct factrows *f)
{
	free(f->rows);
	free(f->values);
	*f = (struct factrows){0};
}

size_t factrows_bytes(const struct factrows *f)
{
	return f->cap * sizeof(*f->rows) + f->cap_values * sizeof(*f->values);
}

uint64_t factrows_events(const struct factrows *f, uint32_t run)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += !f->rows[i].fact->beside && (!run || f->rows[i].run == run);
	return n;
}

static void value_add(struct factrows *f, int64_t value)
{
	mem_grow(f->values, f->n_values, f->cap_values);
	f->values[f->n_values++] = value;
}

/* --- the producer --- */

/* What a batch keeps of a column; false: it cannot be. */
static bool value_of(struct store_writer *w, const struct fact_column *c,
		     const struct fact_row *row, uint32_t i, int64_t *out)
{
	int64_t number = row->v[i].number;

	switch (c->type) {
	case FACT_TEXT:
		*out = writer_text(w, row->v[i].text);
		return true;
	case FACT_PROCESS:
		*out = writer_known(w, DICT_PROCESS, (uint32_t)number);
		return true;
	case FACT_SERIES:
		*out = writer_known(w, DICT_SERIES, (uint32_t)number);
		return true;
	case FACT_CONTAINER:
		*out = writer_known(w, DICT_CONTAINER, (uint32_t)number);
		return true;
	default:
		*out = number;
		return number >= 0 && number <= FACTS_MOST;
	}
}

static bool has_keys(const struct fact *f, const struct fact_row *row)
{
	for (uint32_t i = 0; i < f->n && f->columns[i].role == FACT_KEY; i++)
		if (!fact_has(row, (int)i))
			return false;
	return true;
}

static int fact_add(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct fact *f,
		    const struct fact_row *row, bool fine)
{
	struct factrow r = {.fact = f, .run = writer_stretch(w, run)};
	struct factrows *rows;
	int64_t value;

	if (!r.run || !has_keys(f, row))
		return -EINVAL;
	if (events_room(w))
		return -ESTALE;
	rows = events_facts(w, fine);
	r.first = rows->n_values;
	for (uint32_t i = 0; i < f->n; i++) {
		if (!fact_has(row, (int)i))
			continue;
		if (!value_of(w, &f->columns[i], row, i, &value)) {
			store_loss(w, run, utc_ns, "range", 1);
			continue;
		}
		r.set |= 1ull << i;
		value_add(rows, value);
	}
	events_take_fact(w, &r, utc_ns, fine);
	return 0;
}

int store_fact(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct fact *f,
	       const struct fact_row *row)
{
	return fact_add(w, run, utc_ns, f, row, false);
}

int store_fact_fine(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct fact *f,
		    const struct fact_row *row)
{
	struct writer_run *r = writer_run(w, run);

	return r && r->fine_s ? fact_add(w, run, utc_ns, f, row, true) : -EINVAL;
}

uint32_t facts_index(const struct fact *f)
{
	uint32_t i = 0;

	while (FACTS[i] && FACTS[i] != f)
		i++;
	return i;
}
