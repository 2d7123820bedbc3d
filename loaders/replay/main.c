/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-replay: reads a packet capture, says what requests it holds. Use `sonde replay FILE`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/replay/capture.h"
#include "loaders/replay/flows.h"
#include "loaders/replay/print.h"
#include "loaders/replay/save.h"
#include "schema/base/cli/options.h"
#include "schema/base/err.h"

#define DEFAULT_LIMIT 50

struct replay {
	const char *path, *store;
	bool requests, json, quiet;
	enum proto_payload payload;
	size_t limit;
	struct protocols *protocols;
	struct tally *tally;
	struct keep *keep; /* NULL: it is shown */
	int kept;          /* what came of it */
	struct flows *flows;
	uint64_t n, blind;
	uint64_t n_strange; /* packets of links that are not read */
	int strange;        /* the first such link */
};

static void take(void *ctx, const struct proto_request *r)
{
	struct replay *m = ctx;
	char service[TALLY_SERVICE_MAX];
	struct flow_ends ends;

	flow_ends(r->user, &ends);
	m->n++;
	m->blind += r->result == PROTO_BLIND;
	if (m->requests) {
		print_request(stdout, r, &ends, m->json);
		return;
	}
	print_service(&ends, service);
	if (m->keep) {
		m->kept = m->kept ? m->kept : save_add(m->keep, m->protocols, r, service);
		return;
	}
	tally_add(m->tally, r, service);
}

static const struct program PROGRAM = {
	.name = "sonde-replay",
	.usage = "[options] FILE",
	.about =
		"Shows the requests of a packet capture (pcap, pcapng; - is standard input). Use sonde replay FILE.",
	.words = 1,
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"requests", 0, OPTION_FLAG, NULL, "print one line per request instead of the table", OPTION_AT(struct replay, requests)},
	{"limit", 0, OPTION_UINT, "N", "how many rows of the table (default 50)", OPTION_AT(struct replay, limit)},
	{"payload", 0, OPTION_ENUM, "masked|full|none", "what to show of the payload (default masked)", OPTION_AT(struct replay, payload)},
	{"store", 0, OPTION_STRING, "DIR", "add sums to this store instead", OPTION_AT(struct replay, store)},
	{"json", 0, OPTION_FLAG, NULL, "print JSON", OPTION_AT(struct replay, json)},
	{"quiet", 0, OPTION_FLAG, NULL, "no notes on standard error", OPTION_AT(struct replay, quiet)},
	{0},
};
/* clang-format on */
_Static_assert(PROTO_MASKED == 0 && PROTO_FULL == 1 && PROTO_NONE == 2,
	       "in the order of --payload's words");

static int options(struct replay *m, int argc, char **argv, struct err *e)
{
	struct option_words words;
	int rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, m}, 1, &words,
				 e);

	if (!rc && !words.n)
		rc = err_set(e, -EINVAL, EXIT_USAGE, "which capture? One file");
	if (!rc && m->store && (m->requests || m->json))
		rc = err_set(e, -EINVAL, EXIT_USAGE,
			     "--store keeps sums; each request is shown without it");
	if (!rc)
		m->path = words.items[0];
	options_release(NULL, 0, &words);
	return rc;
}

/* A packet of a link that is not known here. */
static void strange(struct replay *m, int link)
{
	m->n_strange++;
	m->strange = m->n_strange == 1 ? link : m->strange;
}

/* A capture that ends within a packet has told what it had. */
static int read_packets(struct replay *m, struct capture *c, struct err *e)
{
	struct pcapng_packet got;
	struct packet packet;
	uint64_t n = 0;
	int rc;

	while ((rc = capture_next(c, &got)) == 1) {
		n++;
		if (!packet_link_known(got.link)) {
			strange(m, got.link);
			continue;
		}
		packet_parse(got.link, got.bytes, got.len, got.size, &packet);
		flows_packet(m->flows, &packet, got.at_ns);
	}
	if (rc && !n)
		return err_set(e, -EIO, EXIT_RUNTIME, "%.300s: %.200s", m->path, capture_why(c));
	if (rc && !m->quiet)
		fprintf(stderr, "sonde-replay: %s: %s: this is what came before\n", m->path,
			capture_why(c));
	if (n && n == m->n_strange)
		return err_set(e, -ENOTSUP, EXIT_USAGE,
			       "%.300s is a capture of %s packets; read are " PACKET_LINKS, m->path,
			       capture_link_name(m->strange));
	if (m->n_strange && !m->quiet)
		fprintf(stderr,
			"sonde-replay: %s: %llu of %llu packets are not read: they are of other links (%s); read are " PACKET_LINKS
			"\n",
			m->path, (unsigned long long)m->n_strange, (unsigned long long)n,
			capture_link_name(m->strange));
	return 0;
}

static int show(struct replay *m, struct err *e)
{
	struct flows_stat stat;
	struct tally_row **rows;
	size_t n;

	flows_stat(m->flows, &stat);
	rows = tally_rows(m->tally, m->protocols, &n);
	if (m->json && !m->requests)
		print_json(stdout, rows, n, &stat);
	else if (!m->requests && n && !m->keep)
		print_table(stdout, rows, n, m->limit);
	if (!m->quiet && !m->json)
		print_loss(stderr, &stat, m->blind);
	if (m->n && m->store && !m->quiet)
		fprintf(stderr,
			"stored %llu requests of %s\nnext:  sonde sql --store %s 'SELECT operation, sum(requests), sum(errors) FROM requests GROUP BY 1'\n",
			(unsigned long long)m->n, m->path, m->store);
	if (m->n)
		return 0;
	if (stat.answers_only)
		return err_set(
			e, -ENODATA, EXIT_NOTHING,
			"%.300s holds answers, and no request: of %llu of %llu connections only the server's side was captured",
			m->path, (unsigned long long)stat.answers_only,
			(unsigned long long)stat.connections);
	err_set(e, -ENODATA, EXIT_NOTHING,
		"%.300s holds no request of a known protocol (%llu packets, %llu connections)",
		m->path, (unsigned long long)stat.packets, (unsigned long long)stat.connections);
	err_fix(e,
		stat.others ?
			"%llu packets are neither TCP nor UDP, nor tunnels of them that are read (" PACKET_READ
			")" :
		stat.connections || !stat.packets ?
			"sonde replay reads what is not encrypted; tcpdump -s 0 keeps whole packets" :
			"all %llu packets are datagrams; tunnels in them are read (" PACKET_READ
			") at their own ports",
		(unsigned long long)(stat.others ? stat.others : stat.packets));
	return -ENODATA;
}

int main(int argc, char **argv)
{
	struct replay m = {.limit = DEFAULT_LIMIT};
	struct proto_opts opts = {.emit = take, .ctx = &m};
	struct err e = {0};
	struct capture *capture = NULL;
	int rc = options(&m, argc, argv, &e);

	if (rc)
		return program_end(PROGRAM.name, rc, &e);
	if (capture_open(m.path, &capture, &e))
		return err_report(&e, "sonde-replay");
	if (m.store && save_open(m.store, m.path, &m.keep, &e)) {
		capture_close(capture);
		return err_report(&e, "sonde-replay");
	}
	opts.payload = m.payload;
	m.protocols = protocols_new(&opts);
	m.tally = tally_new();
	m.flows = flows_new(m.protocols);
	rc = read_packets(&m, capture, &e);
	flows_end(m.flows);
	if (m.keep) {
		int closed = save_close(m.keep, m.protocols, rc ? &(struct err){0} : &e);

		rc = rc     ? rc :
		     m.kept ? err_set(&e, m.kept, EXIT_STORE, "the store did not take it: %s",
				      strerror(-m.kept)) :
			      closed;
	}
	if (!rc)
		rc = show(&m, &e);
	capture_close(capture);
	flows_free(m.flows);
	tally_free(m.tally);
	protocols_free(m.protocols);
	return rc ? err_report(&e, "sonde-replay") : 0;
}
