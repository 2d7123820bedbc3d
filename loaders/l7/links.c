// SPDX-License-Identifier: Apache-2.0
/* links: see the header. A ring, with a table of the newest by parent; older ones are found from
 * there. */
#include "loaders/l7/links.h"

#include <stdlib.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define PLACES 8192

struct links {
	struct link *ring;       /* LINKS; NULL: there was none yet */
	uint64_t n;              /* so far: the one of number i, from 1, stands at i % LINKS */
	uint64_t newest[PLACES]; /* number, by parent; 0: none */
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

uint64_t link_span(const struct said_who *who, uint64_t tag)
{
	return link_id(hash_u64(hash_u64(hash_u64(HASH_SEED, who->start_ns), who->tgid), tag));
}

static uint32_t place(uint64_t parent)
{
	return (uint32_t)(parent % PLACES);
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
	to->newer_than = l->newest[place(x->parent)];
	l->newest[place(x->parent)] = l->n;
}

int64_t links_since(const struct links *l)
{
	return l->since_ns;
}

/* NULL: it is forgotten, and so are all before it. */
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
		for (uint64_t number = l->newest[place(span)]; (x = at(l, number));
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
