/* SPDX-License-Identifier: Apache-2.0 */
/* sums: which single requests of a bucket are kept. */
#include "loaders/l7/sums.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/l7.h"
#include "schema/base/clock.h"
#include "schema/store/write/requests.h"

#define MS    1000000ll
#define OPS   40
#define BEGIN (1000 * NSEC_PER_SEC)

/* What was written: the slowest one kept of each operation, and how many requests all stand for. */
struct kept {
	uint64_t slowest_ns[OPS + 1], weight;
	uint32_t n[OPS + 1], all, by[SINGLE_RING + 1];
	uint64_t spans[4096]; /* of all, once each */
};

static void span_once(struct kept *k, uint64_t span)
{
	if (k->all > 4096)
		return;
	for (uint32_t i = 0; i + 1 < k->all; i++)
		assert_true(k->spans[i] != span);
	k->spans[k->all - 1] = span;
}

static void keep(void *ctx, const void *packet, size_t size)
{
	struct kept *k = ctx;
	struct message x;
	size_t at = 0;

	while (message_read(packet, size, &at, &x)) {
		unsigned op;

		if (x.kind != MSG_SINGLE)
			continue;
		assert_int_equal(sscanf(x.text[MSG_OPERATION], "op%u", &op), 1);
		assert_true(op <= OPS);
		if (x.single->total_ns > k->slowest_ns[op])
			k->slowest_ns[op] = x.single->total_ns;
		k->n[op]++;
		k->all++;
		k->by[x.single->why]++;
		span_once(k, x.single->span);
		k->weight += x.single->weight;
	}
}

static void emit_nothing(void *ctx, const struct proto_request *r)
{
	(void)ctx;
	(void)r;
}

struct bench {
	struct message_writer to;
	struct kept kept;
	struct protocols *protocols;
	struct sums *sums;
	char names[OPS + 1][16];
	uint64_t n;
};

static void bench_init(struct bench *b)
{
	*b = (struct bench){0};
	b->to = (struct message_writer){.send = keep, .ctx = &b->kept};
	b->protocols = protocols_new(&(struct proto_opts){.emit = emit_nothing});
	b->sums = sums_new(b->protocols, &b->to, 10, 0);
	for (unsigned i = 0; i <= OPS; i++)
		snprintf(b->names[i], sizeof(b->names[i]), "op%u", i);
}

static void bench_release(struct bench *b)
{
	sums_free(b->sums);
	protocols_free(b->protocols);
}

static void took(struct bench *b, unsigned op, enum store_side side, enum proto_result result,
		 int64_t ns)
{
	int64_t begin = BEGIN + (int64_t)++b->n * 1000;
	const struct sums_of of = {
		.process = {.tgid = 1, .start_ns = 1}, .side = (uint8_t)side, .service = "x:1"};
	const struct proto_request r = {.protocol = "redis",
					.operation = b->names[op],
					.status = "",
					.result = result,
					.begin_ns = begin,
					.first_ns = begin + ns,
					.end_ns = begin + ns,
					.begin_pos = b->n};

	sums_request(b->sums, &of, &r);
}

TEST(each_operation_keeps_its_slowest_however_slow_others_are)
{
	struct bench b;

	bench_init(&b);
	for (unsigned i = 0; i < 20000; i++) { /* op0: none of the others is among the slowest */
		took(&b, 0, STORE_SIDE_SERVER, PROTO_OK, 500 * MS + i);
		if (i % 100 == 50)
			for (unsigned op = 1; op <= OPS; op++)
				took(&b, op, STORE_SIDE_SERVER, PROTO_OK,
				     op * 1000 + (i == 10050 ? 999 : i % 7));
	}
	sums_write(b.sums, 0);
	for (unsigned op = 1; op <= OPS; op++)
		assert_int_equal(b.kept.slowest_ns[op], op * 1000 + 999);
	assert_int_equal(b.kept.slowest_ns[0], 500 * MS + 19999);
	assert_int_equal(b.kept.by[SINGLE_SLOW], SUMS_SLOW + OPS);
	assert_int_equal(b.kept.by[SINGLE_SAMPLE], SUMS_SAMPLE);
	/* the sample stands for all that were not kept, to a rounding of each weight */
	assert_in_range(b.kept.weight, b.n, b.n + SUMS_SAMPLE);
	bench_release(&b);
}

TEST(what_the_slowest_of_all_stand_for_is_not_kept_twice)
{
	struct bench b;

	bench_init(&b);
	for (unsigned i = 0; i < 1000; i++)
		took(&b, i % 5, STORE_SIDE_SERVER, PROTO_OK, (1000 + i) * MS);
	sums_write(b.sums, 0);
	assert_int_equal(b.kept.all, SUMS_SLOW + SUMS_SAMPLE);
	assert_in_range(b.kept.weight, b.n, b.n + SUMS_SAMPLE);
	bench_release(&b);
}

TEST(a_client_and_a_server_are_two_and_their_number_is_bounded)
{
	struct bench b;

	bench_init(&b);
	for (unsigned i = 0; i < 100; i++)
		took(&b, 0, STORE_SIDE_SERVER, PROTO_OK, 500 * MS);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned op = 1; op <= OPS; op++)
			for (int side = STORE_SIDE_CLIENT; side <= STORE_SIDE_SERVER; side++)
				took(&b, op, (enum store_side)side, PROTO_OK, 1000);
	sums_write(b.sums, 0);
	assert_in_range(b.kept.by[SINGLE_SLOW], SUMS_SLOW + SUMS_EACH - 1, SUMS_SLOW + SUMS_EACH);
	for (unsigned op = 1; op <= SUMS_EACH / 2 - 1; op++)
		assert_in_range(b.kept.n[op], 2, 2 + SUMS_SAMPLE);
	assert_in_range(b.kept.weight, b.n, b.n + SUMS_SAMPLE);
	bench_release(&b);
}

TEST(an_operation_that_only_fails_and_one_without_answers_are_there_too)
{
	struct bench b;

	bench_init(&b);
	for (unsigned op = 10; op < 30; op++) /* all places of what failed */
		for (unsigned i = 0; i < 5; i++)
			took(&b, op, STORE_SIDE_SERVER, PROTO_ERROR, 1000);
	for (unsigned i = 0; i < 5000; i++)
		took(&b, 0, STORE_SIDE_SERVER, PROTO_OK, 500 * MS);
	took(&b, 1, STORE_SIDE_SERVER, PROTO_ERROR, 1000);
	took(&b, 2, STORE_SIDE_SERVER, PROTO_ONE_WAY, 0);
	sums_write(b.sums, 0);
	assert_int_equal(b.kept.n[1], 1);
	assert_int_equal(b.kept.n[2], 1);
	assert_in_range(b.kept.by[SINGLE_FAILED], SUMS_FAILED + 1, SUMS_FAILED + OPS);
	bench_release(&b);
}

TEST(requests_made_for_one_that_is_kept_are_written_once_in_each_of_many_buckets)
{
	struct bench b;

	bench_init(&b);
	for (unsigned bucket = 0; bucket < 20; bucket++) {
		for (unsigned i = 0; i < 200; i++) {
			unsigned op = i % (bucket % 7 + 1);
			int64_t begin = BEGIN + bucket * 10 * NSEC_PER_SEC + (int64_t)i * MS;
			const struct msg_process process = {.tgid = 1, .start_ns = 1};
			struct sums_of of = {.process = process,
					     .side = STORE_SIDE_CLIENT,
					     .service = "y:2",
					     .tag = TABLES_TAG_OF(begin),
					     .how = LINK_BY_THREAD,
					     .linked = true};
			struct proto_request r = {.protocol = "redis",
						  .operation = b.names[OPS],
						  .status = "",
						  .begin_ns = begin + 10,
						  .end_ns = begin + 20 + i,
						  .begin_pos = i};

			sums_request(b.sums, &of, &r);
			of.side = STORE_SIDE_SERVER;
			of.alone = true;
			r.operation = b.names[op];
			r.begin_ns = begin;
			r.end_ns = begin + 1000 + (i * 7919) % 1000;
			sums_request(b.sums, &of, &r);
		}
	}
	sums_write(b.sums, 0);
	/* of each bucket: the slowest, the sample, and their kin that are not among them */
	assert_in_range(b.kept.by[SINGLE_SLOW], 20 * SUMS_SLOW, 20 * (SUMS_SLOW + 8));
	assert_int_equal(b.kept.by[SINGLE_SAMPLE], 20 * SUMS_SAMPLE);
	assert_in_range(b.kept.by[SINGLE_LINKED], 20 * 5, 20 * (SUMS_SLOW + SUMS_SAMPLE + 8));
	bench_release(&b);
}

TEST(with_a_ring_each_request_is_written_once_and_the_others_weigh_nothing)
{
	struct bench b;

	bench_init(&b);
	sums_ring(b.sums, true);
	for (unsigned i = 0; i < 900; i++)
		took(&b, i % OPS, STORE_SIDE_SERVER, i % 9 ? PROTO_OK : PROTO_ERROR,
		     (1 + i % 7) * MS);
	sums_write(b.sums, 0);
	assert_int_equal(b.kept.all, 900);
	assert_in_range(b.kept.by[SINGLE_RING], 900 - 30 - 10 - 48 - 10, 900 - 30);
	assert_in_range(b.kept.weight, 900 - 100, 900 + SUMS_SAMPLE); /* failed ones have a limit */
	bench_release(&b);
}

TEST(of_a_second_the_ring_has_as_many_as_it_may)
{
	struct bench b;

	bench_init(&b);
	sums_ring(b.sums, true);
	for (unsigned i = 0; i < 20 * SUMS_RING; i++)
		took(&b, 0, STORE_SIDE_SERVER, PROTO_OK, 500);
	sums_write(b.sums, 0);
	assert_in_range(b.kept.by[SINGLE_RING], SUMS_RING - SUMS_SLOW - SUMS_SAMPLE - 1, SUMS_RING);
	assert_in_range(b.kept.weight, b.n, b.n + SUMS_SAMPLE);
	bench_release(&b);
}
