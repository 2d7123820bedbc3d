/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain/chain_silent.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/diff/diff.h"

#define BUCKET_NS (10 * (int64_t)NSEC_PER_SEC) /* the longest that a bucket is */

static bool is_of(const struct chain_op *op, const struct chain_silence *x)
{
	return op->server == x->server && op->container == x->container && !strcmp(op->who, x->who);
}

static bool was_steady(const struct chain_requests *r, const struct chain_silence *x)
{
	const int64_t from = r->from_ns[DIFF_BEFORE],
		      part = (r->to_ns[DIFF_BEFORE] - from) / CHAIN_SILENT_PARTS;
	bool has[CHAIN_SILENT_PARTS] = {false};
	int n = 0;

	if (part < 2 * (int64_t)NSEC_PER_SEC)
		return false;
	for (size_t i = 0; i < r->n; i++) {
		const struct chain_count *c = &r->ops[i].w[DIFF_BEFORE];

		for (size_t k = 0; is_of(&r->ops[i], x) && k < c->n_buckets; k++) {
			const int64_t at = c->buckets[k].ts * NSEC_PER_SEC - from;

			/* a bucket reaches into the next part */
			for (int64_t p = at / part; p <= (at + BUCKET_NS - 1) / part; p++)
				if (p >= 0 && p < CHAIN_SILENT_PARTS)
					has[p] = true;
		}
	}
	for (int p = 0; p < CHAIN_SILENT_PARTS; p++)
		n += has[p];
	return n >= CHAIN_SILENT_PARTS - 1;
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The longest time without an answer. */
static void gap_find(const struct chain_requests *r, struct chain_silence *out)
{
	const int64_t from = r->from_ns[DIFF_AFTER], to = r->to_ns[DIFF_AFTER];
	int64_t *at = NULL, last = from;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct chain_count *c = &r->ops[i].w[DIFF_AFTER];

		for (size_t k = 0; is_of(&r->ops[i], out) && k < c->n_buckets; k++) {
			mem_grow(at, n, cap);
			at[n++] = c->buckets[k].ts * NSEC_PER_SEC;
		}
	}
	if (n)
		qsort(at, n, sizeof(*at), by_time);
	out->from_ns = out->to_ns = from;
	for (size_t i = 0; i <= n; i++) {
		const int64_t next = i < n ? at[i] : to;

		if (next - last > out->to_ns - out->from_ns) {
			out->from_ns = last;
			out->to_ns = next;
			out->whole = !i;
			out->ends = i < n;
		}
		last = i < n && at[i] + BUCKET_NS > last ? at[i] + BUCKET_NS : last;
	}
	free(at);
}

/* One each who; its rate before. The caller's. */
static struct chain_silence *answerers(const struct chain_requests *r, bool server, size_t *n)
{
	struct chain_silence *all = NULL;
	struct idmap of = {0};
	size_t cap = 0;

	*n = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct chain_op *op = &r->ops[i];
		uint64_t *at;
		bool fresh;

		if (op->server != server)
			continue;
		at = idmap_ref(&of, hash_str(hash_u64(HASH_SEED, op->container), op->who), &fresh);
		if (fresh) {
			*at = *n;
			mem_grow(all, *n, cap);
			all[(*n)++] = (struct chain_silence){
				.who = op->who, .container = op->container, .server = server};
		}
		all[*at].wanted = all[*at].wanted || op->wanted;
		if (r->seconds[DIFF_BEFORE] > 0)
			all[*at].rate +=
				(double)op->w[DIFF_BEFORE].answered / r->seconds[DIFF_BEFORE];
	}
	idmap_release(&of);
	return all;
}

bool chain_silence_find(const struct chain_requests *r, bool server, struct chain_silence *out)
{
	struct chain_silence *all;
	bool found = false;
	size_t n;

	if (!r->known[DIFF_BEFORE] || !r->known[DIFF_AFTER])
		return false;
	all = answerers(r, server, &n);
	for (size_t i = 0; i < n; i++) {
		struct chain_silence *x = &all[i];
		double seconds;

		if (!x->wanted || (found && x->rate <= out->rate))
			continue;
		gap_find(r, x);
		seconds = (double)(x->to_ns - x->from_ns) / NSEC_PER_SEC;
		if (seconds < CHAIN_SILENT_S || seconds * x->rate < CHAIN_SILENT_N ||
		    !was_steady(r, x))
			continue;
		*out = *x;
		found = true;
	}
	free(all);
	return found;
}
