/* SPDX-License-Identifier: Apache-2.0 */
/* netprint: see the header. */
#include "tools/net/netprint.h"

#include <string.h>

#include "schema/base/array.h"
#include "tools/print/json.h"
#include "tools/print/term.h"

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

/* ---- cells ---- */

void netprint_end(struct strbuf *out, const struct netflows_end *x)
{
	if (*x->container && *x->comm)
		strbuf_addf(out, "%s (%s)", x->container, x->comm);
	else
		strbuf_addstr(out, *x->container ? x->container : *x->comm ? x->comm : "-");
}

void netprint_peer(struct strbuf *out, const struct netflows_row *r)
{
	if (*r->mate.comm || *r->mate.container)
		netprint_end(out, &r->mate);
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

static void count_cell(struct table *t, uint64_t n)
{
	char buf[32];

	table_cell(t, n ? term_count(n, buf, sizeof(buf)) : "-");
}

static void bytes_cell(struct table *t, uint64_t n)
{
	char buf[32];

	table_cell(t, n ? term_bytes(n, buf, sizeof(buf)) : "-");
}

const char *netprint_us(uint64_t us, char buf[24])
{
	if (us < 1000)
		snprintf(buf, 24, "%llu us", (unsigned long long)us);
	else if (us < 1000000)
		snprintf(buf, 24, "%.1f ms", (double)us / 1e3);
	else
		snprintf(buf, 24, "%.2f s", (double)us / 1e6);
	return buf;
}

static void mean_cell(struct table *t, uint64_t us, uint64_t n)
{
	char buf[24];

	table_cell(t, n ? netprint_us(us / n, buf) : "-");
}

static void pid_cell(struct table *t, const struct netflows_end *x)
{
	if (x->pid)
		table_cellf(t, "%lld", (long long)x->pid);
	else
		table_cell(t, "-");
}

/* "tcp 80", "unix /run/x.sock", "udp 443 (QUIC?)" of what the port alone says. `path` NULL, "": it
 * has none, or there are several. */
static void service_cell(struct table *t, const char *protocol, int64_t port, const char *path)
{
	const char *quic = netflows_quic(protocol, port);

	if (port)
		table_cellf(t, "%s %lld%s", protocol, (long long)port,
			    quic && !strcmp(quic, "port") ? " (QUIC?)" : "");
	else if (path && *path)
		table_cellf(t, "%s %s", protocol, path);
	else
		table_cell(t, protocol);
}

/* ---- connections ---- */

static void flow_text(struct table *t, const struct netflows_row *r)
{
	struct strbuf who cleanup_strbuf = STRBUF_INIT, peer cleanup_strbuf = STRBUF_INIT,
			  troubles cleanup_strbuf = STRBUF_INIT;
	const bool has_mate =
		*r->mate.comm || *r->mate.container; /* else the path is the other end's name */

	pid_cell(t, &r->who);
	netprint_end(&who, &r->who);
	table_cell(t, strbuf_str(&who));
	table_cell(t, !strcmp(r->side, "client") ? "to" :
		      !strcmp(r->side, "server") ? "from" :
						   "with");
	netprint_peer(&peer, r);
	table_cell(t, strbuf_str(&peer));
	service_cell(t, r->protocol, r->port, has_mate && r->peers == 1 ? r->peer : NULL);
	count_cell(t, r->sums[NET_OPENED]);
	count_cell(t, (uint64_t)r->open_now);
	bytes_cell(t, r->sums[NET_TX]);
	bytes_cell(t, r->sums[NET_RX]);
	mean_cell(t, r->sums[NET_RTT_SUM], r->sums[NET_RTT_N]);
	mean_cell(t, r->sums[NET_CONNECT_US], !strcmp(r->side, "client") ? r->sums[NET_OPENED] : 0);
	count_cell(t, r->sums[NET_RETRANS]);
	netprint_troubles(&troubles, r->sums);
	table_cell(t, troubles.len ? strbuf_str(&troubles) : "-");
	if (netflows_failed(r) + netflows_broken(r))
		table_row_color(t, TERM_YELLOW);
}

struct table *netprint_flows(const struct netflows *f, size_t n)
{
	static const struct table_column columns[] = {
		{"PID", TABLE_RIGHT},
		{"NAME", TABLE_MIDDLE},
		{"", TABLE_LEFT},
		{"OTHER END", TABLE_MIDDLE},
		{"SERVICE", TABLE_MIDDLE},
		{"OPENED", TABLE_RIGHT},
		{"OPEN", TABLE_RIGHT},
		{"SENT", TABLE_RIGHT},
		{"RECEIVED", TABLE_RIGHT},
		{"RTT", TABLE_SPARE_RIGHT},
		{"CONNECT", TABLE_SPARE_RIGHT},
		{"RETRANS", TABLE_SPARE_RIGHT},
		{"TROUBLE", TABLE_MIDDLE},
	};
	struct table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < n; i++)
		flow_text(t, &f->rows[i]);
	table_omit_empty(t);
	return t;
}

static json_t *text_or_null(const char *s)
{
	return s && *s ? json_text(s) : json_null();
}

static void end_json(json_t *o, const char *key, const struct netflows_end *x)
{
	json_object_set_new(o, key,
			    json_pack("{s:o, s:o, s:o}", "container", text_or_null(x->container),
				      "comm", text_or_null(x->comm), "pid",
				      x->pid ? json_integer(x->pid) : json_null()));
}

static void sums_json(json_t *o, const uint64_t sums[NET_SUMS], int64_t open_now)
{
	for (int i = 0; i < NET_SUMS; i++)
		json_object_set_new(o, NETFLOWS_SUMS[i], json_integer((json_int_t)sums[i]));
	json_object_set_new(o, "open_now", json_integer(open_now));
	json_object_set_new(
		o, "rtt_us",
		sums[NET_RTT_N] ? json_integer((json_int_t)(sums[NET_RTT_SUM] / sums[NET_RTT_N])) :
				  json_null());
}

json_t *netprint_flow_json(const struct netflows_row *r)
{
	json_t *o = json_object();

	end_json(o, "who", &r->who);
	json_object_set_new(o, "side", json_text(r->side));
	end_json(o, "other", &r->mate);
	json_object_set_new(o, "peer", text_or_null(r->peer));
	json_object_set_new(o, "peer_name", text_or_null(r->name));
	json_object_set_new(o, "class", text_or_null(netflows_class(r->peer)));
	json_object_set_new(o, "protocol", json_text(r->protocol));
	json_object_set_new(o, "port", r->port ? json_integer(r->port) : json_null());
	json_object_set_new(o, "quic", text_or_null(netflows_quic(r->protocol, r->port)));
	sums_json(o, r->sums, r->open_now);
	return o;
}

/* ---- listeners ---- */

struct table *netprint_listeners(const struct netlisteners *l, size_t n)
{
	static const struct table_column columns[] = {
		{"PID", TABLE_RIGHT},      {"NAME", TABLE_MIDDLE},    {"CONTAINER", TABLE_MIDDLE},
		{"SERVICE", TABLE_LEFT},   {"ADDRESS", TABLE_MIDDLE}, {"OPEN TO", TABLE_LEFT},
		{"WAITING", TABLE_RIGHT},  {"ROOM", TABLE_RIGHT},     {"DROPPED", TABLE_RIGHT},
		{"REPEATED", TABLE_RIGHT},
	};
	struct table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < n; i++) {
		const struct netlisteners_row *r = &l->rows[i];

		pid_cell(t, &r->who);
		table_cell(t, r->who.comm);
		table_cell(t, *r->who.container ? r->who.container : "-");
		if (r->port)
			table_cellf(t, "%s %lld", r->protocol, (long long)r->port);
		else
			table_cell(t, r->protocol);
		table_cell(t, *r->address ? r->address : "-");
		table_cell(t, r->open_to);
		count_cell(t, (uint64_t)r->backlog);
		count_cell(t, (uint64_t)r->backlog_max);
		count_cell(t, (uint64_t)r->dropped);
		count_cell(t, (uint64_t)r->repeated);
		if (r->dropped)
			table_row_color(t, TERM_YELLOW);
	}
	table_omit_empty(t);
	return t;
}

json_t *netprint_listener_json(const struct netlisteners_row *r)
{
	json_t *o = json_object();

	end_json(o, "who", &r->who);
	json_object_set_new(o, "protocol", json_text(r->protocol));
	json_object_set_new(o, "address", text_or_null(r->address));
	json_object_set_new(o, "port", r->port ? json_integer(r->port) : json_null());
	json_object_set_new(o, "open_to", text_or_null(r->open_to));
	json_object_set_new(o, "backlog", json_integer(r->backlog));
	json_object_set_new(o, "backlog_max", json_integer(r->backlog_max));
	json_object_set_new(o, "dropped", json_integer(r->dropped));
	json_object_set_new(o, "repeated", json_integer(r->repeated));
	return o;
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
		strbuf_addf(out, "%s requests stand on no line: who asked whom is not known",
			    term_count(m->unplaced, buf, sizeof(buf)));
}

/* The path of a Unix socket, where it is one. */
static void path_of(const struct netmap_edge *x, char *buf, size_t size)
{
	const char *end = x->addresses ? strchr(x->addresses, '\n') : NULL;

	*buf = '\0';
	if (end && !strcmp(x->protocol, "unix") && !end[1])
		snprintf(buf, size, "%.*s", (int)(end - x->addresses), x->addresses);
}

static void edge_text(struct table *t, const struct netmap *m, const struct netmap_edge *x,
		      bool again)
{
	char buf[24], path[PATH_SHOWN];
	struct strbuf troubles cleanup_strbuf = STRBUF_INIT;

	table_cell(t, again ? "" : m->nodes[x->from].name);
	table_cell(t, "->");
	table_cell(t, m->nodes[x->to].name);
	path_of(x, path, sizeof(path));
	service_cell(t, x->protocol, x->port, m->nodes[x->to].kind == NETMAP_ADDRESS ? NULL : path);
	count_cell(t, x->sums[NET_OPENED]);
	count_cell(t, (uint64_t)x->open_now);
	bytes_cell(t, x->sums[NET_TX]);
	bytes_cell(t, x->sums[NET_RX]);
	mean_cell(t, x->sums[NET_RTT_SUM], x->sums[NET_RTT_N]);
	count_cell(t, x->sums[NET_RETRANS]);
	count_cell(t, x->asked.requests);
	table_cell(t, x->asked.answered ?
			      netprint_us(reqrows_quantile(&x->asked, 0.95) / 1000, buf) :
			      "-");
	netprint_edge_troubles(&troubles, x);
	table_cell(t, troubles.len ? strbuf_str(&troubles) : "-");
	if (troubles.len)
		table_row_color(t, TERM_YELLOW);
}

struct table *netprint_map(const struct netmap *m)
{
	/* clang-format off */
	static const struct table_column columns[] = {
		{"FROM", TABLE_MIDDLE}, {"", TABLE_LEFT}, {"TO", TABLE_MIDDLE}, {"SERVICE", TABLE_MIDDLE}, {"OPENED", TABLE_RIGHT},
		{"OPEN", TABLE_RIGHT}, {"OUT", TABLE_RIGHT}, {"IN", TABLE_RIGHT}, {"RTT", TABLE_SPARE_RIGHT}, {"RETRANS", TABLE_SPARE_RIGHT},
		{"REQUESTS", TABLE_RIGHT}, {"P95", TABLE_RIGHT}, {"TROUBLE", TABLE_MIDDLE},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < m->n_edges; i++)
		edge_text(t, m, &m->edges[i], i && m->edges[i].from == m->edges[i - 1].from);
	table_omit_empty(t);
	return t;
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

json_t *netprint_edge_json(const struct netmap *m, const struct netmap_edge *x)
{
	char path[PATH_SHOWN];
	json_t *o = json_pack("{s:o, s:o, s:o, s:o}", "from", node_json(&m->nodes[x->from]), "to",
			      node_json(&m->nodes[x->to]), "protocol", json_text(x->protocol),
			      "port", x->port ? json_integer(x->port) : json_null());

	path_of(x, path, sizeof(path));
	json_object_set_new(o, "quic", text_or_null(netflows_quic(x->protocol, x->port)));
	json_object_set_new(o, "path", *path ? json_text(path) : json_null());
	sums_json(o, x->sums, x->open_now);
	if (!m->asked_known)
		return o;
	json_object_set_new(o, "requests",
			    x->asked.requests ? json_integer((json_int_t)x->asked.requests) :
						json_null());
	json_object_set_new(o, "errors",
			    x->asked.requests ? json_integer((json_int_t)x->asked.errors) :
						json_null());
	json_object_set_new(o, "p95_ns",
			    x->asked.answered ?
				    json_integer((json_int_t)reqrows_quantile(&x->asked, 0.95)) :
				    json_null());
	return o;
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
