/* SPDX-License-Identifier: Apache-2.0 */
/* A ring, and a table of the newest link in each slot of parents; older ones are chained from there
 * by their numbers. */
#include "loaders/l7/links.h"

#include <stdlib.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define SLOTS 8192

struct links {
	struct link *ring;      /* LINKS; NULL: none was put yet */
	uint64_t n;             /* put so far; number i, from 1, is at i % LINKS */
	uint64_t newest[SLOTS]; /* number, by slot; 0: none */
	int64_t since_ns;
};

struct links *links_new(void)
{
	return mem_alloc(sizeof(struct links));
}

void link_release(struct link *x)
{
	free(x->service);
	free(x->trace);
}

void links_free(struct links *l)
{
	for (uint32_t i = 0; l && l->ring && i < LINKS; i++)
		link_release(&l->ring[i]);
	if (l)
		free(l->ring);
	free(l);
}

uint64_t link_id(uint64_t hash)
{
	hash &= (1ull << LINK_BITS) - 1;
	return hash ? hash : 1;
}

uint64_t link_span(const struct msg_process *p, uint64_t tag)
{
	return link_id(hash_u64(hash_u64(hash_u64(HASH_SEED, p->start_ns), p->tgid), tag));
}

static uint32_t slot(uint64_t parent)
{
	return (uint32_t)(parent % SLOTS);
}

static void copy(struct link *to, const struct link *x)
{
	*to = *x;
	to->service = mem_strdup(x->service);
	to->trace = x->trace ? mem_strdup(x->trace) : NULL;
}

void links_put(struct links *l, const struct link *x)
{
	struct link *to;

	if (!l->ring)
		l->ring = mem_array(LINKS, sizeof(*l->ring));
	l->n++;
	to = &l->ring[l->n % LINKS];
	if (l->n > LINKS)
		l->since_ns = to->end_ns > l->since_ns ? to->end_ns : l->since_ns;
	link_release(to);
	copy(to, x);
	to->newer_than = l->newest[slot(x->parent)];
	l->newest[slot(x->parent)] = l->n;
}

int64_t links_since(const struct links *l)
{
	return l->since_ns;
}

/* NULL: it was overwritten, and so were all before it. */
static const struct link *at(const struct links *l, uint64_t number)
{
	return number && number + LINKS > l->n ? &l->ring[number % LINKS] : NULL;
}

struct link *links_kin(const struct links *l, uint64_t span, uint32_t *n, bool *cut)
{
	struct link *out = NULL;
	const struct link *x;
	uint32_t done = 0;

	*n = 0;
	*cut = false;
	for (;;) {
		for (uint64_t number = l->newest[slot(span)]; (x = at(l, number));
		     number = x->newer_than) {
			if (x->parent != span)
				continue;
			if (*n == LINKS_KIN) {
				*cut = true;
				return out;
			}
			if (!out)
				out = mem_array(LINKS_KIN, sizeof(*out));
			copy(&out[(*n)++], x);
		}
		if (done == *n)
			return out;
		span = out[done++].span;
	}
}
