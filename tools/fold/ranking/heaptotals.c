/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/heaptotals.h"

#include <stdlib.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

void heaptotals_release(struct heaptotals *t)
{
	free(t->list);
	idmap_release(&t->by_process);
	*t = (struct heaptotals){0};
}

void heaptotals_add(struct heaptotals *t, uint64_t process, uint64_t who, bool began, size_t step,
		    uint64_t bytes)
{
	bool fresh;
	uint64_t *at = idmap_ref(&t->by_process, hash_u64(process, who), &fresh);

	if (fresh) {
		mem_grow(t->list, t->n, t->cap);
		*at = t->n;
		t->list[t->n++] = (struct heaptotal){.who = who, .began = began};
	}
	t->list[*at].at[step] += bytes;
}

static uint64_t first_of(const struct heaptotal *x)
{
	size_t i = 0;

	while (!x->began && i < HEAPSITES_STEPS && !x->at[i])
		i++;
	return x->at[i];
}

uint64_t heaptotals_grown(const struct heaptotals *t, uint64_t who)
{
	uint64_t grown = 0;

	for (size_t i = 0; i < t->n; i++) {
		uint64_t first = first_of(&t->list[i]), last = t->list[i].at[HEAPSITES_STEPS];

		if (t->list[i].who == who && last > first)
			grown += last - first;
	}
	return grown;
}

bool heaptotals_explain(const struct heaptotals *t, uint64_t who, uint64_t grown)
{
	return heaptotals_grown(t, who) >= grown / 2;
}
