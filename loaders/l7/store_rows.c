// SPDX-License-Identifier: Apache-2.0
#include "loaders/l7/store_rows.h"
#include "loaders/l7/links.h"

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

/* more than one bucket has of single requests, in any order of buckets; each is a text of the
 * dictionary */
#define NTH_MOST 4096

struct store_rows_who {
	struct said_who who;
	uint32_t row, epoch;
	bool excluded;
	UT_hash_handle hh;
};

/* One that has executed another program since keeps its sockets. */
static struct hostmaps_process *process_of(struct family_host *h, const struct said_who *who)
{
	struct hostmaps_process *p = hostmaps_process(h->maps, who->tgid, who->start_ns,
						      who->exec_id),
				*now;

	if (p)
		return p;
	now = hostmaps_running(h->maps, who->tgid);
	return now && now->start_ns == who->start_ns ? now : NULL;
}

static void row_ask(struct store_rows_who *w, struct family_host *h)
{
	struct hostmaps_process *m = w->who.start_ns ? process_of(h, &w->who) : NULL;
	const struct store_process unknown = {
		.pid = w->who.tgid,
		.exec_id = w->who.exec_id,
		.start_ticks = w->who.start_ns,
		.comm = STORE_PROCESS_UNKNOWN,
		.start_ns = w->who.start_ns ? (int64_t)w->who.start_ns + h->offset_ns : 0,
		.exe = "",
		.args = "",
		.cgroup = "",
		.unit = ""};

	w->epoch = store_epoch(h->store);
	w->excluded = m && naming_excludes(h->naming, m);
	w->row = w->excluded     ? naming_excluded_process(h->naming) :
		 m               ? naming_row(h->naming, m) :
		 w->who.start_ns ? store_process(h->store, &unknown) :
				   0;
}

static struct store_rows_who *who_get(struct store_rows *b, const struct said_who *who)
{
	struct store_rows_who *w;

	HASH_FIND(hh, b->all, who, sizeof(*who), w);
	if (!w) {
		w = mem_alloc(sizeof(*w));
		w->who = *who;
		HASH_ADD(hh, b->all, who, sizeof(w->who), w);
		row_ask(w, b->h);
	} else if (w->epoch != store_epoch(b->h->store)) {
		row_ask(w, b->h);
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
	store_rows_fresh(b);
}

static const char *side_word(uint8_t side)
{
	return side == STORE_SIDE_CLIENT ? "client" :
	       side == STORE_SIDE_SERVER ? "server" :
					   "capture";
}

static const char *const RESULTS[] = {"ok", "error", "one-way", "opened", "no-answer", "blind"};
static const char *const WHY[] = {"", "failed", "slow", "sample", "linked"};
static const char *const HOW[] = {"", "thread", "opener", "bytes", "goroutine", "", "", ""};

_Static_assert(REQUEST_TAG_GOROUTINE == TABLES_TAG_GOROUTINE, "same bit");
_Static_assert((int)SAID_TO_FIRST == (int)STORE_PART_FIRST &&
		       (int)SAID_QUEUED == (int)STORE_PART_QUEUE,
	       "same numbers");

/* ---- rows ---- */

static int sum_put(struct store_rows *b, const struct heard *x, const struct store_rows_who *w)
{
	const uint64_t *n = x->s->number;
	const struct store_request r = {
		.part = x->s->what == SAID_PART ? (enum store_part)x->s->why : STORE_PART_WHOLE,
		.process = w->row,
		.side = (enum store_side)x->s->side,
		.result = (enum store_result)x->s->result,
		.protocol = x->text[SAID_PROTOCOL],
		.service = w->excluded ? "" : x->text[SAID_SERVICE],
		.operation = w->excluded ? NAMING_EXCLUDED : x->text[SAID_OPERATION],
		.status = x->text[SAID_STATUS],
		.n = n[SAID_N],
		.total_ns = n[SAID_TOTAL],
		.max_ns = n[SAID_MAX],
		.request_bytes = n[SAID_REQUEST_BYTES],
		.response_bytes = n[SAID_RESPONSE_BYTES],
		.steps = x->steps,
		.n_steps = x->s->n_steps,
		.first_step = x->s->first_step};

	return store_request(b->h->store, b->h->run, x->s->utc_ns, &r);
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
				.process = process_of(b->h, &x->who)};

	snprintf(detail, sizeof(detail), *x->comm ? "%s, asked by %s" : "%s",
		 *x->why ? x->why : "several reasons", x->comm);
	event_put(b->h, &e);
}

void store_rows_unresolved(struct store_rows *b, struct family_host *h, int64_t now_ns)
{
	b->h = h;
	unresolved_due(&b->unresolved, now_ns, unresolved_put, b);
}

/* Of who asked alone: a server of names that asks others is one, too. */
static void unresolved_note(struct store_rows *b, const struct heard *x,
			    const struct store_rows_who *w)
{
	bool silent = x->s->result == STORE_RESULT_NO_ANSWER;
	const struct hostmaps_process *p;
	struct unresolved_one one = {
		.who = x->s->who, .n = x->s->number[SAID_N], .utc_ns = x->s->utc_ns};

	if (w->excluded || x->s->side != STORE_SIDE_CLIENT ||
	    strcmp(x->text[SAID_PROTOCOL], "dns") ||
	    (!silent && (!*x->text[SAID_STATUS] || !strcmp(x->text[SAID_STATUS], "NOERROR"))))
		return;
	p = process_of(b->h, &x->s->who);
	snprintf(one.name, sizeof(one.name), "%.*s", (int)sizeof(one.name) - 1,
		 x->text[SAID_OPERATION]);
	snprintf(one.why, sizeof(one.why), "%.*s", (int)sizeof(one.why) - 1,
		 silent ? "no answer" : x->text[SAID_STATUS]);
	snprintf(one.comm, sizeof(one.comm), "%s", p ? p->comm : "");
	unresolved_add(&b->unresolved, &one, clock_boot_ns(), unresolved_put, b);
}

/* How samples find it. */
static int tag_put(struct store_rows *b, const struct heard *x, const struct store_rows_who *w)
{
	struct fact_row row = {0};

	if (!x->s->number[SAID_TAG] ||
	    (x->s->result != STORE_RESULT_OK && x->s->result != STORE_RESULT_ERROR))
		return 0;
	fact_put(&row, REQUEST_TAG_PROCESS, w->row);
	fact_put(&row, REQUEST_TAG_TAG, x->s->number[SAID_TAG]);
	fact_put_text(&row, REQUEST_TAG_OPERATION, x->text[SAID_OPERATION]);
	fact_put_text(&row, REQUEST_TAG_RESULT, RESULTS[x->s->result]);
	fact_put(&row, REQUEST_TAG_TOTAL, x->s->number[SAID_WHOLE] / 1000);
	return store_fact(b->h->store, b->h->run, x->s->utc_ns, &REQUEST_TAG_FACT, &row);
}

static int span_put(struct store_rows *b, const struct heard *x, const struct store_rows_who *w,
		    const char *nth)
{
	const uint64_t *n = x->s->number, most = (1ull << LINK_BITS) - 1;
	struct fact_row row = {0};

	if (!n[SAID_SPAN])
		return 0;
	fact_put(&row, REQUEST_SPAN_PROCESS, w->row);
	fact_put_text(&row, REQUEST_SPAN_SIDE, side_word(x->s->side));
	fact_put(&row, REQUEST_SPAN_SPAN, n[SAID_SPAN] & most);
	fact_put_text(&row, REQUEST_SPAN_NTH, nth);
	if (n[SAID_PARENT])
		fact_put(&row, REQUEST_SPAN_PARENT, n[SAID_PARENT] & most);
	if (n[SAID_CALLER])
		fact_put(&row, REQUEST_SPAN_CALLER, n[SAID_CALLER] & most);
	fact_put_text(&row, REQUEST_SPAN_HOW, HOW[x->s->flags & SAID_HOW]);
	if (x->s->flags & SAID_PARTIAL)
		fact_put(&row, REQUEST_SPAN_PARTIAL, 1);
	return store_fact(b->h->store, b->h->run, x->s->utc_ns, &REQUEST_SPAN_FACT, &row);
}

static int single_put(struct store_rows *b, const struct heard *x, const struct store_rows_who *w)
{
	const uint64_t *n = x->s->number;
	struct fact_row row = {0};
	char nth[16];
	int err;

	b->singles = (b->singles + 1) % NTH_MOST;
	snprintf(nth, sizeof(nth), "%u", b->singles);
	fact_put_text(&row, REQUEST_LOG_NTH, nth);
	fact_put(&row, REQUEST_LOG_PROCESS, w->row);
	fact_put_text(&row, REQUEST_LOG_SIDE, side_word(x->s->side));
	fact_put_text(&row, REQUEST_LOG_PROTOCOL, x->text[SAID_PROTOCOL]);
	fact_put_text(&row, REQUEST_LOG_SERVICE, x->text[SAID_SERVICE]);
	fact_put_text(&row, REQUEST_LOG_OPERATION, x->text[SAID_OPERATION]);
	fact_put(&row, REQUEST_LOG_AT, n[SAID_AT] / 1000);
	fact_put_text(&row, REQUEST_LOG_STATUS, x->text[SAID_STATUS]);
	fact_put_text(&row, REQUEST_LOG_RESULT, RESULTS[x->s->result]);
	fact_put_text(&row, REQUEST_LOG_WHY, WHY[x->s->why]);
	fact_put(&row, REQUEST_LOG_WEIGHT, n[SAID_WEIGHT]);
	fact_put(&row, REQUEST_LOG_TID, n[SAID_TID]);
	if (x->s->result == STORE_RESULT_OK || x->s->result == STORE_RESULT_ERROR) {
		fact_put(&row, REQUEST_LOG_FIRST, n[SAID_FIRST] / 1000);
		fact_put(&row, REQUEST_LOG_TOTAL, n[SAID_WHOLE] / 1000);
	}
	fact_put(&row, REQUEST_LOG_ASKED, n[SAID_ASKED]);
	fact_put(&row, REQUEST_LOG_ANSWERED, n[SAID_ANSWERED]);
	fact_put_text(&row, REQUEST_LOG_TRACE, x->text[SAID_TRACE]);
	err = store_fact(b->h->store, b->h->run, x->s->utc_ns, &REQUEST_LOG_FACT, &row);
	err = err ? err : tag_put(b, x, w);
	return err ? err : span_put(b, x, w, nth);
}

static int bytes_put(struct store_rows *b, const struct heard *x, const struct store_rows_who *w)
{
	const uint64_t *n = x->s->number;
	struct fact_row row = {0};

	fact_put(&row, REQUEST_BYTES_PROCESS, w->row);
	fact_put_text(&row, REQUEST_BYTES_SIDE, side_word(x->s->side));
	fact_put_text(&row, REQUEST_BYTES_PROTOCOL, x->text[SAID_PROTOCOL]);
	fact_put_text(&row, REQUEST_BYTES_SERVICE, w->excluded ? "" : x->text[SAID_SERVICE]);
	fact_put(&row, REQUEST_BYTES_SEEN, n[SAID_SEEN]);
	fact_put(&row, REQUEST_BYTES_PARSED, n[SAID_PARSED]);
	fact_put(&row, REQUEST_BYTES_SKIPPED, n[SAID_SKIPPED]);
	fact_put(&row, REQUEST_BYTES_BLIND, n[SAID_BLIND]);
	fact_put(&row, REQUEST_BYTES_REQUESTS, n[SAID_BLIND_REQUESTS]);
	return store_fact(b->h->store, b->h->run, x->s->utc_ns, &REQUEST_BYTES_FACT, &row);
}

static int named_put(struct store_rows *b, const struct heard *x, const struct store_rows_who *w)
{
	struct fact_row row = {0};

	if (w->excluded || !*x->text[SAID_OPERATION] || !*x->text[SAID_SERVICE])
		return 0;
	fact_put(&row, PEER_NAME_PROCESS, w->row);
	fact_put_text(&row, PEER_NAME_ADDRESS, x->text[SAID_SERVICE]);
	fact_put_text(&row, PEER_NAME_NAME, x->text[SAID_OPERATION]);
	fact_put_text(&row, PEER_NAME_HOW, "dns");
	fact_put(&row, PEER_NAME_COUNT, 1);
	return store_fact(b->h->store, b->h->run, x->s->utc_ns, &PEER_NAME_FACT, &row);
}

void store_rows_put(struct store_rows *b, struct family_host *h, const struct heard *x)
{
	static int (*const put[])(struct store_rows * b, const struct heard *x,
				  const struct store_rows_who *w) = {[SAID_SUM] = sum_put,
								     [SAID_SINGLE] = single_put,
								     [SAID_BYTES] = bytes_put,
								     [SAID_NAMED] = named_put,
								     [SAID_PART] = sum_put};
	uint64_t events = x->s->what == SAID_SUM ? x->s->number[SAID_N] : x->s->what != SAID_PART;
	struct store_rows_who *w;
	int err = -ESTALE;

	b->h = h;
	if (x->s->what == SAID_SINGLE && who_get(b, &x->s->who)->excluded)
		return;
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		w = who_get(b, &x->s->who);
		err = put[x->s->what](b, x, w);
	}
	if (!err && x->s->what == SAID_SUM)
		unresolved_note(b, x, w);
	h->processes = HASH_COUNT(b->all) > h->processes ? HASH_COUNT(b->all) : h->processes;
	if (err)
		h->refused += events;
	else
		h->added += events;
}

void store_rows_unseen(struct store_rows *b, struct family_host *h, uint64_t bytes, int64_t now_ns)
{
	struct said s = {.what = SAID_BYTES,
			 .utc_ns = now_ns + h->offset_ns,
			 .number = {[SAID_SEEN] = bytes, [SAID_BLIND] = bytes}};
	struct heard x = {.s = &s};

	store_rows_put(b, h, &x);
}
