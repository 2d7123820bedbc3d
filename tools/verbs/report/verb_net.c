/* SPDX-License-Identifier: Apache-2.0 */
/* sonde net: connections of a range: who talks to whom, how much, how well, and what failed
 * (tools/net/netflows.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/verb.h"
#include "tools/net/netlive.h"
#include "tools/net/netprint.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/select/select.h"

struct net_args {
	uint64_t rows;
	const char *by;
	bool failed, retrans, listen, live;
};

/* clang-format off */
static const struct option NET_OPTIONS[] = {
	{"by", 0, OPTION_STRING, "WHAT", "command (default), process, container or peer", offsetof(struct net_args, by)},
	{"failed", 0, OPTION_FLAG, NULL, "only connections that failed, were reset or got no answer", offsetof(struct net_args, failed)},
	{"retrans", 0, OPTION_FLAG, NULL, "only connections with retransmissions", offsetof(struct net_args, retrans)},
	{"listen", 0, OPTION_FLAG, NULL, "show listening sockets: who may connect, and the backlog", offsetof(struct net_args, listen)},
	{"live", 0, OPTION_FLAG, NULL, "after the table, print each new connection as it appears, until Ctrl-C", offsetof(struct net_args, live)},
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 30; 0: all)", offsetof(struct net_args, rows)},
	{0},
};
/* clang-format on */

static const char *const NET_EXAMPLES[] = {
	"sonde net --last 15m",
	"sonde net web --failed",
	"sonde net --listen",
	"sonde net --live",
	NULL,
};

static int missing(const struct verb_call *call, bool known, const char *what, struct err *e)
{
	return select_nothing(call->sel, known ? NULL : "net", "connections", what,
			      select_is_narrow(call->sel) ? "sonde net" : "sonde status", e);
}

/* Keeps only the rows that the options select. */
static void keep(struct netflows *f, const struct net_args *a)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct netflows_row x = f->rows[i];
		bool in = (!a->failed && !a->retrans) ||
			  (a->failed && netflows_failed(&x) + netflows_broken(&x)) ||
			  (a->retrans && x.sums[NET_RETRANS]);

		f->rows[i] = f->rows[n];
		if (in)
			f->rows[n++] = x;
		else
			f->rows[i] = x;
	}
	f->shown = n;
}

static int flows_json(const struct verb_call *call, const struct netflows *f, size_t n)
{
	json_t *o = json_envelope("net", call->sel->from_ns, call->sel->to_ns);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(o), netprint_flow_json(&f->rows[i]));
	json_bound(o, f->shown);
	return json_print(o, stdout, 1);
}

static int flows_run(struct verb_call *call, const struct net_args *a, enum netflows_by by,
		     struct err *e)
{
	struct netflows f;
	int rc = netflows_read(call->sel, by, &f, e);

	if (!rc)
		keep(&f, a);
	if (!rc && !f.shown)
		rc = missing(call, f.known,
			     a->failed  ? "nothing failed" :
			     a->retrans ? "there were no retransmissions" :
					  "no connections",
			     e);
	else if (!rc && call->json)
		rc = flows_json(call, &f, table_rows(a->rows, f.shown));
	else if (!rc)
		table_answer(netprint_flows(&f, table_rows(a->rows, f.shown)),
			     table_rows(a->rows, f.shown), f.shown, call->wide, call->quiet);
	netflows_release(&f);
	return rc;
}

static int listeners_json(const struct verb_call *call, const struct netlisteners *l, size_t n)
{
	json_t *o = json_envelope("net", call->sel->from_ns, call->sel->to_ns);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(o), netprint_listener_json(&l->rows[i]));
	json_bound(o, l->n);
	return json_print(o, stdout, 1);
}

static int listeners_run(struct verb_call *call, const struct net_args *a, struct err *e)
{
	struct netlisteners l;
	int rc = netlisteners_read(call->sel, &l, e);

	if (!rc && !l.n)
		rc = missing(call, l.known, "no listening sockets", e);
	else if (!rc && call->json)
		rc = listeners_json(call, &l, table_rows(a->rows, l.n));
	else if (!rc)
		table_answer(netprint_listeners(&l, table_rows(a->rows, l.n)),
			     table_rows(a->rows, l.n), l.n, call->wide, call->quiet);
	netlisteners_release(&l);
	return rc;
}

static int by_of(const struct net_args *a, enum netflows_by *by, struct err *e)
{
	*by = NETFLOWS_BY_COMMAND;
	if (!a->by || netflows_by(a->by, by))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--by %s: must be one of " NETFLOWS_BY_NAMES, a->by);
	err_fix(e, "sonde net --by peer");
	return -EINVAL;
}

/* Prints the connections so far (not as JSON), then each new one. */
static int live_run(struct verb_call *call, const struct net_args *a, enum netflows_by by,
		    struct err *e)
{
	int rc = 0;

	if (a->failed || a->retrans || a->listen) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--live prints new connections and their first problem; it cannot be combined with --failed, --retrans or --listen");
		err_fix(e, "sonde net --live");
		return -EINVAL;
	}
	rc = netlive_check(call, e);
	if (!rc && !call->json)
		rc = flows_run(call, a, by, e);
	if (rc && e->exit == EXIT_NOTHING)
		rc = 0;
	return rc ? rc : netlive_run(call, e);
}

static int net_run(struct verb_call *call, struct err *e)
{
	const struct net_args *a = call->args;
	enum netflows_by by;
	int rc = by_of(a, &by, e);

	if (!rc && a->live)
		return live_run(call, a, by, e);
	if (!rc)
		rc = a->listen ? listeners_run(call, a, e) : flows_run(call, a, by, e);
	return verb_flush(rc, e);
}

static bool net_pages(const struct verb_call *call)
{
	return !((const struct net_args *)call->args)->live;
}

const struct verb verb_net = {
	.name = "net",
	.summary = "show connections: who talks to whom, how much, how well, and what failed",
	.usage = "[WHAT] [--by WHAT] [--failed | --retrans | --listen | --live] [-n N]",
	.examples = NET_EXAMPLES,
	.options = NET_OPTIONS,
	.args_size = sizeof(struct net_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.pages = net_pages,
	.run = net_run,
};
