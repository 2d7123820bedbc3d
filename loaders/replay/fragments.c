/* SPDX-License-Identifier: Apache-2.0 */
/* fragments: see the header. */
#include "loaders/replay/fragments.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define WAIT_NS   (30ll * 1000000000)
#define SIZE_MOST 65535
#define UDP       17

struct pending {
	struct packet of; /* addresses, protocol, id */
	int64_t begun_ns;
	uint8_t *bytes; /* SIZE_MOST of them; NULL: the place is free */
	struct piece {
		uint32_t from, to;
	} pieces[FRAGMENTS_PIECES];
	uint32_t n, total, have; /* total: 0 until the last one came */
	uint64_t came;
	bool bad;
};

struct fragments {
	struct pending packets[FRAGMENTS_PACKETS];
	uint8_t *given; /* the bytes of what was given last */
	uint32_t n;
};

struct fragments *fragments_new(void)
{
	return mem_alloc(sizeof(struct fragments));
}

void fragments_free(struct fragments *f)
{
	if (!f)
		return;
	for (int i = 0; i < FRAGMENTS_PACKETS; i++)
		free(f->packets[i].bytes);
	free(f->given);
	free(f);
}

static bool same(const struct packet *a, const struct packet *b)
{
	return a->fragment.id == b->fragment.id && a->fragment.protocol == b->fragment.protocol &&
	       a->v6 == b->v6 &&
	       !memcmp(a->from.address, b->from.address, sizeof(a->from.address)) &&
	       !memcmp(a->to.address, b->to.address, sizeof(a->to.address));
}

/* The packet that this one is of; a free place if it is the first. NULL: there is no room. */
static struct pending *find(struct fragments *f, const struct packet *p, int64_t at_ns)
{
	struct pending *free_place = NULL;

	for (int i = 0; i < FRAGMENTS_PACKETS; i++) {
		struct pending *d = &f->packets[i];

		if (d->bytes && same(&d->of, p))
			return d;
		if (!d->bytes && !free_place)
			free_place = d;
	}
	if (free_place) {
		*free_place = (struct pending){
			.of = *p, .begun_ns = at_ns, .bytes = mem_alloc(SIZE_MOST)};
		f->n++;
	}
	return free_place;
}

/* Its bytes stay until the next call. */
static void give(struct fragments *f, struct pending *d)
{
	free(f->given);
	f->given = d->bytes;
	d->bytes = NULL;
	f->n--;
}

static void put(struct pending *d, const struct packet *p)
{
	uint32_t from = p->fragment.offset, to = from + (uint32_t)p->size;

	d->came++;
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->pieces[i].from == from && d->pieces[i].to == to)
			return; /* a repetition */
		d->bad |= from < d->pieces[i].to && to > d->pieces[i].from;
	}
	d->bad |= d->n == FRAGMENTS_PIECES || to > SIZE_MOST || p->len < p->size || !p->size ||
		  (!p->fragment.more && d->total && d->total != to);
	if (to > SIZE_MOST || d->n == FRAGMENTS_PIECES)
		return;
	memcpy(d->bytes + from, p->bytes, p->len);
	d->pieces[d->n++] = (struct piece){from, to};
	d->have += to - from;
	d->total = p->fragment.more ? d->total : to;
}

bool fragments_add(struct fragments *f, const struct packet *p, int64_t at_ns, struct packet *whole)
{
	struct pending *d = find(f, p, at_ns);

	if (!d)
		return false;
	put(d, p);
	if (d->bad || !d->total || d->have != d->total)
		return false;
	give(f, d);
	packet_of_fragments(&d->of, f->given, d->total, d->total, whole);
	return true;
}

/* What is there of it from its beginning on. UDP says itself how much there was. */
static void first_of(const struct pending *d, const uint8_t *bytes, struct packet *out)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (!d->pieces[i].from)
			packet_of_fragments(
				&d->of, bytes, d->pieces[i].to,
				d->of.fragment.protocol == UDP ? SIZE_MOST : d->pieces[i].to, out);
}

bool fragments_give_up(struct fragments *f, int64_t now_ns, bool all, struct packet *first,
		       uint64_t *n)
{
	struct pending *oldest = NULL;

	for (int i = 0; f->n && i < FRAGMENTS_PACKETS; i++) {
		struct pending *d = &f->packets[i];

		if (d->bytes && (!oldest || d->begun_ns < oldest->begun_ns))
			oldest = d;
	}
	if (!oldest || (!all && oldest->begun_ns > now_ns - WAIT_NS && f->n < FRAGMENTS_PACKETS))
		return false;
	*n = oldest->came;
	give(f, oldest);
	memset(first, 0, sizeof(*first));
	if (!oldest->bad)
		first_of(oldest, f->given, first);
	return true;
}
