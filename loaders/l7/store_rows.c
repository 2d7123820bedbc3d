/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/store_rows.h"
#include "loaders/l7/links.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/l7.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/l7.h"
#include "schema/facts/net.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/requests.h"
#include "schema/store/write/writer.h"

/* More than the single requests of one bucket; in the ring, more than a bucket has of which all
 * began in one second. Bounded, because each number is a text of the dictionary. */
#define NTH_MOST  4096
#define RING_MOST 16384

struct store_rows_who {
	struct msg_process process;
	uint32_t row, epoch;
	bool excluded, unknown;
	UT_hash_handle hh;
};

/* A process that has executed another program keeps its sockets. */
static struct hostmaps_process *process_of(struct family_host *h, const struct msg_process *process)
{
	struct hostmaps_process *p = hostmaps_process(h->maps, process->tgid, process->start_ns,
						      process->exec_id),
				*now;

	if (p)
		return p;
	now = hostmaps_running(h->maps, process->tgid);
	return now && now->start_ns == process->start_ns ? now : NULL;
}

/* By what the probes kept of it at its first connection. 0: they have nothing. */
static uint32_t row_kept(const struct store_rows *b, const struct msg_process *process)
{
	const struct l7_who_key key = {
		.start_ns = process->start_ns, .tgid = process->tgid, .exec_id = process->exec_id};
	struct stack_event ev = {.start_ns = process->start_ns,
				 .tgid = process->tgid,
				 .tid = process->tgid,
				 .exec_id = process->exec_id};
	struct l7_who who;

	if (bpf_map_lookup_elem(b->whos_fd, &key, &who))
		return 0;
	ev.cgroup_id = who.cgroup_id;
	memcpy(ev.thread, who.comm, sizeof(who.comm));
	return naming_stranger(b->h->naming, &ev);
}

static void row_ask(struct store_rows *b, struct store_rows_who *w, struct family_host *h)
{
	struct hostmaps_process *m = w->process.start_ns ? process_of(h, &w->process) : NULL;
	const struct store_process unknown = {
		.pid = w->process.tgid,
		.exec_id = w->process.exec_id,
		.start_ticks = w->process.start_ns,
		.comm = STORE_PROCESS_UNKNOWN,
		.start_ns = w->process.start_ns ? (int64_t)w->process.start_ns + h->offset_ns : 0,
		.exe = "",
		.args = "",
		.cgroup = "",
		.unit = ""};

	w->epoch = store_epoch(h->store);
	w->excluded = m && naming_excludes(h->naming, m);
	w->unknown = false;
	w->row = w->excluded         ? naming_excluded_process(h->naming) :
		 m                   ? naming_row(h->naming, m) :
		 w->process.start_ns ? row_kept(b, &w->process) :
				       0;
	if (w->row || !w->process.start_ns)
		return;
	w->unknown = true;
	w->row = store_process(h->store, &unknown);
}

static struct store_rows_who *who_get(struct store_rows *b, const struct msg_process *process)
{
	struct store_rows_who *w;

	HASH_FIND(hh, b->all, process, sizeof(*process), w);
	if (!w) {
		w = mem_alloc(sizeof(*w));
		w->process = *process;
		HASH_ADD(hh, b->all, process, sizeof(w->process), w);
		row_ask(b, w, b->h);
	} else if (w->epoch != store_epoch(b->h->store)) {
		row_ask(b, w, b->h);
	}
	return w;
}

void store_rows_fresh(struct store_rows *b)
{
	struct store_rows_who *w, *next;

	HASH_ITER (hh, b->all, w, next) {
		HASH_DEL(b->all, w);
		free(w);
	}
}

void store_rows_release(struct store_rows *b)
{
	health_release(&b->health);
	store_rows_fresh(b);
}

static const char *side_word(uint8_t side)
{
	return side == STORE_SIDE_CLIENT ? "client" :
	       side == STORE_SIDE_SERVER ? "server" :
					   "capture";
}

static const char *const RESULTS[] = {"ok", "error", "one-way", "opened", "no-answer", "blind"};
static const char *const WHY[] = {"", "failed", "slow", "sample", "linked", "ring"};
static const char *const HOW[LINK_HOWS] = {"", "thread", "opener", "bytes", "goroutine", "several"};

_Static_assert(REQUEST_TAG_GOROUTINE == TABLES_TAG_GOROUTINE, "same bit");
_Static_assert((int)PART_TO_FIRST == (int)STORE_PART_FIRST &&
		       (int)PART_QUEUED == (int)STORE_PART_QUEUE,
	       "same numbers");

/* ---- rows ---- */

/* Without its numbers. */
static struct store_request request_of(const struct message *x, const struct store_rows_who *w)
{
	return (struct store_request){.part = STORE_PART_WHOLE,
				      .process = w->row,
				      .side = (enum store_side)x->about->side,
				      .result = (enum store_result)x->about->result,
				      .protocol = x->text[MSG_PROTOCOL],
				      .service = w->excluded ? "" : x->text[MSG_SERVICE],
				      .operation = w->excluded ? NAMING_EXCLUDED :
								 x->text[MSG_OPERATION],
				      .status = x->text[MSG_STATUS],
				      .steps = x->steps,
				      .n_steps = x->n_steps,
				      .first_step = x->first_step};
}

static int sum_put(struct store_rows *b, const struct message *x, const struct store_rows_who *w)
{
	struct store_request r = request_of(x, w);

	r.n = x->sum->n;
	r.total_ns = x->sum->total_ns;
	r.max_ns = x->sum->max_ns;
	r.request_bytes = x->sum->request_bytes;
	r.response_bytes = x->sum->response_bytes;
	return store_request(b->h->store, b->h->run, x->about->utc_ns, &r);
}

static int part_put(struct store_rows *b, const struct message *x, const struct store_rows_who *w)
{
	struct store_request r = request_of(x, w);

	r.part = (enum store_part)x->part->part;
	r.n = x->part->n;
	r.total_ns = x->part->total_ns;
	r.max_ns = x->part->max_ns;
	return store_request(b->h->store, b->h->run, x->about->utc_ns, &r);
}

static void unresolved_put(void *ctx, const struct unresolved_one *x)
{
	struct store_rows *b = ctx;
	char detail[64];
	const struct event e = {.kind = "not resolved",
				.subject = "name",
				.name = x->name,
				.detail = detail,
				.utc_ns = x->utc_ns,
				.n = x->n,
				.process = process_of(b->h, &x->process)};

	snprintf(detail, sizeof(detail), *x->comm ? "%s, asked by %s" : "%s",
		 *x->why ? x->why : "several reasons", x->comm);
	event_put(b->h, &e);
}

void store_rows_unresolved(struct store_rows *b, struct family_host *h, int64_t now_ns)
{
	b->h = h;
	unresolved_due(&b->unresolved, now_ns, unresolved_put, b);
}

static void ill_tell(void *ctx, const char *cause, const char *why)
{
	event_tell(((struct store_rows *)ctx)->h, cause, why);
}

void store_rows_health(struct store_rows *b, struct family_host *h, int64_t now_ns)
{
	b->h = h;
	health_due(&b->health, now_ns, ill_tell, b);
}

/* As the service itself answered. */
static void health_note(struct store_rows *b, const struct message *x,
			const struct store_rows_who *w)
{
	bool failed = x->about->result == STORE_RESULT_ERROR ||
		      x->about->result == STORE_RESULT_NO_ANSWER;

	if (!w->excluded && x->about->side == STORE_SIDE_SERVER &&
	    (failed || x->about->result == STORE_RESULT_OK))
		health_add(&b->health, x->text[MSG_SERVICE], x->sum->n, failed ? x->sum->n : 0,
			   x->steps, x->first_step, x->n_steps, clock_boot_ns());
}

/* Client side only: a name server that passes a query on would be counted twice. */
static void unresolved_note(struct store_rows *b, const struct message *x,
			    const struct store_rows_who *w)
{
	bool silent = x->about->result == STORE_RESULT_NO_ANSWER;
	const struct hostmaps_process *p;
	struct unresolved_one one = {
		.process = x->about->process, .n = x->sum->n, .utc_ns = x->about->utc_ns};

	if (w->excluded || x->about->side != STORE_SIDE_CLIENT ||
	    strcmp(x->text[MSG_PROTOCOL], "dns") ||
	    (!silent && (!*x->text[MSG_STATUS] || !strcmp(x->text[MSG_STATUS], "NOERROR"))))
		return;
	p = process_of(b->h, &x->about->process);
	snprintf(one.name, sizeof(one.name), "%.*s", (int)sizeof(one.name) - 1,
		 x->text[MSG_OPERATION]);
	snprintf(one.why, sizeof(one.why), "%.*s", (int)sizeof(one.why) - 1,
		 silent ? "no answer" : x->text[MSG_STATUS]);
	snprintf(one.comm, sizeof(one.comm), "%s", p ? p->comm : "");
	unresolved_add(&b->unresolved, &one, clock_boot_ns(), unresolved_put, b);
}

/* A row of a single request, in the store or in the flight ring alone. */
static int of_single_put(struct store_rows *b, const struct message *x, const struct fact *f,
			 const struct fact_row *row)
{
	return x->single->why == SINGLE_RING ?
		       store_fact_fine(b->h->store, b->h->run, x->about->utc_ns, f, row) :
		       store_fact(b->h->store, b->h->run, x->about->utc_ns, f, row);
}

/* Links samples with this tag to the request. */
static int tag_put(struct store_rows *b, const struct message *x, const struct store_rows_who *w)
{
	struct fact_row row = {0};

	if (!x->single->tag || x->single->why == SINGLE_RING ||
	    (x->about->result != STORE_RESULT_OK && x->about->result != STORE_RESULT_ERROR))
		return 0;
	fact_put(&row, REQUEST_TAG_PROCESS, w->row);
	fact_put(&row, REQUEST_TAG_TAG, x->single->tag);
	fact_put_text(&row, REQUEST_TAG_OPERATION, x->text[MSG_OPERATION]);
	fact_put_text(&row, REQUEST_TAG_RESULT, RESULTS[x->about->result]);
	fact_put(&row, REQUEST_TAG_TOTAL, x->single->total_ns / 1000);
	return store_fact(b->h->store, b->h->run, x->about->utc_ns, &REQUEST_TAG_FACT, &row);
}

static int span_put(struct store_rows *b, const struct message *x, const struct store_rows_who *w,
		    const char *nth)
{
	const struct msg_single *s = x->single;
	const uint64_t most = (1ull << LINK_BITS) - 1;
	struct fact_row row = {0};

	if (!s->span)
		return 0;
	fact_put(&row, REQUEST_SPAN_PROCESS, w->row);
	fact_put_text(&row, REQUEST_SPAN_SIDE, side_word(x->about->side));
	fact_put(&row, REQUEST_SPAN_SPAN, s->span & most);
	fact_put_text(&row, REQUEST_SPAN_NTH, nth);
	if (s->parent)
		fact_put(&row, REQUEST_SPAN_PARENT, s->parent & most);
	if (s->caller)
		fact_put(&row, REQUEST_SPAN_CALLER, s->caller & most);
	fact_put_text(&row, REQUEST_SPAN_HOW, HOW[s->how]);
	if (s->partial)
		fact_put(&row, REQUEST_SPAN_PARTIAL, 1);
	return of_single_put(b, x, &REQUEST_SPAN_FACT, &row);
}

static int single_put(struct store_rows *b, const struct message *x, const struct store_rows_who *w)
{
	const struct msg_single *s = x->single;
	struct fact_row row = {0};
	char nth[16];
	uint32_t n;
	int err;

	if (s->why == SINGLE_RING)
		n = b->ringed = (b->ringed + 1) % RING_MOST;
	else
		n = b->singles = (b->singles + 1) % NTH_MOST;
	snprintf(nth, sizeof(nth), "%u", n);
	fact_put_text(&row, REQUEST_LOG_NTH, nth);
	fact_put(&row, REQUEST_LOG_PROCESS, w->row);
	fact_put_text(&row, REQUEST_LOG_SIDE, side_word(x->about->side));
	fact_put_text(&row, REQUEST_LOG_PROTOCOL, x->text[MSG_PROTOCOL]);
	fact_put_text(&row, REQUEST_LOG_SERVICE, x->text[MSG_SERVICE]);
	fact_put_text(&row, REQUEST_LOG_OPERATION, x->text[MSG_OPERATION]);
	fact_put(&row, REQUEST_LOG_AT, (uint64_t)s->at_ns / 1000);
	fact_put_text(&row, REQUEST_LOG_STATUS, x->text[MSG_STATUS]);
	fact_put_text(&row, REQUEST_LOG_RESULT, RESULTS[x->about->result]);
	fact_put_text(&row, REQUEST_LOG_WHY, WHY[s->why]);
	fact_put(&row, REQUEST_LOG_WEIGHT, s->weight);
	fact_put(&row, REQUEST_LOG_TID, s->tid);
	if (x->about->result == STORE_RESULT_OK || x->about->result == STORE_RESULT_ERROR) {
		fact_put(&row, REQUEST_LOG_FIRST, s->first_ns / 1000);
		fact_put(&row, REQUEST_LOG_TOTAL, s->total_ns / 1000);
	}
	fact_put(&row, REQUEST_LOG_ASKED, s->request_bytes);
	fact_put(&row, REQUEST_LOG_ANSWERED, s->response_bytes);
	fact_put_text(&row, REQUEST_LOG_TRACE, x->text[MSG_TRACE]);
	err = of_single_put(b, x, &REQUEST_LOG_FACT, &row);
	err = err ? err : tag_put(b, x, w);
	return err ? err : span_put(b, x, w, nth);
}

static int bytes_put(struct store_rows *b, const struct message *x, const struct store_rows_who *w)
{
	const struct byte_counts *n = &x->bytes->count;
	struct fact_row row = {0};

	fact_put(&row, REQUEST_BYTES_PROCESS, w->row);
	fact_put_text(&row, REQUEST_BYTES_SIDE, side_word(x->about->side));
	fact_put_text(&row, REQUEST_BYTES_PROTOCOL, x->text[MSG_PROTOCOL]);
	fact_put_text(&row, REQUEST_BYTES_SERVICE, w->excluded ? "" : x->text[MSG_SERVICE]);
	fact_put(&row, REQUEST_BYTES_SEEN, n->seen);
	fact_put(&row, REQUEST_BYTES_PARSED, n->parsed);
	fact_put(&row, REQUEST_BYTES_SKIPPED, n->skipped);
	fact_put(&row, REQUEST_BYTES_BLIND, n->blind);
	fact_put(&row, REQUEST_BYTES_REQUESTS, n->blind_requests);
	return store_fact(b->h->store, b->h->run, x->about->utc_ns, &REQUEST_BYTES_FACT, &row);
}

static int named_put(struct store_rows *b, const struct message *x, const struct store_rows_who *w)
{
	struct fact_row row = {0};

	if (w->excluded || !*x->text[MSG_NAME] || !*x->text[MSG_ADDRESS])
		return 0;
	fact_put(&row, PEER_NAME_PROCESS, w->row);
	fact_put_text(&row, PEER_NAME_ADDRESS, x->text[MSG_ADDRESS]);
	fact_put_text(&row, PEER_NAME_NAME, x->text[MSG_NAME]);
	fact_put_text(&row, PEER_NAME_HOW, "dns");
	fact_put(&row, PEER_NAME_COUNT, 1);
	return store_fact(b->h->store, b->h->run, x->about->utc_ns, &PEER_NAME_FACT, &row);
}

/* Of a mark (id 0) the process is 0. */
static int running_put(struct store_rows *b, const struct message *x,
		       const struct store_rows_who *w)
{
	const struct msg_running *m = x->running;
	const uint64_t most = (1ull << LINK_BITS) - 1;
	struct fact_row row = {0};
	bool told = m->end_ns || x->about->result == STORE_RESULT_OPENED;

	fact_put(&row, REQUEST_RUNNING_PROCESS, m->id ? w->row : 0);
	fact_put_text(&row, REQUEST_RUNNING_SIDE, m->id ? side_word(x->about->side) : "");
	fact_put(&row, REQUEST_RUNNING_ID, m->id & most);
	fact_put_text(&row, REQUEST_RUNNING_PROTOCOL, x->text[MSG_PROTOCOL]);
	fact_put_text(&row, REQUEST_RUNNING_SERVICE, x->text[MSG_SERVICE]);
	fact_put_text(&row, REQUEST_RUNNING_OPERATION, x->text[MSG_OPERATION]);
	fact_put_text(&row, REQUEST_RUNNING_CLIENT, x->text[MSG_ADDRESS]);
	fact_put_text(&row, REQUEST_RUNNING_TRACE, x->text[MSG_TRACE]);
	fact_put_text(&row, REQUEST_RUNNING_RESULT, told ? RESULTS[x->about->result] : "");
	fact_put(&row, REQUEST_RUNNING_AT, (uint64_t)m->at_ns / 1000);
	fact_put(&row, REQUEST_RUNNING_SEEN, (uint64_t)m->seen_ns / 1000);
	if (!m->id)
		fact_put(&row, REQUEST_RUNNING_OTHERS, m->others);
	if (m->end_ns)
		fact_put(&row, REQUEST_RUNNING_END, (uint64_t)m->end_ns / 1000);
	if (m->first_ns)
		fact_put(&row, REQUEST_RUNNING_FIRST, m->first_ns / 1000);
	if (m->exchange)
		fact_put(&row, REQUEST_RUNNING_EXCHANGE, m->exchange & most);
	if (m->port)
		fact_put(&row, REQUEST_RUNNING_PORT, m->port);
	if (m->id) {
		fact_put(&row, REQUEST_RUNNING_TID, m->tid);
		fact_put(&row, REQUEST_RUNNING_ASKED, m->request_bytes);
		fact_put(&row, REQUEST_RUNNING_ANSWERED, m->response_bytes);
	}
	return store_fact(b->h->store, b->h->run, x->about->utc_ns, &REQUEST_RUNNING_FACT, &row);
}

void store_rows_put(struct store_rows *b, struct family_host *h, const struct message *x)
{
	static int (*const put[MSG_KINDS])(struct store_rows * b, const struct message *x,
					   const struct store_rows_who *w) = {
		[MSG_SUM] = sum_put,     [MSG_PART] = part_put,   [MSG_SINGLE] = single_put,
		[MSG_BYTES] = bytes_put, [MSG_NAMED] = named_put, [MSG_RUNNING] = running_put,
	};
	bool ring = x->kind == MSG_SINGLE && x->single->why == SINGLE_RING;
	uint64_t events = x->kind == MSG_SUM ?
				  x->sum->n :
				  x->kind != MSG_PART && x->kind != MSG_RUNNING && !ring;
	struct store_rows_who *w;
	int err = -ESTALE;

	b->h = h;
	if ((x->kind == MSG_SINGLE || x->kind == MSG_RUNNING) &&
	    who_get(b, &x->about->process)->excluded)
		return;
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		w = who_get(b, &x->about->process);
		err = put[x->kind](b, x, w);
	}
	if (!err && x->kind == MSG_SUM) {
		b->unknown += w->unknown ? x->sum->n : 0;
		unresolved_note(b, x, w);
		health_note(b, x, w);
	}
	h->processes = HASH_COUNT(b->all) > h->processes ? HASH_COUNT(b->all) : h->processes;
	if (err)
		h->refused += events;
	else
		h->added += events;
}

void store_rows_unseen(struct store_rows *b, struct family_host *h, uint64_t bytes, int64_t now_ns)
{
	struct msg_bytes m = {.about.utc_ns = now_ns + h->offset_ns,
			      .count = {.seen = bytes, .blind = bytes}};
	struct message x = {.kind = MSG_BYTES, .bytes = &m, .about = &m.about};

	store_rows_put(b, h, &x);
}

void store_rows_restart(struct store_rows *b, struct family_host *h, int64_t now_ns)
{
	struct msg_running m = {.about.utc_ns = now_ns + h->offset_ns,
				.at_ns = now_ns + h->offset_ns,
				.seen_ns = now_ns + h->offset_ns};
	struct message x = {.kind = MSG_RUNNING, .running = &m, .about = &m.about};

	store_rows_put(b, h, &x);
}
