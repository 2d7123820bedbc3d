/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/explain_java.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "tools/select/askrows.h"

/* process, tid, at_ns, ns, kind, class, owner, place */
static const char WAITS[] =
	"SELECT process_id, tid, at_ns, ns, kind, class, owner, place FROM java_wait_log WHERE ts BETWEEN ?1 AND ?2";
#define SLACK_NS 2000 /* times of requests are kept in microseconds */

struct answered { /* a kept request of a thread */
	int64_t pid, tid, from_ns, to_ns;
	bool chosen;
};

struct joining {
	struct explain_java *out;
	const struct store_dict *dict;
	struct answered *requests; /* by thread, then by time */
	size_t n, cap;
	int64_t longest_ns;
};

static int by_thread(const void *a, const void *b)
{
	const struct answered *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static bool has_own_thread(const struct trace_row *r)
{
	return r->server && r->tid > 0 && r->total_us >= 0 && strcmp(r->protocol, "http2") != 0 &&
	       strcmp(r->protocol, "grpc") != 0;
}

static void requests_take(struct joining *j, const struct explain_chosen *c)
{
	const struct traces *t = &c->traces;
	bool *chosen = mem_alloc(t->n_rows + 1);

	memset(chosen, 0, t->n_rows + 1);
	for (size_t i = 0; i < c->n; i++)
		if (t->nodes[c->nodes[i]].answered != TRACE_NONE)
			chosen[t->nodes[c->nodes[i]].answered] = true;
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct trace_row *r = &t->rows[i];

		if (!has_own_thread(r))
			continue;
		mem_grow(j->requests, j->n, j->cap);
		j->requests[j->n++] = (struct answered){.pid = r->pid,
							.tid = r->tid,
							.from_ns = r->at_ns,
							.to_ns = r->at_ns + r->total_us * 1000,
							.chosen = chosen[i]};
		if (r->total_us * 1000 > j->longest_ns)
			j->longest_ns = r->total_us * 1000;
	}
	free(chosen);
	if (j->n)
		qsort(j->requests, j->n, sizeof(*j->requests), by_thread);
}

/* The first request of this thread that may be open at `at`. */
static size_t first_of(const struct joining *j, const struct answered *key)
{
	size_t from = 0, to = j->n;

	while (from < to) {
		const size_t mid = from + (to - from) / 2;

		if (by_thread(&j->requests[mid], key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Is this wait within a chosen request, and no other of its thread was open? */
static bool is_of_chosen(const struct joining *j, int64_t pid, int64_t tid, int64_t at, int64_t ns)
{
	const struct answered key = {
		.pid = pid, .tid = tid, .from_ns = at - j->longest_ns - SLACK_NS};
	bool within = false;

	for (size_t i = first_of(j, &key); i < j->n; i++) {
		const struct answered *r = &j->requests[i];

		if (r->pid != pid || r->tid != tid || r->from_ns > at + ns)
			break;
		if (r->to_ns + SLACK_NS < at)
			continue;
		if (within || !r->chosen || r->from_ns > at + SLACK_NS ||
		    at + ns > r->to_ns + SLACK_NS)
			return false;
		within = true;
	}
	return within;
}

static struct explain_java_lock *lock_of(struct explain_java *out, const char *comm,
					 sqlite3_stmt *st)
{
	for (size_t i = 0; i < out->n; i++) {
		struct explain_java_lock *l = &out->locks[i];

		if (!strcmp(l->comm, comm) && !strcmp(l->class_name, askrows_text(st, 5)) &&
		    !strcmp(l->owner, askrows_text(st, 6)) &&
		    !strcmp(l->place, askrows_text(st, 7)))
			return l;
	}
	mem_grow(out->locks, out->n, out->cap);
	out->locks[out->n] =
		(struct explain_java_lock){.comm = mem_strdup(comm),
					   .class_name = mem_strdup(askrows_text(st, 5)),
					   .owner = mem_strdup(askrows_text(st, 6)),
					   .place = mem_strdup(askrows_text(st, 7)),
					   .monitor = !strcmp(askrows_text(st, 4), "monitor")};
	return &out->locks[out->n++];
}

static void wait_take(void *ctx, sqlite3_stmt *st)
{
	struct joining *j = ctx;
	const struct store_process_row *p =
		store_dict_process(j->dict, sqlite3_column_int64(st, 0));
	const int64_t ns = sqlite3_column_int64(st, 3);
	struct explain_java_lock *l;

	if (!p || ns <= 0 ||
	    !is_of_chosen(j, p->pid, sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 2), ns))
		return;
	l = lock_of(j->out, p->comm, st);
	l->ns += (uint64_t)ns;
	l->n++;
}

int explain_java(const struct selection *sel, const struct explain_chosen *chosen,
		 struct explain_java *out, struct err *e)
{
	struct joining j = {.out = out};
	const struct askrows_part parts[] = {
		{WAITS, wait_take, &j, {{NULL}, NULL}, "java_wait_log_row"},
	};
	int rc = 0;

	*out = (struct explain_java){0};
	requests_take(&j, chosen);
	if (j.n)
		rc = askrows_each(sel, &j.dict, parts, ARRAY_SIZE(parts), e);
	free(j.requests);
	return rc;
}

void explain_java_release(struct explain_java *j)
{
	for (size_t i = 0; i < j->n; i++) {
		free(j->locks[i].comm);
		free(j->locks[i].class_name);
		free(j->locks[i].owner);
		free(j->locks[i].place);
	}
	free(j->locks);
	*j = (struct explain_java){0};
}
