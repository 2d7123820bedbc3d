/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/net/netfar.h"

#define ADDRESS_MAX 128

struct making {
	struct netmap *m;
	size_t cap_nodes, cap_edges;
	struct idmap nodes, edges;
};

static size_t node_of(struct making *k, enum netmap_kind kind, const char *name)
{
	struct netmap *m = k->m;
	bool fresh;
	uint64_t *at = idmap_ref(&k->nodes, hash_str(hash_u64(HASH_SEED, kind), name), &fresh);

	if (fresh) {
		*at = m->n_nodes;
		mem_grow(m->nodes, m->n_nodes, k->cap_nodes);
		m->nodes[m->n_nodes++] =
			(struct netmap_node){.name = mem_strdup(name), .kind = kind};
	}
	return *at;
}

/* Of several hosts, HOST/NAME. */
static size_t host_node(struct making *k, enum netmap_kind kind, const char *host, const char *name)
{
	struct strbuf whole cleanup_strbuf = STRBUF_INIT;

	if (*host)
		strbuf_addf(&whole, "%s/", host);
	strbuf_addstr(&whole, name);
	return node_of(k, kind, strbuf_str(&whole));
}

static size_t end_node(struct making *k, const struct netflows_end *x)
{
	return *x->container ? node_of(k, NETMAP_CONTAINER, x->container) :
			       host_node(k, NETMAP_COMMAND, x->host, x->comm);
}

/* The other end of a row. */
static size_t peer_node(struct making *k, const struct netflows_row *r, bool is_client)
{
	const char *class = netflows_class(r->peer);

	if (*r->mate.comm || *r->mate.container)
		return end_node(k, &r->mate);
	if (is_client && *class)
		return node_of(k, NETMAP_CLASS, class);
	if (is_client && !strcmp(r->protocol, "unix")) /* the path is the server's */
		return host_node(k, NETMAP_ADDRESS, r->who.host, "unknown");
	/* two hosts' private addresses are two things */
	return host_node(k, NETMAP_ADDRESS, strcmp(class, "public") ? r->who.host : "",
			 r->name  ? r->name :
			 *r->peer ? r->peer :
				    "unknown");
}

static struct netmap_edge *edge_of(struct making *k, size_t from, size_t to, const char *protocol,
				   int64_t port)
{
	struct netmap *m = k->m;
	uint64_t h = hash_u64(hash_u64(hash_str(HASH_SEED, protocol), (uint64_t)port),
			      (uint64_t)from << 32 | to),
		 *at;
	bool fresh;

	at = idmap_ref(&k->edges, h, &fresh);
	if (fresh) {
		*at = m->n_edges;
		mem_grow(m->edges, m->n_edges, k->cap_edges);
		m->edges[m->n_edges++] = (struct netmap_edge){
			.from = from, .to = to, .protocol = mem_strdup(protocol), .port = port};
		m->nodes[from].linked = m->nodes[to].linked = true;
	}
	return &m->edges[*at];
}

/* What one end sent, the other received, and so on. */
static uint64_t turned(const struct netflows_row *r, int i, bool turn)
{
	static const uint8_t other[NET_SUMS] = {
		[NET_RESET_IN] = NET_RESET_OUT,
		[NET_RESET_OUT] = NET_RESET_IN,
		[NET_TX] = NET_RX,
		[NET_RX] = NET_TX,
		[NET_SEGS_OUT] = NET_SEGS_IN,
		[NET_SEGS_IN] = NET_SEGS_OUT,
	};

	return r->sums[turn && other[i] ? other[i] : i];
}

static bool has_edge(const struct netmap *m, size_t from, size_t to, const char *protocol)
{
	for (size_t i = 0; i < m->n_edges; i++)
		if (m->edges[i].from == from && m->edges[i].to == to &&
		    !strcmp(m->edges[i].protocol, protocol))
			return true;
	return false;
}

/* The client of a Unix socket is on this host and has its own row: if any client has a row for that
 * path, the server's row would count it twice. */
static bool is_told_by_clients(const struct netmap *m, size_t to, const struct netflows_row *r)
{
	if (strcmp(r->protocol, "unix") || *r->mate.comm || *r->mate.container || !*r->peer)
		return false;
	for (size_t i = 0; i < m->n_edges; i++) {
		const struct netmap_edge *x = &m->edges[i];

		if (x->to == to && x->of_client && !strcmp(x->protocol, "unix") && x->addresses &&
		    netflows_has_line(x->addresses, r->peer))
			return true;
	}
	return false;
}

/* Both ends are known, and the client's row has another port: it is translated on the way.
 */
static bool is_translated(struct netmap *m, size_t from, size_t to, const struct netflows_row *r)
{
	bool found = false;

	if (!r->port || (!*r->mate.comm && !*r->mate.container))
		return false;
	for (size_t i = 0; i < m->n_edges; i++) {
		struct netmap_edge *x = &m->edges[i];

		if (x->from != from || x->to != to || !x->of_client ||
		    strcmp(x->protocol, r->protocol))
			continue;
		if (x->port == r->port)
			return false;
		if (!x->own_port)
			x->own_port = r->port;
		found = true;
	}
	return found;
}

static bool is_proxy(const struct netflows_end *x)
{
	return !*x->container && !strcmp(x->comm, "docker-proxy");
}

/* Each docker-proxy leads to one port of one container: what it asks there. NULL: to whom is not
 * known. */
static const struct netflows_row *proxied(const struct netflows *f,
					  const struct netflows_end *proxy)
{
	for (size_t i = 0; i < f->n; i++)
		if (is_proxy(&f->rows[i].who) && f->rows[i].who.pid == proxy->pid &&
		    !strcmp(f->rows[i].who.host, proxy->host) &&
		    !strcmp(f->rows[i].side, "client") &&
		    (*f->rows[i].mate.comm || *f->rows[i].mate.container) &&
		    !is_proxy(&f->rows[i].mate))
			return &f->rows[i];
	return NULL;
}

/* Neither end is known, nor a port: the row says nothing. */
static bool is_nobodys(const struct netflows_row *r)
{
	return !strcmp(r->who.comm, "[unknown]") && !*r->mate.comm && !*r->mate.container &&
	       !*r->peer;
}

/* A client of docker-proxy talks to the container that it leads to; the proxy's own connections are
 * the same conversation again. */
static bool is_way(const struct netflows *f, const struct netflows_row *r)
{
	if (r->apart || is_nobodys(r))
		return true;
	if (is_proxy(&r->who))
		return proxied(f, &r->who) && (!strcmp(r->side, "client") || *r->mate.comm);
	return is_proxy(&r->mate) && !strcmp(r->side, "server");
}

/* Where it was asked. */
static void edge_addresses(struct netmap_edge *x, const struct netflows_row *r)
{
	struct strbuf all cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&all, x->addresses ? x->addresses : "");
	if (*r->peer && !strchr(r->peer, '\n') &&
	    !(x->addresses && netflows_has_line(x->addresses, r->peer)))
		strbuf_addf(&all, "%s\n", r->peer);
	strbuf_addstr(&all, r->more_peers ? r->more_peers : "");
	free(x->addresses);
	x->addresses = strbuf_take(&all);
}

static void row_add(struct making *k, const struct netflows *f, const struct netflows_row *r)
{
	bool server = !strcmp(r->side, "server"),
	     pair = !strcmp(r->side, "unknown") && *r->mate.comm;
	const struct netflows_row *beyond = is_proxy(&r->mate) ? proxied(f, &r->mate) : NULL;
	const struct netflows_row *through =
		is_proxy(&r->who) && server ? proxied(f, &r->who) : NULL;
	size_t own = end_node(k, through ? &through->mate : &r->who),
	       peer = beyond ? end_node(k, &beyond->mate) : peer_node(k, r, server);
	struct netmap_edge *x;

	if (pair && has_edge(k->m, peer, own, r->protocol))
		return; /* two ends that nothing tells apart are one edge */
	if (server && !through &&
	    (is_translated(k->m, peer, own, r) || is_told_by_clients(k->m, own, r)))
		return;
	x = server ? edge_of(k, peer, own, r->protocol, r->port) :
		     edge_of(k, own, peer, r->protocol, r->port);
	if (!server || !strcmp(r->protocol, "unix"))
		edge_addresses(x, r);
	if (beyond || through)
		x->own_port = (beyond ? beyond : through)->port;
	if (server && x->of_client)
		return; /* the client's row has it */
	x->of_client = x->of_client || !server;
	x->at = !x->at || r->at < x->at ? r->at : x->at;
	for (int i = 0; i < NET_SUMS; i++)
		x->sums[i] += turned(r, i, server);
	x->open_now += r->open_now;
}

static const struct netmap *sorted; /* qsort has no context */

static int by_names(const void *a, const void *b)
{
	const struct netmap_edge *x = a, *y = b;
	int order = strcmp(sorted->nodes[x->from].name, sorted->nodes[y->from].name);

	order = order ? order : strcmp(sorted->nodes[x->to].name, sorted->nodes[y->to].name);
	order = order ? order : strcmp(x->protocol, y->protocol);
	return order ? order : (x->port > y->port) - (x->port < y->port);
}

void netmap_of(const struct netflows *f, struct netmap *out)
{
	struct making k = {.m = out};

	*out = (struct netmap){.known = f->known};
	for (int servers = 0; servers < 2; servers++)
		for (size_t i = 0; i < f->n; i++)
			if ((strcmp(f->rows[i].side, "server") == 0) == (servers == 1) &&
			    !is_way(f, &f->rows[i]))
				row_add(&k, f, &f->rows[i]);
	sorted = out;
	if (out->n_edges)
		qsort(out->edges, out->n_edges, sizeof(*out->edges), by_names);
	idmap_release(&k.nodes);
	idmap_release(&k.edges);
}

int netmap_make(const struct selection *sel, struct netmap *out, struct err *e)
{
	struct netflows f;
	int rc = netflows_read(sel, NETFLOWS_BY_PROCESS, &f, e);

	*out = (struct netmap){0};
	if (!rc && store_names_hosts())
		rc = netfar_join(sel, &f, e);
	if (!rc)
		netmap_of(&f, out);
	netflows_release(&f);
	return rc;
}

static void edge_release(struct netmap_edge *x)
{
	free(x->protocol);
	free(x->addresses);
	hist_release(&x->asked.latency);
}

void netmap_release(struct netmap *m)
{
	for (size_t i = 0; i < m->n_nodes; i++)
		free(m->nodes[i].name);
	for (size_t i = 0; i < m->n_edges; i++)
		edge_release(&m->edges[i]);
	free(m->nodes);
	free(m->edges);
	*m = (struct netmap){0};
}

uint64_t netmap_failed(const struct netmap_edge *x)
{
	return x->sums[NET_REFUSED] + x->sums[NET_TIMED_OUT] + x->sums[NET_UNREACHABLE] +
	       x->sums[NET_GIVEN_UP] + x->sums[NET_FAILED];
}

uint64_t netmap_broken(const struct netmap_edge *x)
{
	return x->sums[NET_RESET_IN] + x->sums[NET_RESET_OUT] + x->sums[NET_BROKEN];
}

/* ---- requests ---- */

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

/* What a server saw at one port, at any of its addresses, without a client's row. */
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

int netmap_add_requests(const struct selection *sel, struct netmap *m, struct err *e)
{
	struct reqrows r;
	int rc = reqrows_read(sel, REQROWS_BY_END, "", false, &r, e);

	if (!rc) {
		m->asked_known = r.known;
		add_clients(&r, m);
		add_servers(&r, m);
	}
	reqrows_release(&r);
	return rc;
}

/* ---- the most used ---- */

static uint64_t edge_uses(const struct netmap_edge *x)
{
	return x->asked.requests + x->sums[NET_OPENED] +
	       (uint64_t)(x->open_now > 0 ? x->open_now : 0);
}

static int by_use(const void *a, const void *b, void *ctx)
{
	const struct netmap_edge *edges = ctx, *x = &edges[*(const size_t *)a],
				 *y = &edges[*(const size_t *)b];
	const uint64_t n = edge_uses(x), m = edge_uses(y),
		       bytes = x->sums[NET_TX] + x->sums[NET_RX],
		       others = y->sums[NET_TX] + y->sums[NET_RX];

	if (n != m)
		return n > m ? -1 : 1;
	if (bytes != others)
		return bytes > others ? -1 : 1;
	return x < y ? -1 : x > y;
}

void netmap_keep(struct netmap *m, size_t n)
{
	size_t *order = mem_array(m->n_edges + 1, sizeof(*order)), kept = 0;
	bool *keep = mem_array(m->n_edges + 1, sizeof(*keep));

	for (size_t i = 0; i < m->n_edges; i++)
		order[i] = i;
	if (n < m->n_edges)
		qsort_r(order, m->n_edges, sizeof(*order), by_use, m->edges);
	for (size_t i = 0; i < m->n_edges && i < n; i++)
		keep[order[i]] = true;
	for (size_t i = 0; i < m->n_edges; i++) {
		if (keep[i])
			m->edges[kept++] = m->edges[i];
		else
			edge_release(&m->edges[i]);
	}
	m->n_edges = kept;
	free(order);
	free(keep);
}
