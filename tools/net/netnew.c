/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netnew.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/net/netprint.h"
#include "tools/print/json.h"
#include "tools/print/when.h"

#define KNOWN_SEEN    1
#define KNOWN_TROUBLE 2

/* `to` of that name, `n` bytes. */
static uint64_t edge_hash(const struct netmap *m, const struct netmap_edge *x, const char *to,
			  size_t n)
{
	uint64_t h = hash_str(hash_u64(HASH_SEED, m->nodes[x->from].kind), m->nodes[x->from].name);

	h = hash_bytes(hash_u64(h, m->nodes[x->to].kind), to, n);
	return hash_u64(hash_str(h, x->protocol), (uint64_t)x->port);
}

/* Marks an edge as known, with `more` also its parts: by the name of the server, and where that is
 * an address by each address, since a name may be recorded later. */
static uint64_t edge_bits(const struct netmap *m, const struct netmap_edge *x, struct idmap *known,
			  uint64_t more)
{
	const char *name = m->nodes[x->to].name,
		   *at = m->nodes[x->to].kind == NETMAP_ADDRESS ? x->addresses : NULL;
	bool fresh;
	uint64_t bits = *idmap_ref(known, edge_hash(m, x, name, strlen(name)), &fresh) |= more;

	for (size_t n; at && *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		bits |= *idmap_ref(known, edge_hash(m, x, at, n), &fresh) |= more;
	}
	return bits;
}

/* What was known of it before. */
static uint64_t edge_known(const struct netmap *m, const struct netmap_edge *x, struct idmap *known,
			   uint64_t more)
{
	uint64_t was = edge_bits(m, x, known, 0);

	edge_bits(m, x, known, more);
	return was;
}

/* Something was opened or sent: an edge that was merely open did not begin in the window. */
static bool is_talk(const struct netmap_edge *x)
{
	return x->sums[NET_ATTEMPTS] || x->sums[NET_OPENED] || x->sums[NET_TX] || x->sums[NET_RX];
}

static const struct netmap *sorted; /* qsort has no context */

static int earlier(const void *a, const void *b)
{
	const struct netmap_edge *x = &sorted->edges[*(const size_t *)a],
				 *y = &sorted->edges[*(const size_t *)b];

	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x > y) - (x < y);
}

static void sort(struct netnew *x)
{
	sorted = &x->map;
	if (x->n)
		qsort(x->edges, x->n, sizeof(*x->edges), earlier);
}

static void find_new(const struct netmap *before, struct netnew *out)
{
	struct idmap was = {0};

	for (size_t i = 0; i < before->n_edges; i++)
		edge_known(before, &before->edges[i], &was, KNOWN_SEEN);
	out->edges = mem_array(out->map.n_edges + 1, sizeof(*out->edges));
	for (size_t i = 0; i < out->map.n_edges; i++)
		if (is_talk(&out->map.edges[i]) &&
		    !edge_known(&out->map, &out->map.edges[i], &was, 0))
			out->edges[out->n++] = i;
	sort(out);
	idmap_release(&was);
}

/* `first`: the map with when each edge was first read, for which all rows are read. */
static int map_of(const struct selection *sel, bool first, struct netmap *m, struct err *e)
{
	struct netflows f;
	int rc = (first ? netflows_read_first : netflows_read)(sel, NETFLOWS_BY_PROCESS, &f, e);

	*m = (struct netmap){0};
	if (!rc)
		netmap_of(&f, m);
	netflows_release(&f);
	return rc;
}

int netnew_follow(const struct selection *sel, struct idmap *known, struct netnew *out,
		  struct err *e)
{
	int rc;

	*out = (struct netnew){0};
	rc = map_of(sel, true, &out->map, e);
	out->edges = mem_array(out->map.n_edges + 1, sizeof(*out->edges));
	for (size_t i = 0; !rc && i < out->map.n_edges; i++) {
		const struct netmap_edge *x = &out->map.edges[i];
		uint64_t now =
			KNOWN_SEEN | (netmap_failed(x) + netmap_broken(x) ? KNOWN_TROUBLE : 0);

		if (is_talk(x) && now & ~edge_known(&out->map, x, known, now))
			out->edges[out->n++] = i;
	}
	sort(out);
	return rc;
}

int netnew_read(const struct selection *before, const struct selection *after, struct netnew *out,
		struct err *e)
{
	struct netmap was = {0};
	int rc;

	*out = (struct netnew){0};
	rc = map_of(before, false, &was, e);
	if (!rc && was.known)
		rc = map_of(after, false, &out->map, e);
	if (!rc && was.known && out->map.known)
		find_new(&was, out);
	if (!rc && out->n) { /* few ranges have any; since when they are there say the rows */
		netnew_release(out);
		rc = map_of(after, true, &out->map, e);
		if (!rc)
			find_new(&was, out);
	}
	netmap_release(&was);
	return rc;
}

void netnew_release(struct netnew *x)
{
	netmap_release(&x->map);
	free(x->edges);
	*x = (struct netnew){0};
}

void netnew_say(const struct netnew *x, size_t i, struct strbuf *out)
{
	const struct netmap_edge *edge = &x->map.edges[x->edges[i]];
	const char *from = x->map.nodes[edge->from].name, *to = x->map.nodes[edge->to].name;
	struct strbuf troubles cleanup_strbuf = STRBUF_INIT;
	char n[32];

	strbuf_addshown(out, from, strlen(from));
	strbuf_addstr(out, " to ");
	strbuf_addshown(out, to, strlen(to));
	strbuf_addf(out, ", %s", edge->protocol);
	if (edge->port)
		strbuf_addf(out, " %lld", (long long)edge->port);
	netprint_troubles(&troubles, edge->sums);
	if (edge->sums[NET_OPENED])
		strbuf_addf(out, ": %s opened", units_count(edge->sums[NET_OPENED], n, sizeof(n)));
	if (troubles.len)
		strbuf_addf(out, "%s%s", edge->sums[NET_OPENED] ? ", " : ": ",
			    strbuf_str(&troubles));
}

static int64_t since_ns(const struct netnew *x, size_t i)
{
	return x->map.edges[x->edges[i]].at * NSEC_PER_SEC;
}

json_t *netnew_edge_json(const struct netnew *x, size_t i)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	json_t *o = netprint_edge_json(&x->map, &x->map.edges[x->edges[i]]);

	netnew_say(x, i, &text);
	json_object_set_new(o, "text", json_text(strbuf_str(&text)));
	json_set_time(o, "since", since_ns(x, i));
	return o;
}

json_t *netnew_json(const struct netnew *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n; i++)
		json_array_append_new(list, netnew_edge_json(x, i));
	return list;
}

void netnew_print(const struct netnew *x, FILE *out)
{
	for (size_t i = 0; i < x->n && i < NETNEW_MOST; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT;
		char since[32];

		netnew_say(x, i, &text);
		fprintf(out, "%s   new since %s: %s\n", i ? "" : "new connections:\n",
			when_local(since_ns(x, i), clock_utc_ns(), since, sizeof(since)),
			strbuf_str(&text));
	}
	if (x->n > NETNEW_MOST)
		fprintf(out, "   and %zu more: sonde map\n", x->n - NETNEW_MOST);
}
