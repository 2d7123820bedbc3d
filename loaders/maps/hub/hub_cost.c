/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub_cost: what sonde-maps costs, shared among the clients that book it: each gets the same of
 * what was used since the last telling, so that the sums of all recordings are what was used,
 * however many of them run at once.
 */
#include "loaders/maps/hub/hub_parts.h"

/* One client's part of what `whole` has more than `*shared`; all of them together are taken off. (A
 * child that has just ended may be in no account for a moment: then there is less.) */
static uint64_t part_of(uint64_t whole, uint64_t *shared, uint64_t sharers)
{
	uint64_t part = whole > *shared ? (whole - *shared) / sharers : 0;

	*shared += part * sharers;
	return part;
}

static uint64_t sharers_of(const struct hub *h)
{
	uint64_t n = 0;

	for (const struct client *c = h->clients; c; c = c->next)
		n += c->books && !c->dead;
	return n;
}

static void share(struct hub *h, const struct mp_cost *m, uint64_t sharers)
{
	struct mp_cost_share part = {
		.cpu_ns = part_of(m->cpu_ns, &h->shared.cpu_ns, sharers),
		.index_cpu_ns = part_of(m->index_cpu_ns, &h->shared.index_cpu_ns, sharers),
		.bpf_ns = part_of(m->bpf_ns, &h->shared.bpf_ns, sharers),
		.bpf_runs = part_of(m->bpf_runs, &h->shared.bpf_runs, sharers)};

	for (struct client *c = h->clients; c; c = c->next) {
		if (!c->books)
			continue;
		c->share.cpu_ns += part.cpu_ns;
		c->share.index_cpu_ns += part.index_cpu_ns;
		c->share.bpf_ns += part.bpf_ns;
		c->share.bpf_runs += part.bpf_runs;
	}
}

static void print(struct hub *h, const struct mp_cost *m)
{
	struct mapspack_msg msg = {.type = MP_COST};

	msg.m.cost = *m;
	if (h->ops.print)
		h->ops.print(h->ops.ctx, &msg);
}

void hub_emit_cost(struct hub *h, const struct mp_cost *m)
{
	bool tells = h->open && !h->muted; /* else to whoever watches alone */
	uint64_t sharers = sharers_of(h);
	struct strbuf b = STRBUF_INIT;

	hub_flush(h);
	if (sharers)
		share(h, m, sharers);
	if (tells)
		print(h, m);
	for (struct client *c = h->clients; c; c = c->next) {
		struct mp_cost own = *m;

		if (!c->watches && !(tells && c->seeded))
			continue;
		own.share = c->share;
		own.sharers = sharers;
		mapspack_add(&b, MP_COST, &own, NULL);
		hub_client_send(c, b.buf, b.len, NULL, 0, false);
		strbuf_reset(&b);
	}
	strbuf_release(&b);
}
