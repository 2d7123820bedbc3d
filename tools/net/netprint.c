/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netprint.h"

#include <string.h>

#include "schema/base/array.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/row.h"

#define PATH_SHOWN 128

#define FLOW_TROUBLES                                                                        \
	NET_REFUSED, NET_TIMED_OUT, NET_UNREACHABLE, NET_GIVEN_UP, NET_FAILED, NET_RESET_IN, \
		NET_RESET_OUT, NET_BROKEN

static const char *const TROUBLE_WORDS[NET_SUMS] = {
	[NET_REFUSED] = "refused",
	[NET_TIMED_OUT] = "timed out",
	[NET_UNREACHABLE] = "unreachable",
	[NET_GIVEN_UP] = "given up",
	[NET_FAILED] = "failed",
	[NET_RESET_IN] = "reset by the other end",
	[NET_RESET_OUT] = "reset by this end",
	[NET_BROKEN] = "broken off",
};
static const int TROUBLES[] = {FLOW_TROUBLES};
#define N_TROUBLES ARRAY_SIZE(TROUBLES)

/* "nginx", "web (nginx)": an end as one word. */
static void add_end(struct strbuf *out, const struct netflows_end *x)
{
	if (*x->container && *x->comm)
		strbuf_addf(out, "%s (%s)", x->container, x->comm);
	else
		strbuf_addstr(out, *x->container ? x->container : *x->comm ? x->comm : "-");
}

static void add_peer(struct strbuf *out, const struct netflows_row *r)
{
	if (*r->mate.comm || *r->mate.container)
		add_end(out, &r->mate);
	else if (r->name && *r->peer)
		strbuf_addf(out, "%s (%s)", r->name, r->peer);
	else
		strbuf_addstr(out, *r->peer ? r->peer : "-");
}

void netprint_troubles(struct strbuf *out, const uint64_t sums[NET_SUMS])
{
	for (size_t i = 0; i < N_TROUBLES; i++)
		if (sums[TROUBLES[i]])
			strbuf_addf(out, "%s%llu %s", out->len ? ", " : "",
				    (unsigned long long)sums[TROUBLES[i]],
				    TROUBLE_WORDS[TROUBLES[i]]);
}

/* "tcp 80", "unix /run/x.sock", "udp 443 (QUIC?)" where only the port suggests QUIC. `path` NULL or
 * "": it has none, or there are several. */
static void add_service(struct strbuf *out, const char *protocol, int64_t port, const char *path)
{
	const char *quic = netflows_quic(protocol, port);

	if (port)
		strbuf_addf(out, "%s %lld%s", protocol, (long long)port,
			    quic && !strcmp(quic, "port") ? " (QUIC?)" : "");
	else if (path && *path)
		strbuf_addf(out, "%s %s", protocol, path);
	else
		strbuf_addstr(out, protocol);
}

static json_t *end_json(const struct netflows_end *x)
{
	return json_pack("{s:o, s:o, s:o}", "container", json_text_or_null(x->container), "comm",
			 json_text_or_null(x->comm), "pid", json_number_or_null(x->pid, x->pid));
}

static void row_sum(struct row *o, const char *title, const uint64_t sums[NET_SUMS],
		    enum netflows_sum which)
{
	const enum table_align align = which == NET_RETRANS ? TABLE_SPARE_RIGHT : TABLE_RIGHT;

	if (which == NET_TX || which == NET_RX)
		row_bytes(o, title, align, NETFLOWS_SUMS[which], sums[which], true);
	else
		row_count(o, title, align, NETFLOWS_SUMS[which], sums[which], true);
}

/* The columns of an edge and of a connection. The sums that the table does not show are in JSON. */
static void row_sums(struct row *o, const uint64_t sums[NET_SUMS], int64_t open_now,
		     const char *sent, const char *received)
{
	row_sum(o, "OPENED", sums, NET_OPENED);
	row_count(o, "OPEN", TABLE_RIGHT, "open_now", (uint64_t)open_now, true);
	row_sum(o, sent, sums, NET_TX);
	row_sum(o, received, sums, NET_RX);
	row_us(o, "RTT", TABLE_SPARE_RIGHT, "rtt_us",
	       sums[NET_RTT_N] ? (int64_t)(sums[NET_RTT_SUM] / sums[NET_RTT_N]) : 0,
	       sums[NET_RTT_N]);
	for (int i = 0; o->json && i < NET_SUMS; i++)
		if (!json_object_get(o->json, NETFLOWS_SUMS[i]))
			row_sum(o, NULL, sums, i);
}

static void row_troubles(struct row *o, const struct strbuf *troubles, bool warn)
{
	row_cell(o, "TROUBLE", TABLE_TEXT, troubles->len ? strbuf_str(troubles) : NULL);
	if (warn)
		row_color(o, TERM_YELLOW);
}

/* ---- connections ---- */

static void flow_row(struct row *o, const struct netflows_row *r)
{
	struct strbuf who cleanup_strbuf = STRBUF_INIT, peer cleanup_strbuf = STRBUF_INIT,
			  service cleanup_strbuf = STRBUF_INIT,
			  troubles cleanup_strbuf = STRBUF_INIT;
	const bool client = !strcmp(r->side, "client"), server = !strcmp(r->side, "server");
	const bool has_mate =
		*r->mate.comm || *r->mate.container; /* else the path is the other end's name */
	const uint64_t connects = client ? r->sums[NET_OPENED] : 0;

	add_end(&who, &r->who);
	add_peer(&peer, r);
	add_service(&service, r->protocol, r->port, has_mate && r->peers == 1 ? r->peer : NULL);
	netprint_troubles(&troubles, r->sums);
	row_number(o, "PID", TABLE_RIGHT, NULL, r->who.pid, r->who.pid);
	row_cell(o, "NAME", TABLE_MIDDLE, strbuf_str(&who));
	row_json(o, "who", end_json(&r->who));
	row_cell(o, "", TABLE_LEFT, client ? "to" : server ? "from" : "with");
	row_word(o, NULL, TABLE_LEFT, "side", r->side);
	row_cell(o, "OTHER END", TABLE_MIDDLE, strbuf_str(&peer));
	row_json(o, "other", end_json(&r->mate));
	row_text(o, NULL, TABLE_LEFT, "peer", r->peer);
	row_text(o, NULL, TABLE_LEFT, "peer_name", r->name);
	row_text(o, NULL, TABLE_LEFT, "class", netflows_class(r->peer));
	row_cell(o, "SERVICE", TABLE_MIDDLE, strbuf_str(&service));
	row_word(o, NULL, TABLE_LEFT, "protocol", r->protocol);
	row_number(o, NULL, TABLE_LEFT, "port", r->port, r->port);
	row_text(o, NULL, TABLE_LEFT, "quic", netflows_quic(r->protocol, r->port));
	row_sums(o, r->sums, r->open_now, "SENT", "RECEIVED");
	row_us(o, "CONNECT", TABLE_SPARE_RIGHT, NULL,
	       connects ? (int64_t)(r->sums[NET_CONNECT_US] / connects) : 0, connects);
	row_sum(o, "RETRANS", r->sums, NET_RETRANS);
	row_troubles(o, &troubles, netflows_failed(r) + netflows_broken(r));
	row_end(o);
}

struct table *netprint_flows(const struct netflows *f, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		flow_row(&o, &f->rows[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *netprint_flow_json(const struct netflows_row *r)
{
	struct row o = row_of_json();

	flow_row(&o, r);
	return o.json;
}

/* ---- listeners ---- */

static void listener_row(struct row *o, const struct netlisteners_row *r)
{
	struct strbuf service cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&service, r->protocol);
	if (r->port)
		strbuf_addf(&service, " %lld", (long long)r->port);
	row_number(o, "PID", TABLE_RIGHT, NULL, r->who.pid, r->who.pid);
	row_cell(o, "NAME", TABLE_MIDDLE, r->who.comm);
	row_text(o, "CONTAINER", TABLE_MIDDLE, NULL, r->who.container);
	row_json(o, "who", end_json(&r->who));
	row_cell(o, "SERVICE", TABLE_LEFT, strbuf_str(&service));
	row_word(o, NULL, TABLE_LEFT, "protocol", r->protocol);
	row_text(o, "ADDRESS", TABLE_MIDDLE, "address", r->address);
	row_number(o, NULL, TABLE_LEFT, "port", r->port, r->port);
	row_text(o, "OPEN TO", TABLE_LEFT, "open_to", r->open_to);
	row_count(o, "WAITING", TABLE_RIGHT, "backlog", (uint64_t)r->backlog, true);
	row_count(o, "ROOM", TABLE_RIGHT, "backlog_max", (uint64_t)r->backlog_max, true);
	row_count(o, "DROPPED", TABLE_RIGHT, "dropped", (uint64_t)r->dropped, true);
	row_count(o, "REPEATED", TABLE_RIGHT, "repeated", (uint64_t)r->repeated, true);
	if (r->dropped)
		row_color(o, TERM_YELLOW);
	row_end(o);
}

struct table *netprint_listeners(const struct netlisteners *l, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		listener_row(&o, &l->rows[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *netprint_listener_json(const struct netlisteners_row *r)
{
	struct row o = row_of_json();

	listener_row(&o, r);
	return o.json;
}

/* ---- the map ---- */

void netprint_edge_troubles(struct strbuf *out, const struct netmap_edge *x)
{
	netprint_troubles(out, x->sums);
	if (x->asked.errors)
		strbuf_addf(out, "%s%llu errors", out->len ? ", " : "",
			    (unsigned long long)x->asked.errors);
}

void netprint_unplaced(struct strbuf *out, const struct netmap *m)
{
	char buf[32];

	if (m->unplaced)
		strbuf_addf(out, "%s requests are not shown: their client or server is unknown",
			    units_count(m->unplaced, buf, sizeof(buf)));
}

/* The path of a Unix socket, where it is one. */
static void path_of(const struct netmap_edge *x, char *buf, size_t size)
{
	const char *end = x->addresses ? strchr(x->addresses, '\n') : NULL;

	*buf = '\0';
	if (end && !strcmp(x->protocol, "unix") && !end[1])
		snprintf(buf, size, "%.*s", (int)(end - x->addresses), x->addresses);
}

static const char *kind_word(enum netmap_kind kind)
{
	static const char *const words[] = {"container", "command", "address", "class"};

	return words[kind];
}

static json_t *node_json(const struct netmap_node *x)
{
	return json_pack("{s:o, s:s}", "name", json_text(x->name), "kind", kind_word(x->kind));
}

/* `again`: FROM is the same as in the row above. Requests are in JSON where they were recorded. */
static void edge_row(struct row *o, const struct netmap *m, const struct netmap_edge *x, bool again)
{
	const struct netmap_node *from = &m->nodes[x->from], *to = &m->nodes[x->to];
	struct strbuf service cleanup_strbuf = STRBUF_INIT, troubles cleanup_strbuf = STRBUF_INIT;
	char path[PATH_SHOWN];

	path_of(x, path, sizeof(path));
	add_service(&service, x->protocol, x->port, to->kind == NETMAP_ADDRESS ? NULL : path);
	netprint_edge_troubles(&troubles, x);
	row_cell(o, "FROM", TABLE_MIDDLE, again ? "" : from->name);
	row_json(o, "from", node_json(from));
	row_cell(o, "", TABLE_LEFT, "->");
	row_cell(o, "TO", TABLE_MIDDLE, to->name);
	row_json(o, "to", node_json(to));
	row_cell(o, "SERVICE", TABLE_MIDDLE, strbuf_str(&service));
	row_word(o, NULL, TABLE_LEFT, "protocol", x->protocol);
	row_number(o, NULL, TABLE_LEFT, "port", x->port, x->port);
	row_text(o, NULL, TABLE_LEFT, "quic", netflows_quic(x->protocol, x->port));
	row_text(o, NULL, TABLE_LEFT, "path", path);
	row_sums(o, x->sums, x->open_now, "OUT", "IN");
	row_sum(o, "RETRANS", x->sums, NET_RETRANS);
	row_count(o, "REQUESTS", TABLE_RIGHT, m->asked_known ? "requests" : NULL, x->asked.requests,
		  x->asked.requests);
	row_count(o, NULL, TABLE_LEFT, m->asked_known ? "errors" : NULL, x->asked.errors,
		  x->asked.requests);
	row_ns(o, "P95", TABLE_RIGHT, m->asked_known ? "p95_ns" : NULL,
	       (int64_t)reqrows_quantile(&x->asked, 0.95), x->asked.answered);
	row_troubles(o, &troubles, troubles.len);
	row_end(o);
}

struct table *netprint_map(const struct netmap *m)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < m->n_edges; i++)
		edge_row(&o, m, &m->edges[i], i && m->edges[i].from == m->edges[i - 1].from);
	table_omit_empty(o.table);
	return o.table;
}

json_t *netprint_edge_json(const struct netmap *m, const struct netmap_edge *x)
{
	struct row o = row_of_json();

	edge_row(&o, m, x, false);
	return o.json;
}

/* A name in quotes: those and backslashes are escaped, and what is no letter is shown. */
static void dot_name(struct strbuf *out, const char *name)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	strbuf_addshown(&shown, name, strlen(name));
	strbuf_addch(out, '"');
	for (const char *s = strbuf_str(&shown); *s; s++) {
		if (*s == '"' || *s == '\\')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *s);
	}
	strbuf_addch(out, '"');
}

static void dot_edge(const struct netmap_edge *x, struct strbuf *out)
{
	struct strbuf label cleanup_strbuf = STRBUF_INIT, troubles cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&label, x->protocol);
	if (x->port)
		strbuf_addf(&label, " %lld", (long long)x->port);
	netprint_edge_troubles(&troubles, x);
	if (troubles.len)
		strbuf_addf(&label, ": %s", strbuf_str(&troubles));
	strbuf_addf(out, "  n%zu -> n%zu [label=", x->from, x->to);
	dot_name(out, strbuf_str(&label));
	strbuf_addstr(out, troubles.len ? ", color=red];\n" : "];\n");
}

void netprint_dot(const struct netmap *m, struct strbuf *out)
{
	static const char *const shapes[] = {"box", "ellipse", "plaintext", "plaintext"};

	strbuf_addstr(out, "digraph services {\n  rankdir=LR;\n");
	for (size_t i = 0; i < m->n_nodes; i++) {
		if (!m->nodes[i].linked)
			continue;
		strbuf_addf(out, "  n%zu [shape=%s, label=", i, shapes[m->nodes[i].kind]);
		dot_name(out, m->nodes[i].name);
		strbuf_addstr(out, "];\n");
	}
	for (size_t i = 0; i < m->n_edges; i++)
		dot_edge(&m->edges[i], out);
	strbuf_addstr(out, "}\n");
}
