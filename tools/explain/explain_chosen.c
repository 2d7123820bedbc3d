/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/explain_chosen.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

uint64_t explain_chosen_key(uint32_t pid, int64_t total_us)
{
	return hash_u64(hash_u64(HASH_SEED, pid), (uint64_t)total_us);
}

/* ---- candidates ---- */

struct choosing {
	struct explain_chosen *out;
	const char *request;
	int64_t slower_us, most_us;
	uint32_t *service; /* by node: index in services; TRACE_NONE: it is no candidate */
};

static const struct trace_row *row_of(const struct traces *t, uint32_t node, bool server)
{
	uint32_t row = server ? t->nodes[node].answered : t->nodes[node].asked;

	return row == TRACE_NONE ? NULL : &t->rows[row];
}

static bool is_meant(const struct choosing *c, const struct trace_row *r)
{
	return r && r->wanted && reqtags_meant(c->request, r->operation) && r->total_us >= 0 &&
	       r->total_us > c->slower_us && (c->most_us < 0 || r->total_us <= c->most_us);
}

static uint32_t service_of(struct explain_chosen *out, const struct trace_row *r)
{
	for (uint32_t i = 0; i < out->n_services; i++)
		if (!strcmp(out->services[i].comm, r->comm) &&
		    !strcmp(out->services[i].container, r->container))
			return i;
	mem_grow(out->services, out->n_services, out->cap_services);
	out->services[out->n_services] = (struct explain_service){
		.container = mem_strdup(r->container), .comm = mem_strdup(r->comm)};
	return (uint32_t)out->n_services++;
}

/* Below another one of the same service: a part of it. */
static bool is_part(const struct choosing *c, uint32_t node)
{
	const struct traces *t = &c->out->traces;
	uint32_t steps = 0;

	for (uint32_t up = t->nodes[node].parent; up != TRACE_NONE && steps++ < 64;
	     up = t->nodes[up].parent)
		if (c->service[up] == c->service[node])
			return true;
	return false;
}

static void candidates_find(struct choosing *c, bool server)
{
	const struct traces *t = &c->out->traces;

	for (uint32_t i = 0; i < t->n_nodes; i++) {
		const struct trace_row *r = row_of(t, i, server);

		c->service[i] = is_meant(c, r) ? service_of(c->out, r) : TRACE_NONE;
	}
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct explain_service *s;

		if (c->service[i] == TRACE_NONE || is_part(c, i))
			continue;
		s = &c->out->services[c->service[i]];
		s->n++;
		s->took_ns += (uint64_t)row_of(t, i, server)->total_us * 1000;
	}
	c->out->server = server;
}

/* ---- the chosen ---- */

static uint64_t mean_ns(const struct explain_service *s)
{
	return s->n ? s->took_ns / s->n : UINT64_MAX;
}

static uint32_t shortest(const struct explain_chosen *out)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < out->n_services; i++)
		if (mean_ns(&out->services[i]) < mean_ns(&out->services[best]))
			best = i;
	return best;
}

static void take(struct explain_chosen *out, uint32_t node)
{
	const struct trace_row *r = row_of(&out->traces, node, out->server);
	bool fresh;

	out->nodes[out->n++] = node;
	out->took_ns += (uint64_t)r->total_us * 1000;
	if (!out->server)
		return;
	*idmap_ref(&out->pids, (uint64_t)r->pid, &fresh) = 1;
	if (r->first_us >= 0 && r->first_us < r->total_us)
		idmap_set(&out->answering, explain_chosen_key((uint32_t)r->pid, r->total_us),
			  (uint64_t)(r->total_us - r->first_us) * 1000);
}

static void choose(struct choosing *c)
{
	struct explain_chosen *out = c->out;
	uint32_t best = shortest(out);
	struct explain_service first;

	out->nodes = mem_array(out->traces.n_nodes + 1, sizeof(*out->nodes));
	for (uint32_t i = 0; i < out->traces.n_nodes; i++)
		if (out->n_services && c->service[i] == best && !is_part(c, i))
			take(out, i);
	if (!best)
		return;
	first = out->services[0];
	out->services[0] = out->services[best];
	out->services[best] = first;
}

int explain_chosen(const struct selection *sel, const char *request, int64_t slower_us,
		   int64_t most_us, struct explain_chosen *out, struct err *e)
{
	struct choosing c = {
		.out = out, .request = request, .slower_us = slower_us, .most_us = most_us};
	int rc;

	*out = (struct explain_chosen){0};
	rc = traces_read(sel, &out->traces, e);
	if (rc)
		return rc;
	c.service = mem_array(out->traces.n_nodes + 1, sizeof(*c.service));
	candidates_find(&c, true);
	if (!out->n_services)
		candidates_find(&c, false);
	choose(&c);
	free(c.service);
	return 0;
}

void explain_chosen_release(struct explain_chosen *c)
{
	for (size_t i = 0; i < c->n_services; i++) {
		free(c->services[i].container);
		free(c->services[i].comm);
	}
	free(c->services);
	free(c->nodes);
	idmap_release(&c->pids);
	idmap_release(&c->answering);
	traces_release(&c->traces);
	*c = (struct explain_chosen){0};
}
