/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netflows.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/net/netnames.h"
#include "tools/select/askrows.h"

/* clang-format off */
const char *const NETFLOWS_SUMS[NET_SUMS] = {
	[NET_ATTEMPTS] = "attempts", [NET_OPENED] = "opened", [NET_REFUSED] = "refused", [NET_TIMED_OUT] = "timed_out",
	[NET_UNREACHABLE] = "unreachable", [NET_GIVEN_UP] = "given_up", [NET_FAILED] = "failed", [NET_CLOSED] = "closed",
	[NET_RESET_IN] = "reset_in", [NET_RESET_OUT] = "reset_out", [NET_BROKEN] = "broken", [NET_TX] = "tx_bytes", [NET_RX] = "rx_bytes",
	[NET_SEGS_OUT] = "segs_out", [NET_SEGS_IN] = "segs_in", [NET_RETRANS] = "retrans", [NET_LOST] = "lost",
	[NET_RTT_SUM] = "rtt_sum_us", [NET_RTT_N] = "rtt_n", [NET_CONNECT_US] = "connect_us", [NET_LIFE_US] = "life_us",
};
/* clang-format on */

#define TEXT_OF(n) TEXT_(n)
#define TEXT_(n)   #n

static const char RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'net' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";
/* A bare column next to max() has the value of the row with the maximum (SQLite's
 * lang_select.html). */
#define FLOWS_HEAD(which)                                                                                                                       \
	"SELECT process_id, peer_process_id, side, protocol, peer, coalesce(port, 0), peer_container, peer_comm, coalesce(peer_pid, 0), " which \
	"(ts),"                                                                                                                                 \
	" coalesce(open_now, 0)"
#define FLOWS_TAIL \
	" FROM flows WHERE ts BETWEEN ?1 - %d AND ?2 GROUP BY process_id, peer_process_id, side, protocol, peer, port"
#define FLOWS_COLUMNS 11
/* The same from sums (store_segment_sums). */
#define FLOWS_SUMMED_HEAD                                                                                                   \
	"SELECT x.process, x.mate, coalesce(sd.value, ''), coalesce(pr.value, ''), coalesce(pe.value, ''),"                 \
	" CAST(coalesce(po.value, '') AS INTEGER), coalesce(iif(mc.name = '', substr(mc.runtime_id, 1, 12), mc.name), '')," \
	" coalesce(m.comm, ''), coalesce(m.pid, 0), max(x.ts + (SELECT value FROM meta WHERE key = 't0')), coalesce(x.open_now, 0)"
#define FLOWS_SUMMED_TAIL                                                                                                            \
	" FROM flow_sum x JOIN process p ON p.id = x.process LEFT JOIN process m ON m.id = x.mate"                                   \
	" LEFT JOIN container mc ON mc.id = m.container LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol" \
	" LEFT JOIN text pe ON pe.id = x.peer LEFT JOIN text po ON po.id = x.port"                                                   \
	" GROUP BY x.process, x.mate, sd.value, pr.value, pe.value, po.value"
static const char LISTENERS[] =
	"SELECT process_id, protocol, address, coalesce(port, 0), open_to, max(ts), coalesce(backlog, 0), coalesce(backlog_max, 0),"
	" sum(iif(ts >= ?1, coalesce(dropped, 0), 0)), sum(iif(ts >= ?1, coalesce(repeated, 0), 0)) FROM listeners WHERE ts BETWEEN ?1 - " TEXT_OF(
		NETFLOWS_IDLE_S) " AND ?2 GROUP BY process_id, protocol, address, port";

bool netflows_by(const char *word, enum netflows_by *by)
{
	static const char *const words[] = {"process", "command", "container", "peer"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], word)) {
			*by = (enum netflows_by)i;
			return true;
		}
	return false;
}

bool netflows_has_line(const char *lines, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = lines; at && *at; at = strchr(at, '\n') + 1)
		if (!strncmp(at, line, len) && at[len] == '\n')
			return true;
	return false;
}

/* ---- reading ---- */

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	enum netflows_by by;
	struct netflows *out;
	struct netlisteners *listeners;
	size_t cap;
	struct idmap row_of;
	struct netnames names;
	bool first; /* netflows_row.at is that of the first reading */
};

static void take_run(void *ctx, sqlite3_stmt *st)
{
	(void)st;
	*(bool *)ctx = true;
}

static const struct store_process_row *process_of(const struct reading *r, int64_t id)
{
	const struct store_process_row *p = store_dict_process(r->dict, id);

	return p && select_wants_process(r->sel, p) ? p : NULL;
}

const char *netflows_quic(const char *protocol, int64_t port)
{
	return !strcmp(protocol, "quic")               ? "first bytes" :
	       !strcmp(protocol, "udp") && port == 443 ? "port" :
							 NULL;
}

const char *netflows_host(const struct store_process_row *p, char buf[NETFLOWS_HOST])
{
	size_t len = store_names_hosts() ? strcspn(p->container, "/") : 0;

	snprintf(buf, NETFLOWS_HOST, "%.*s", (int)(len < NETFLOWS_HOST ? len : NETFLOWS_HOST - 1),
		 p->container);
	return buf;
}

const char *netflows_container(const struct store_process_row *p)
{
	return store_names_hosts() && !strchr(p->container, '/') ? "" : p->container;
}

static uint64_t end_hash(uint64_t h, const char *container, const char *comm, int64_t pid,
			 enum netflows_by by)
{
	h = hash_str(h, container);
	if (by != NETFLOWS_BY_CONTAINER || !*container)
		h = hash_str(h, comm);
	return by == NETFLOWS_BY_PROCESS ? hash_u64(h, (uint64_t)pid) : h;
}

/* Of a server there is one row for each peer, whatever its ephemeral ports; peers on this host go
 * by name. */
static uint64_t row_hash(const struct reading *r, const struct store_process_row *p,
			 sqlite3_stmt *st)
{
	const char *mate = askrows_text(st, 7);
	char host[NETFLOWS_HOST];
	uint64_t seed = hash_str(HASH_SEED, netflows_host(p, host)),
		 h = hash_str(hash_str(seed, askrows_text(st, 2)), askrows_text(st, 3));

	if (r->by == NETFLOWS_BY_PEER)
		h = hash_str(seed, askrows_text(st, 3));
	else
		h = end_hash(h, netflows_container(p), p->comm, p->pid, r->by);
	h = hash_u64(h, (uint64_t)sqlite3_column_int64(st, 5));
	if (*mate)
		return end_hash(h, askrows_text(st, 6), mate, sqlite3_column_int64(st, 8),
				r->by == NETFLOWS_BY_PEER ? NETFLOWS_BY_COMMAND : r->by);
	return hash_str(h, askrows_text(st, 4));
}

static struct netflows_end end_new(const char *host, const char *container, const char *comm,
				   int64_t pid)
{
	return (struct netflows_end){.host = mem_strdup(host),
				     .container = mem_strdup(container),
				     .comm = mem_strdup(comm),
				     .pid = pid};
}

static void end_more(struct netflows_end *x, const char *comm, int64_t pid)
{
	if (strcmp(x->comm, comm)) { /* another program of the container */
		free(x->comm);
		x->comm = mem_strdup("");
	}
	if (x->pid != pid)
		x->many = true;
	if (x->many)
		x->pid = 0;
}

/* A server that we ask may have a name; a client that asks us has none that we would know. */
static char *name_of(const struct reading *r, const struct store_process_row *p, sqlite3_stmt *st)
{
	const char *name = strcmp(askrows_text(st, 2), "server") ?
				   netnames_find(&r->names, p, askrows_text(st, 4),
						 sqlite3_column_int64(st, 9)) :
				   NULL;

	return name ? mem_strdup(name) : NULL;
}

static struct netflows_row *row_new(struct reading *r, const struct store_process_row *p,
				    sqlite3_stmt *st)
{
	struct netflows *f = r->out;
	struct netflows_row *x;
	char host[NETFLOWS_HOST];

	netflows_host(p, host);
	mem_grow(f->rows, f->n, r->cap);
	x = &f->rows[f->n++];
	*x = (struct netflows_row){.who = end_new(host, netflows_container(p), p->comm, p->pid),
				   .mate = end_new(host, askrows_text(st, 6), askrows_text(st, 7),
						   sqlite3_column_int64(st, 8)),
				   .side = mem_strdup(askrows_text(st, 2)),
				   .protocol = mem_strdup(askrows_text(st, 3)),
				   .peer = mem_strdup(askrows_text(st, 4)),
				   .name = name_of(r, p, st),
				   .port = sqlite3_column_int64(st, 5),
				   .peers = 1,
				   .self = p->self};
	return x;
}

/* A server of this host may be asked at several addresses. */
static void more_peers(struct netflows_row *x, const char *peer)
{
	struct strbuf all cleanup_strbuf = STRBUF_INIT;

	x->peers++;
	if (!strcmp(x->side, "server") || !*peer || strchr(peer, '\n') ||
	    (x->more_peers && netflows_has_line(x->more_peers, peer)))
		return;
	strbuf_addf(&all, "%s%s\n", x->more_peers ? x->more_peers : "", peer);
	free(x->more_peers);
	x->more_peers = strbuf_take(&all);
}

/* A process that ended before it was met, and whose other end is sonde's own, is one of sonde's
 * helpers. */
static bool is_own(const struct reading *r, const struct store_process_row *p, int64_t mate)
{
	const struct store_process_row *m = store_dict_process(r->dict, mate);

	return !strcmp(p->comm, "[unknown]") && m && m->self && !select_wants_process(r->sel, m);
}

static void take_flow(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, sqlite3_column_int64(st, 0));
	struct netflows_row *x;
	uint64_t *at;
	bool fresh;

	if (!p || is_own(r, p, sqlite3_column_int64(st, 1)))
		return;
	at = idmap_ref(&r->row_of, row_hash(r, p, st), &fresh);
	if (fresh)
		*at = r->out->n;
	x = fresh ? row_new(r, p, st) : &r->out->rows[*at];
	if (!fresh) {
		end_more(&x->who, p->comm, p->pid);
		if (*askrows_text(st, 7))
			end_more(&x->mate, askrows_text(st, 7), sqlite3_column_int64(st, 8));
		if (strcmp(x->peer, askrows_text(st, 4)))
			more_peers(x, askrows_text(st, 4));
	}
	for (int i = 0; i < NET_SUMS; i++)
		x->sums[i] += (uint64_t)sqlite3_column_int64(st, FLOWS_COLUMNS + i);
	x->open_now += sqlite3_column_int64(st, 10);
	if (fresh || (sqlite3_column_int64(st, 9) < x->at) == r->first)
		x->at = sqlite3_column_int64(st, 9);
}

static void take_listener(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, sqlite3_column_int64(st, 0));
	struct netlisteners *l = r->listeners;

	if (!p)
		return;
	mem_grow(l->rows, l->n, r->cap);
	l->rows[l->n++] =
		(struct netlisteners_row){.who = end_new("", p->container, p->comm, p->pid),
					  .protocol = mem_strdup(askrows_text(st, 1)),
					  .address = mem_strdup(askrows_text(st, 2)),
					  .open_to = mem_strdup(askrows_text(st, 4)),
					  .port = sqlite3_column_int64(st, 3),
					  .backlog = sqlite3_column_int64(st, 6),
					  .backlog_max = sqlite3_column_int64(st, 7),
					  .dropped = sqlite3_column_int64(st, 8),
					  .repeated = sqlite3_column_int64(st, 9)};
}

static int read_all(struct reading *r, const char *sql, const struct askrows_sums *sums,
		    void (*take)(void *ctx, sqlite3_stmt *st), bool *known, struct err *e)
{
	const struct askrows_part parts[] = {{RECORDED, take_run, known, {{NULL}, RECORDED}},
					     {sql, take, r, *sums}};
	int rc = askrows_each(r->sel, &r->dict, parts, 2, e);

	idmap_release(&r->row_of);
	return rc;
}

static uint64_t weight(const struct netflows_row *r)
{
	return r->sums[NET_TX] + r->sums[NET_RX] +
	       1000 * (r->sums[NET_OPENED] + netflows_failed(r) + netflows_broken(r));
}

static int heavier(const void *a, const void *b)
{
	const struct netflows_row *x = a, *y = b;

	return weight(x) != weight(y) ? weight(x) < weight(y) ? 1 : -1 :
					strcmp(x->who.comm, y->who.comm);
}

static int read_flows(const struct selection *sel, enum netflows_by by, bool first,
		      struct netflows *out, struct err *e)
{
	struct reading r = {.sel = sel, .by = by, .out = out, .first = first};
	struct strbuf sql cleanup_strbuf = STRBUF_INIT, sums cleanup_strbuf = STRBUF_INIT;
	struct askrows_sums summed = {{"flow_row"}, NULL};
	int rc;

	*out = (struct netflows){0};
	strbuf_addstr(&sums, FLOWS_SUMMED_HEAD);
	strbuf_addstr(&sql, first ? FLOWS_HEAD("min") : FLOWS_HEAD("max"));
	for (int i = 0; i < NET_SUMS; i++) {
		strbuf_addf(&sql, ", sum(iif(ts >= ?1, coalesce(%s, 0), 0))", NETFLOWS_SUMS[i]);
		strbuf_addf(&sums, ", sum(coalesce(x.%s, 0))", NETFLOWS_SUMS[i]);
	}
	strbuf_addstr(&sums, FLOWS_SUMMED_TAIL);
	summed.sql = first ? NULL : strbuf_str(&sums);
	strbuf_addf(&sql, FLOWS_TAIL, first ? 0 : NETFLOWS_IDLE_S);
	rc = netnames_read(sel, &r.names, e);
	if (!rc)
		rc = read_all(&r, strbuf_str(&sql), &summed, take_flow, &out->known, e);
	netnames_release(&r.names);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), heavier);
	return rc;
}

int netflows_read(const struct selection *sel, enum netflows_by by, struct netflows *out,
		  struct err *e)
{
	return read_flows(sel, by, false, out, e);
}

int netflows_read_first(const struct selection *sel, enum netflows_by by, struct netflows *out,
			struct err *e)
{
	return read_flows(sel, by, true, out, e);
}

/* What others can reach first; then TCP and UDP, then Unix sockets; then by names. */
static int by_reach(const void *a, const void *b)
{
	const struct netlisteners_row *x = a, *y = b;
	int order = !strcmp(y->open_to, "network") - !strcmp(x->open_to, "network");

	order = order ? order : !strcmp(x->protocol, "unix") - !strcmp(y->protocol, "unix");
	order = order ? order : strcmp(x->who.container, y->who.container);
	order = order ? order : strcmp(x->who.comm, y->who.comm);
	return order ? order : (x->port > y->port) - (x->port < y->port);
}

int netlisteners_read(const struct selection *sel, struct netlisteners *out, struct err *e)
{
	struct reading r = {.sel = sel, .listeners = out};
	int rc;

	*out = (struct netlisteners){0};
	rc = read_all(&r, LISTENERS, &(struct askrows_sums){0}, take_listener, &out->known, e);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_reach);
	return rc;
}

static void end_release(struct netflows_end *x)
{
	free(x->host);
	free(x->container);
	free(x->comm);
}

void netflows_release(struct netflows *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct netflows_row *x = &f->rows[i];

		end_release(&x->who);
		end_release(&x->mate);
		free(x->side);
		free(x->protocol);
		free(x->peer);
		free(x->name);
		free(x->more_peers);
	}
	free(f->rows);
	*f = (struct netflows){0};
}

void netlisteners_release(struct netlisteners *l)
{
	for (size_t i = 0; i < l->n; i++) {
		end_release(&l->rows[i].who);
		free(l->rows[i].protocol);
		free(l->rows[i].address);
		free(l->rows[i].open_to);
	}
	free(l->rows);
	*l = (struct netlisteners){0};
}

/* ---- what a row says ---- */

uint64_t netflows_failed(const struct netflows_row *r)
{
	return r->sums[NET_REFUSED] + r->sums[NET_TIMED_OUT] + r->sums[NET_UNREACHABLE] +
	       r->sums[NET_GIVEN_UP] + r->sums[NET_FAILED];
}

uint64_t netflows_broken(const struct netflows_row *r)
{
	return r->sums[NET_RESET_IN] + r->sums[NET_RESET_OUT] + r->sums[NET_BROKEN];
}

/* RFC 1918, 6598 (carriers, and what VPNs use), 3927; RFC 4193 and link-local of IPv6. */
static const char *class4(const uint8_t a[4])
{
	if (a[0] == 127)
		return "loopback";
	if (a[0] == 10 || (a[0] == 172 && (a[1] & 0xf0) == 16) || (a[0] == 192 && a[1] == 168) ||
	    (a[0] == 169 && a[1] == 254))
		return "lan";
	return a[0] == 100 && (a[1] & 0xc0) == 64 ? "vpn" : "public";
}

const char *netflows_class(const char *address)
{
	static const uint8_t one[16] = {[15] = 1};
	uint8_t a[16];

	if (inet_pton(AF_INET, address, a) == 1)
		return class4(a);
	if (inet_pton(AF_INET6, address, a) != 1)
		return "";
	if (!memcmp(a, one, sizeof(one)))
		return "loopback";
	return (a[0] & 0xfe) == 0xfc || (a[0] == 0xfe && (a[1] & 0xc0) == 0x80) ? "lan" : "public";
}
