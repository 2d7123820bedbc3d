/* SPDX-License-Identifier: Apache-2.0 */
/* keep: see the header. Rows in a hash table of open addresses, written and forgotten when it is
 * full. */
#include "loaders/replay/save.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loaders/replay/tally.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/requests.h"
#include "schema/store/write/writer.h"

#define ROWS        8192
#define SLOTS       (2 * ROWS)
#define CLOSE_MS    600000
#define WAITING_MAX (64u << 20)

static_assert((int)PROTO_OK == STORE_RESULT_OK && (int)PROTO_ERROR == STORE_RESULT_ERROR &&
		      (int)PROTO_ONE_WAY == STORE_RESULT_ONE_WAY &&
		      (int)PROTO_OPENED == STORE_RESULT_OPENED &&
		      (int)PROTO_NO_ANSWER == STORE_RESULT_NO_ANSWER &&
		      (int)PROTO_BLIND == STORE_RESULT_BLIND,
	      "stored as they are");

struct keep_row {
	int64_t second;
	const char *protocol, *operation;
	char service[TALLY_SERVICE_MAX], status[PROTO_STATUS_MAX];
	enum proto_result result;
	uint64_t n, total_ns, max_ns, request_bytes, response_bytes;
	uint32_t *steps; /* NULL: no latency yet */
	uint64_t first_n, first_total_ns,
		first_max_ns; /* to the answer's first byte; and behind `steps` as many of it */
};

struct keep {
	struct store_writer *w;
	char *capture;
	uint32_t run; /* 0: not begun */
	int64_t to_ns;
	struct keep_row rows[ROWS];
	uint32_t n, slots[SLOTS]; /* index + 1 */
};

int save_open(const char *dir, const char *capture, struct keep **out, struct err *e)
{
	const struct store_writer_opts opts = {.dir = dir, .max_bytes = 256u << 20};
	struct keep *k = mem_alloc(sizeof(*k));
	int rc = store_writer_open(&opts, &k->w, e);

	if (rc) {
		free(k);
		return rc;
	}
	k->capture = mem_strdup(capture);
	*out = k;
	return 0;
}

static void run_begin(struct keep *k, int64_t from_ns)
{
	const struct store_run run = {.family = "replay",
				      .options = k->capture,
				      .scope = STORE_SCOPE_PARTIAL,
				      .bucket_s = 1,
				      .cpus = 1,
				      .from_ns = from_ns,
				      .boot_offset_ns = clock_boot_offset_ns()};

	k->run = store_run_begin(k->w, &run);
}

/* There is time to wait for the disk. */
static void wait_for_room(struct keep *k)
{
	struct store_writer_stat stat;

	store_flush(k->w);
	store_writer_stat(k->w, &stat);
	while (stat.waiting_bytes > WAITING_MAX && !stat.last_error) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		store_writer_stat(k->w, &stat);
	}
}

static int write_one(struct keep *k, int64_t second, const struct store_request *x)
{
	int rc = store_request(k->w, k->run, second * NSEC_PER_SEC, x);

	return rc == -ESTALE ? store_request(k->w, k->run, second * NSEC_PER_SEC, x) : rc;
}

static int write_row(struct keep *k, struct protocols *s, const struct keep_row *r)
{
	struct store_request x = {.side = STORE_SIDE_CAPTURE,
				  .result = (enum store_result)r->result,
				  .protocol = r->protocol,
				  .service = r->service,
				  .operation =
					  protocols_operation_now(s, r->operation, r->protocol,
								  proto_service_port(r->service)),
				  .status = r->status,
				  .n = r->n,
				  .total_ns = r->total_ns,
				  .max_ns = r->max_ns,
				  .request_bytes = r->request_bytes,
				  .response_bytes = r->response_bytes,
				  .steps = r->steps,
				  .n_steps = HIST_STEPS};
	int rc = write_one(k, r->second, &x);

	if (rc || !r->first_n)
		return rc;
	x.part = STORE_PART_FIRST;
	x.n = r->first_n;
	x.total_ns = r->first_total_ns;
	x.max_ns = r->first_max_ns;
	x.steps = r->steps + HIST_STEPS;
	return write_one(k, r->second, &x);
}

static int write_rows(struct keep *k, struct protocols *s)
{
	int rc = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		if (!rc)
			rc = write_row(k, s, &k->rows[i]);
		free(k->rows[i].steps);
	}
	k->n = 0;
	memset(k->slots, 0, sizeof(k->slots));
	wait_for_room(k);
	return rc;
}

static struct keep_row *row_of(struct keep *k, const struct proto_request *r, const char *service)
{
	int64_t second = r->begin_ns / NSEC_PER_SEC;
	uint64_t hash = hash_str(
		hash_str(hash_u64(hash_u64(HASH_SEED, (uint64_t)second), r->operation_id), service),
		r->status);
	uint32_t at = (uint32_t)hash_u64(hash, r->result) & (SLOTS - 1);
	struct keep_row *x;

	for (; k->slots[at]; at = (at + 1) & (SLOTS - 1)) {
		x = &k->rows[k->slots[at] - 1];
		if (x->second == second && x->operation == r->operation &&
		    x->protocol == r->protocol && x->result == r->result &&
		    !strcmp(x->service, service) && !strcmp(x->status, r->status))
			return x;
	}
	k->slots[at] = ++k->n;
	x = &k->rows[k->n - 1];
	*x = (struct keep_row){.second = second,
			       .protocol = r->protocol,
			       .operation = r->operation,
			       .result = r->result};
	snprintf(x->service, sizeof(x->service), "%s", service);
	snprintf(x->status, sizeof(x->status), "%s", r->status);
	return x;
}

static void first_add(struct keep_row *x, uint64_t ns)
{
	x->steps[HIST_STEPS + hist_step(ns)]++;
	x->first_n++;
	x->first_total_ns += ns;
	x->first_max_ns = ns > x->first_max_ns ? ns : x->first_max_ns;
}

int save_add(struct keep *k, struct protocols *s, const struct proto_request *r,
	     const char *service)
{
	int64_t last = r->end_ns > r->sent_ns ? r->end_ns : r->sent_ns;
	struct keep_row *x;
	int rc = 0;

	if (!k->run)
		run_begin(k, r->begin_ns);
	k->to_ns = last > k->to_ns ? last : k->to_ns;
	if (k->n == ROWS)
		rc = write_rows(k, s);
	x = row_of(k, r, service);
	x->n++;
	x->request_bytes += r->request_bytes;
	x->response_bytes += r->response_bytes;
	if (r->result == PROTO_OK || r->result == PROTO_ERROR) {
		uint64_t ns = r->end_ns > r->begin_ns ? (uint64_t)(r->end_ns - r->begin_ns) : 0;

		if (!x->steps)
			x->steps = mem_array(2 * (size_t)HIST_STEPS, sizeof(*x->steps));
		x->steps[hist_step(ns)]++;
		x->total_ns += ns;
		x->max_ns = ns > x->max_ns ? ns : x->max_ns;
		if (r->first_ns)
			first_add(x, r->first_ns > r->begin_ns ?
					     (uint64_t)(r->first_ns - r->begin_ns) :
					     0);
	}
	return rc;
}

int save_close(struct keep *k, struct protocols *s, struct err *e)
{
	int rc = k->run ? write_rows(k, s) : 0, closed;

	if (k->run)
		store_run_until(k->w, k->run, k->to_ns);
	if (rc)
		err_set(e, rc, EXIT_STORE, "the store did not take it: %s", strerror(-rc));
	closed = store_writer_close(k->w, CLOSE_MS, rc ? &(struct err){0} : e);
	free(k->capture);
	free(k);
	return rc ? rc : closed;
}
