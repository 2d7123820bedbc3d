/* SPDX-License-Identifier: Apache-2.0 */
/* netasked: see the header. */
#include "tools/net/netasked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define ADDRESS_MAX 128

struct service {
	char address[ADDRESS_MAX]; /* of a Unix socket its path */
	int64_t port;              /* 0: none */
};

/* "127.0.0.1:80", "[::1]:80", "/run/x.sock" */
static struct service service_of(const char *text)
{
	const char *colon = strrchr(text, ':');
	struct service s = {0};
	char *end = NULL;
	long port = colon && *text != '/' && *text != '@' ? strtol(colon + 1, &end, 10) : 0;
	size_t len;

	if (!end || *end || end == colon + 1 || port < 1 || port > 65535)
		port = 0;
	len = port ? (size_t)(colon - text) : strlen(text);
	if (port && len >= 2 && *text == '[') {
		text++;
		len -= 2;
	}
	snprintf(s.address, sizeof(s.address), "%.*s",
		 (int)(len < ADDRESS_MAX ? len : ADDRESS_MAX - 1), text);
	s.port = port;
	return s;
}

static bool is_end(const struct netmap_node *x, const struct reqrows_row *r)
{
	char whole[256];

	/* outside of containers its container is the host */
	if (store_names_hosts() && !strchr(r->container, '/')) {
		snprintf(whole, sizeof(whole), "%s/%s", r->container, r->comm);
		return x->kind == NETMAP_COMMAND && !strcmp(x->name, whole);
	}
	return *r->container ? x->kind == NETMAP_CONTAINER && !strcmp(x->name, r->container) :
			       x->kind == NETMAP_COMMAND && *r->comm && !strcmp(x->name, r->comm);
}

static bool leads_to(const struct netmap_edge *x, const struct service *s)
{
	return s->port ? x->port == s->port :
			 !x->port && x->addresses && netflows_has_line(x->addresses, s->address);
}

/* The client's: one edge to that port is it; of several the one that goes to the address. SIZE_MAX:
 * it is not known which. */
static size_t edge_of_client(const struct netmap *m, const struct reqrows_row *r,
			     const struct service *s)
{
	size_t found = SIZE_MAX, there = SIZE_MAX, n = 0, n_there = 0;

	for (size_t i = 0; i < m->n_edges; i++) {
		const struct netmap_edge *x = &m->edges[i];

		if (!leads_to(x, s) || !is_end(&m->nodes[x->from], r))
			continue;
		found = i;
		n++;
		if (x->addresses && netflows_has_line(x->addresses, s->address)) {
			there = i;
			n_there++;
		}
	}
	return n == 1 ? found : n_there == 1 ? there : SIZE_MAX;
}

static void add_clients(const struct reqrows *r, struct netmap *m)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct service s = service_of(r->rows[i].service);
		size_t at;

		if (strcmp(r->rows[i].side, "client"))
			continue;
		at = edge_of_client(m, &r->rows[i], &s);
		if (at == SIZE_MAX)
			m->unplaced += r->rows[i].requests;
		else
			reqrows_sum(&m->edges[at].asked, &r->rows[i]);
	}
}

static bool same_server(const struct reqrows_row *a, const struct reqrows_row *b)
{
	const struct service x = service_of(a->service), y = service_of(b->service);

	return !strcmp(b->side, "server") && !strcmp(a->container, b->container) &&
	       !strcmp(a->comm, b->comm) && x.port == y.port &&
	       (x.port || !strcmp(x.address, y.address));
}

/* What a server saw at one port, at any of its addresses, and no client's row told of. */
static void add_server(const struct reqrows_row *sum, const struct service *s, struct netmap *m)
{
	size_t found = SIZE_MAX, n = 0, n_told = 0;
	uint64_t told = 0;

	for (size_t i = 0; i < m->n_edges; i++) {
		const struct netmap_edge *x = &m->edges[i];

		if ((!leads_to(x, s) && !(s->port && x->own_port == s->port)) ||
		    !is_end(&m->nodes[x->to], sum))
			continue;
		n++;
		n_told += x->asked.requests > 0;
		told += x->asked.requests;
		found = i;
	}
	if (n && n == n_told)
		return; /* the clients' rows are the same ones */
	if (n == 1)
		reqrows_sum(&m->edges[found].asked, sum);
	else
		m->unplaced += sum->requests > told ? sum->requests - told : 0;
}

static void add_servers(const struct reqrows *r, struct netmap *m)
{
	bool *done = mem_array(r->n + 1, sizeof(*done));

	for (size_t i = 0; i < r->n; i++) {
		const struct service s = service_of(r->rows[i].service);
		struct reqrows_row sum = {.container = r->rows[i].container,
					  .comm = r->rows[i].comm};

		if (done[i] || strcmp(r->rows[i].side, "server"))
			continue;
		for (size_t k = i; k < r->n; k++)
			if (!done[k] && same_server(&r->rows[i], &r->rows[k])) {
				reqrows_sum(&sum, &r->rows[k]);
				done[k] = true;
			}
		add_server(&sum, &s, m);
		hist_release(&sum.latency);
	}
	free(done);
}

void netasked_of(const struct reqrows *r, struct netmap *m)
{
	m->asked_known = r->known;
	add_clients(r, m);
	add_servers(r, m);
}

int netasked_read(const struct selection *sel, struct netmap *m, struct err *e)
{
	struct reqrows r;
	int rc = reqrows_read(sel, REQROWS_BY_END, "", false, &r, e);

	if (!rc)
		netasked_of(&r, m);
	reqrows_release(&r);
	return rc;
}
