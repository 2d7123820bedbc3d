/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions run at an instruction, in pieces of code that are put together here as V8 lays
 * its own out. T is the function that was compiled, G and H are inlined into it. */
#include <string.h>

#include "loaders/lib/runtimes/v8/v8flow.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

#define EXIT 4u
enum { T, G, H };

/* Descriptions, by number: of exits first. */
static const struct v8flow_chain CHAINS[] = {
	{{{10, T, false}}, 1},                               /* 0: T */
	{{{20, T, false}, {1, G, false}}, 2},                /* 1: G, called at 20 */
	{{{20, T, false}, {7, G, false}}, 2},                /* 2: the same call of G, further on */
	{{{30, T, false}, {1, G, false}}, 2},                /* 3: G, called at 30 */
	{{{20, T, false}, {5, G, false}, {2, H, false}}, 3}, /* 4: H, called by the first */
};

struct text {
	uint8_t bytes[256];
	uint32_t len;
	bool copies;
	uint32_t call_at; /* the call that returns here has description `call_says` */
	int64_t call_says;
};

static uint32_t put(struct text *t, const char *bytes, uint32_t n)
{
	memcpy(t->bytes + t->len, bytes, n);
	t->len += n;
	return t->len - n;
}

static uint32_t work(struct text *t)
{
	return put(t, "\x41\x03\xc1", 3); /* add eax,r9d */
}

/* A jump whose distance is set later. */
static uint32_t jump(struct text *t, uint8_t condition)
{
	char jcc[] = {0x0f, (char)(0x80 | condition), 0, 0, 0, 0};

	return put(t, jcc, sizeof(jcc));
}

static void leads(struct text *t, uint32_t from, uint32_t to)
{
	uint32_t opcode = t->bytes[from] == 0x0f ? 2 : 1;
	int32_t distance = (int32_t)to - (int32_t)(from + opcode + 4);

	memcpy(t->bytes + from + opcode, &distance, sizeof(distance));
}

/* A check, whose jump to exit k is made right when all is there: until then it holds the exit's
 * number. */
static void check(struct text *t, uint32_t k)
{
	uint32_t at = jump(t, 5);

	leads(t, at, 0x1000 + k * EXIT);
}

static void end(struct text *t)
{
	put(t, "\xc3", 1);
	for (uint32_t at = 0; at + 6 <= t->len; at++) {
		int32_t distance;

		memcpy(&distance, t->bytes + at + 2, sizeof(distance));
		if (t->bytes[at] == 0x0f && t->bytes[at + 1] == 0x85 &&
		    distance + (int32_t)at + 6 >= 0x1000)
			leads(t, at, t->len + (uint32_t)(distance + (int32_t)at + 6 - 0x1000));
	}
}

static int64_t of_call(void *ctx, uint32_t offset)
{
	const struct text *t = ctx;

	return t->call_at && offset == t->call_at ? t->call_says : -1;
}

static void chain_read(void *ctx, uint32_t description, struct v8flow_chain *out)
{
	(void)ctx;
	*out = CHAINS[description];
}

static struct v8flow_code code_of(struct text *t)
{
	return (struct v8flow_code){.bytes = t->bytes,
				    .len = t->len,
				    .all = t->len,
				    .exits = 5,
				    .exit_bytes = EXIT,
				    .copies = t->copies,
				    .ctx = t,
				    .of_call = of_call,
				    .read = chain_read};
}

/* The innermost function that runs there; -1: none is known. */
static int runs(struct text *t, uint32_t offset)
{
	struct v8flow_code c = code_of(t);
	struct v8flow *f = v8flow_new(&c);
	struct v8flow_chain chain;

	assert_non_null(f);
	v8flow_at(f, &c, offset, &chain);
	v8flow_free(f);
	if (!chain.n)
		return -1;
	assert_int_equal(chain.frames[chain.n - 1].bytecode, V8_NOWHERE);
	for (size_t i = 0; i + 1 < chain.n; i++)
		assert_int_not_equal(chain.frames[i].bytecode, V8_NOWHERE);
	return (int)chain.frames[chain.n - 1].literal;
}

TEST(between_two_descriptions_of_a_call_it_is_running)
{
	struct text t = {0};
	uint32_t first, second, third, last;

	first = work(&t);
	check(&t, 1);
	second = work(&t);
	check(&t, 2);
	third = work(&t);
	check(&t, 0);
	last = work(&t);
	end(&t);
	assert_int_equal(runs(&t, first), -1); /* the function has just begun */
	assert_int_equal(runs(&t, second), G);
	assert_int_equal(runs(&t, third), T);
	assert_int_equal(runs(&t, last), -1);       /* nothing comes after it but the return */
	assert_int_equal(runs(&t, second + 1), -1); /* no instruction begins there */
}

TEST(what_is_called_within_it_adds_to_it)
{
	struct text t = {0};
	uint32_t at, within;

	check(&t, 1);
	at = work(&t);
	check(&t, 4);
	within = work(&t);
	check(&t, 4);
	end(&t);
	assert_int_equal(runs(&t, at), G);
	assert_int_equal(runs(&t, within), H);
}

TEST(where_bodies_of_loops_are_copied_the_next_must_be_further_on)
{
	struct text t = {.copies = true};
	uint32_t at, further;

	check(&t, 1);
	at = work(&t);
	check(&t, 1);
	further = work(&t);
	check(&t, 2);
	end(&t);
	assert_int_equal(runs(&t, at), T);
	assert_int_equal(runs(&t, further), G);
}

TEST(two_calls_of_one_function_are_not_the_same)
{
	struct text t = {0};
	uint32_t at;

	check(&t, 2);
	at = work(&t);
	check(&t, 3);
	end(&t);
	assert_int_equal(runs(&t, at), T);
}

/* cmp rsp,[r13-0x60]; ja head; then the call that asks. */
static void question(struct text *t, uint32_t head, int64_t says)
{
	uint32_t back;

	put(t, "\x49\x3b\x65\xa0", 4);
	back = jump(t, 7);
	leads(t, back, head);
	put(t, "\x41\xff\x55\x10", 4);
	t->call_at = t->len;
	t->call_says = says;
	leads(t, put(t, "\xe9\0\0\0\0", 5), head);
}

TEST(a_loop_runs_the_function_that_it_asks_for)
{
	struct text t = {0};
	uint32_t before, within, over;

	before = work(&t);
	within = work(&t);
	over = jump(&t, 4);
	question(&t, within, 2);
	leads(&t, over, t.len);
	work(&t);
	end(&t);
	assert_int_equal(runs(&t, before), -1);
	assert_int_equal(runs(&t, within), G);
}

/* seta cl; add eax,r9d; test ecx,ecx; jne head. */
TEST(a_loop_may_keep_the_answer_in_a_register)
{
	static const char *const between[] = {"\x41\x03\xc1",
					      "\x41\x03\xc9"}; /* the second: add ecx,r9d */

	for (int i = 0; i < 2; i++) {
		struct text t = {0};
		uint32_t within = work(&t), over = jump(&t, 4);

		put(&t, "\x49\x3b\x65\xa0\x0f\x97\xc1", 7);
		put(&t, between[i], 3);
		put(&t, "\x85\xc9", 2);
		leads(&t, jump(&t, 5), within);
		put(&t, "\x41\xff\x55\x10", 4);
		t.call_at = t.len;
		t.call_says = 2;
		leads(&t, put(&t, "\xe9\0\0\0\0", 5), within);
		leads(&t, over, t.len);
		end(&t);
		assert_int_equal(runs(&t, within), i ? -1 : G);
	}
}

/* G is checked once in each turn of a loop of T's: behind the check it may have returned, before it
 * not have begun. */
TEST(the_next_turn_of_a_loop_is_another_call)
{
	struct text t = {0};
	uint32_t before, behind;

	work(&t);
	before = work(&t);
	check(&t, 1);
	behind = work(&t);
	leads(&t, jump(&t, 2), before);
	end(&t);
	assert_int_equal(runs(&t, before), -1);
	assert_int_equal(runs(&t, behind), -1);
}

TEST(ways_that_meet_have_in_common_what_all_of_them_say)
{
	struct text t = {0};
	uint32_t over, at;

	check(&t, 1);
	over = jump(&t, 4);
	check(&t, 4);
	work(&t);
	leads(&t, over, t.len);
	at = work(&t);
	check(&t, 2);
	end(&t);
	assert_int_equal(runs(&t, at), G);
}

TEST(a_call_that_throws_is_not_followed_by_what_stands_behind_it)
{
	struct text t = {0};
	uint32_t over, at;

	check(&t, 1);
	over = jump(&t, 4);
	check(&t, 0);
	put(&t, "\xe8\0\0\0\0", 5);
	leads(&t, over, t.len);
	at = work(&t);
	check(&t, 2);
	end(&t);
	assert_int_equal(runs(&t, at), G);
}

TEST(code_that_cannot_be_followed_is_left_alone)
{
	static const struct {
		const char *bytes;
		uint32_t n;
	} bad[] = {
		{"\x06", 1},                 /* no instruction */
		{"\xe8\0\0", 3},             /* cut off */
		{"\x74\x01\x41\x03\xc1", 5}, /* into the middle of one */
		{"\x74\x01\x90\x90\x75\xfc\xc3",
		 7}, /* 2, 3, 4 in a circle, into which two ways lead */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct text t = {0};
		struct v8flow_code c;

		put(&t, bad[i].bytes, bad[i].n);
		c = code_of(&t);
		assert_null(v8flow_new(&c));
	}
}
