/* SPDX-License-Identifier: Apache-2.0 */
/* packedcolumns, stackcolumns: columns that depend on other columns are read back unchanged,
 * whichever is read first; damaged ones are refused, and nothing is read past their end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/store/packed/columns.h"
#include "schema/store/packed/stack_columns.h"
#include "tests/unit/test.h"

#define STACKS 600
#define DEPTH  40
#define ROWS   200

static uint64_t state = 7;

static uint32_t random_below(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((state >> 33) % n);
}

/* --- stacks in order of a tree --- */

struct made {
	int64_t id[STACKS], base[STACKS], keep[STACKS], leaf[STACKS];
	char text[STACKS * DEPTH * 12];
	uint32_t at[STACKS + 1];
	struct column c[5];
};

/* Each goes on from some depth of the one before it; bases as stack_columns.h tells. */
static void make_stacks(struct made *m)
{
	uint32_t owner[DEPTH + 1] = {0}, depth = 0, len = 0;

	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t keep = random_below(depth < DEPTH ? depth + 1 : DEPTH),
			 more = random_below(DEPTH - keep);

		m->id[i] = i + 1;
		m->keep[i] = keep;
		m->base[i] = keep ? owner[keep] : 0;
		m->at[i] = len;
		for (uint32_t k = 0; k < more; k++)
			len += (uint32_t)sprintf(m->text + len, "%s%u", k ? "," : "",
						 random_below(20) ? random_below(300) :
								    UINT32_MAX - random_below(3));
		m->text[len++] = '\0';
		m->leaf[i] = random_below(9) ? random_below(300) : UINT32_MAX;
		depth = keep + more + 1;
		for (uint32_t k = keep + 1; k <= depth; k++)
			owner[k] = i + 1;
	}
	m->at[STACKS] = len;
	int64_t *const numbers[] = {m->id, m->base, m->keep, m->leaf};
	for (int i = 0; i < 4; i++)
		m->c[i] = (struct column){.n = STACKS, .numbers = numbers[i]};
	m->c[4] = (struct column){.n = STACKS, .text = m->text, .at = m->at};
}

static struct stackcolumns of(const struct made *m)
{
	return (struct stackcolumns){m->c[1], m->c[2], m->c[3], m->c[4]};
}

static void assert_same(const struct column *a, const struct column *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(!a->numbers, !b->numbers);
	if (a->numbers) {
		assert_memory_equal(a->numbers, b->numbers, a->n * sizeof(*a->numbers));
		return;
	}
	assert_memory_equal(a->at, b->at, (a->n + 1) * sizeof(*a->at));
	assert_memory_equal(a->text, b->text, a->at[a->n]);
}

TEST(stacks_are_read_back_as_they_were)
{
	struct made *m = malloc(sizeof(*m));

	for (int turn = 0; turn < 50; turn++) {
		struct stackcolumns in, out;
		uint8_t *data;
		size_t len;

		make_stacks(m);
		in = of(m);
		assert_int_equal(stack_columns_encode(&in, &data, &len), 0);
		assert_int_equal(stack_columns_decode(data, len, STACKS, &out), 0);
		assert_same(&out.base, &in.base);
		assert_same(&out.keep, &in.keep);
		assert_same(&out.leaf, &in.leaf);
		assert_same(&out.tail, &in.tail);
		stack_columns_release(&out);
		free(data);
	}
	free(m);
}

TEST(stacks_in_another_order_have_no_such_form)
{
	struct made *m = malloc(sizeof(*m));
	struct stackcolumns in;
	uint8_t *data;
	size_t len;

	make_stacks(m);
	in = of(m);
	for (int turn = 0; turn < 5; turn++) {
		int64_t *const changed[] = {&m->base[300], &m->keep[400], &m->keep[0], &m->leaf[3],
					    &m->leaf[4]};
		const int64_t to[] = {m->base[300] ? 0 : 1, DEPTH + 1, 1, -1, 1ll << 32};
		int64_t was = *changed[turn];

		*changed[turn] = to[turn];
		assert_int_equal(stack_columns_encode(&in, &data, &len), -EINVAL);
		*changed[turn] = was;
	}
	m->text[m->at[1]] = 'x';
	assert_int_equal(stack_columns_encode(&in, &data, &len), -EINVAL);
	free(m);
}

/* Of that size in memory: a sanitizer sees what is read beyond. */
static int decode_copy(const uint8_t *data, size_t len, size_t n)
{
	uint8_t *copy = malloc(len + !len);
	struct stackcolumns out;
	int rc;

	memcpy(copy, data, len);
	rc = stack_columns_decode(copy, len, n, &out);
	if (!rc)
		stack_columns_release(&out);
	free(copy);
	return rc;
}

TEST(stacks_that_are_cut_or_changed_are_refused)
{
	struct made *m = malloc(sizeof(*m));
	struct stackcolumns in;
	size_t len, refused = 0;
	uint8_t *data;

	make_stacks(m);
	in = of(m);
	assert_int_equal(stack_columns_encode(&in, &data, &len), 0);
	for (size_t cut = 0; cut < len; cut += 1 + len / 200)
		assert_int_equal(decode_copy(data, cut, STACKS), -EBADMSG);
	assert_int_equal(decode_copy(data, len, STACKS - 1), -EBADMSG);
	assert_int_equal(decode_copy(data, len, STACKS + 1), -EBADMSG);
	assert_int_equal(decode_copy(data, len, SIZE_MAX / 16), -EBADMSG);
	assert_int_equal(decode_copy(data, len, 0), -EBADMSG);
	for (int i = 0; i < 300; i++) {
		size_t at = random_below((uint32_t)len);
		uint8_t bit = (uint8_t)(1u << random_below(8));

		data[at] ^= bit;
		refused += decode_copy(data, len, STACKS) != 0;
		data[at] ^= bit;
	}
	assert_true(refused > 270); /* the frames' checksums see them */
	free(data);
	free(m);
}

/* --- a table's columns --- */

struct table {
	uint8_t *data[5];
	size_t len[5];
};

static int fetch(void *ctx, int i, uint8_t **data, size_t *len)
{
	const struct table *t = ctx;

	if (!t->data[i])
		return -ENOENT;
	*len = t->len[i];
	*data = malloc(*len + 1);
	memcpy(*data, t->data[i], *len);
	return 0;
}

static void table_free(struct table *t)
{
	for (int i = 0; i < 5; i++)
		free(t->data[i]);
}

TEST(each_column_of_stacks_may_be_asked_for_first)
{
	struct made *m = malloc(sizeof(*m));
	struct table t = {0};

	make_stacks(m);
	assert_int_equal(packedcolumns_encode(m->c, 0, -1, &t.data[0], &t.len[0]), 0);
	assert_int_equal(packedcolumns_encode_stacks(m->c, 1, t.data + 1, t.len + 1), 0);
	assert_true(t.len[1] == 2 && t.len[2] == 2 && t.len[3] == 2);
	for (int first = 0; first < 5; first++) {
		struct packedcolumns p = {.n_rows = STACKS, .n = 5, .fetch = fetch, .ctx = &t};

		for (int k = 0; k < 5; k++) {
			int i = (first + k) % 5;

			assert_int_equal(packedcolumns_need(&p, i), 0);
			assert_same(&p.c[i], &m->c[i]);
		}
		packedcolumns_release(&p);
	}
	table_free(&t);
	free(m);
}

TEST(hashes_and_distances_are_told_by_another_column)
{
	static char text[ROWS * 8];
	static int64_t hash[ROWS], from[ROWS], near[ROWS], far[ROWS];
	static uint32_t at[ROWS + 1];
	const struct column c[5] = {{.n = ROWS, .numbers = hash},
				    {.n = ROWS, .text = text, .at = at},
				    {.n = ROWS, .numbers = from},
				    {.n = ROWS, .numbers = near},
				    {.n = ROWS, .numbers = far}};
	static const int told_by[] = {1, -1, -1, 2, 2};
	struct packedcolumns p = {.n_rows = ROWS, .n = 5, .fetch = fetch};
	struct table t = {0};

	for (int i = 0; i < ROWS; i++) {
		at[i + 1] = at[i] + (uint32_t)sprintf(text + at[i], "f%u", random_below(999)) + 1;
		hash[i] = (int64_t)(hash_str(HASH_SEED, text + at[i]) & 0x7fffffff);
		from[i] = (int64_t)((uint64_t)random_below(UINT32_MAX) << 33);
		near[i] = (int64_t)((uint64_t)from[i] + random_below(100));
		far[i] = i;
	}
	from[0] = INT64_MAX;
	near[0] = INT64_MIN; /* it wraps around */
	for (int i = 0; i < 5; i++)
		assert_int_equal(packedcolumns_encode(c, i, told_by[i], &t.data[i], &t.len[i]), 0);
	assert_true(t.data[0][0] == 6 && t.len[0] == 2 &&
		    t.data[3][0] == 7); /* as the header numbers them */
	assert_true(t.data[4][0] < COLUMN_FORMS);
	p.ctx = &t;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(packedcolumns_need(&p, i), 0);
		assert_same(&p.c[i], &c[i]);
	}
	packedcolumns_release(&p);
	table_free(&t);
}

/* Sizes that walk, of many things: a row is near to the one before of the same thing. */
TEST(rows_of_many_things_are_told_by_the_row_before_of_the_same)
{
	static int64_t key[ROWS], walk[ROWS], noise[ROWS], at[7];
	const struct column c[3] = {{.n = ROWS, .numbers = key},
				    {.n = ROWS, .numbers = walk},
				    {.n = ROWS, .numbers = noise}};
	struct packedcolumns p = {.n_rows = ROWS, .n = 3, .fetch = fetch};
	struct table t = {0};

	for (int i = 0; i < 7; i++)
		at[i] = (int64_t)((uint64_t)random_below(UINT32_MAX) << 20);
	at[5] = INT64_MAX; /* it wraps around */
	for (int i = 0; i < ROWS; i++) {
		key[i] = random_below(7);
		at[key[i]] = (int64_t)((uint64_t)at[key[i]] + random_below(50));
		walk[i] = at[key[i]];
		noise[i] = random_below(2);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(i ? packedcolumns_encode_keyed(c, i, 0, &t.data[i], &t.len[i]) :
				     packedcolumns_encode(c, i, -1, &t.data[i], &t.len[i]),
				 0);
	assert_true(t.data[1][0] == 11 && t.data[1][1] == 0); /* as the header numbers it */
	assert_true(t.data[2][0] < COLUMN_FORMS || t.data[2][0] & COLUMN_WEIGHTS);
	p.ctx = &t;
	for (int i = 2; i >= 0; i--) {
		assert_int_equal(packedcolumns_need(&p, i), 0);
		assert_same(&p.c[i], &c[i]);
	}
	packedcolumns_release(&p);
	t.data[1][1] = 1; /* by itself */
	p = (struct packedcolumns){.n_rows = ROWS, .n = 3, .fetch = fetch, .ctx = &t};
	assert_int_equal(packedcolumns_need(&p, 1), -EBADMSG);
	packedcolumns_release(&p);
	table_free(&t);
}

TEST(hashes_of_something_else_stand_by_themselves)
{
	int64_t hash[] = {0, 1};
	const struct column c[] = {{.n = 2, .numbers = hash},
				   {.n = 2, .text = (char[]){"a\0b"}, .at = (uint32_t[]){0, 2, 4}}};
	struct column out;
	uint8_t *data;
	size_t len;

	assert_int_equal(packedcolumns_encode(c, 0, 1, &data, &len), 0);
	assert_int_equal(column_decode(data, len, 2, &out), 0);
	assert_same(&out, &c[0]);
	column_release(&out);
	free(data);
}

TEST(a_column_that_points_to_none_or_to_itself_is_refused)
{
	static const uint8_t wrong[][2] = {{6, 0}, {6, 1},   {6, 2},  {6, 200}, {7, 0},
					   {7, 1}, {7, 255}, {8, 0},  {9, 0},   {9, 1},
					   {9, 4}, {9, 255}, {10, 1}, {0, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		for (size_t len = 0; len <= 2; len++) {
			struct table t = {.data = {(uint8_t *)wrong[i], (uint8_t *)wrong[i]},
					  .len = {len, len}};
			struct packedcolumns p = {.n_rows = 2, .n = 2, .fetch = fetch, .ctx = &t};

			assert_int_equal(packedcolumns_need(&p, 0), -EBADMSG);
			assert_int_equal(packedcolumns_need(&p, 1), -EBADMSG);
			assert_int_equal(packedcolumns_need(&p, 2), -EBADMSG);
			packedcolumns_release(&p);
		}
}

TEST(nulls_are_not_zeros_and_no_column_is_told_by_one_that_has_them)
{
	struct column c[2] = {{.n = ROWS, .numbers = calloc(ROWS, sizeof(int64_t))},
			      {.n = ROWS, .numbers = calloc(ROWS, sizeof(int64_t))}};
	struct packedcolumns p = {.n_rows = ROWS, .n = 2};
	struct table k = {0};

	c[1].null = calloc(ROWS, 1);
	for (size_t i = 0; i < ROWS; i++) {
		c[0].numbers[i] = (int64_t)i;
		c[1].null[i] = i % 3 == 0;
		c[1].numbers[i] = c[1].null[i] ? 0 : (int64_t)(i % 5);
	}
	assert_int_equal(packedcolumns_encode(c, 0, 1, &k.data[0], &k.len[0]),
			 0); /* by itself: the other one has NULLs */
	assert_int_equal(packedcolumns_encode(c, 1, 0, &k.data[1], &k.len[1]), 0);
	p.fetch = fetch;
	p.ctx = &k;
	assert_int_equal(packedcolumns_need_as(&p, 1, true), 0);
	assert_int_equal(packedcolumns_need_as(&p, 0, true), 0);
	assert_null(p.c[0].null);
	assert_memory_equal(p.c[1].null, c[1].null, ROWS);
	assert_memory_equal(p.c[1].numbers, c[1].numbers, ROWS * sizeof(int64_t));
	packedcolumns_release(&p);
	for (size_t len = 0; len < k.len[1]; len++) { /* cut anywhere it is refused */
		size_t whole = k.len[1];

		k.len[1] = len;
		p = (struct packedcolumns){.n_rows = ROWS, .n = 2, .fetch = fetch, .ctx = &k};
		assert_true(packedcolumns_need(&p, 1) < 0);
		packedcolumns_release(&p);
		k.len[1] = whole;
	}
	free(k.data[0]);
	free(k.data[1]);
	column_release(&c[0]);
	column_release(&c[1]);
}
