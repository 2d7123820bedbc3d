/* SPDX-License-Identifier: Apache-2.0 */
/* column: values are read back unchanged; bytes that are not a column of the given length are
 * refused, and nothing is read past their end. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "schema/store/packed/column.h"
#include "tests/unit/test.h"

#define MOST 2000

static uint64_t state = 42;

static uint64_t random_64(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state ^ state >> 29;
}

static uint64_t random_below(uint64_t n)
{
	return (random_64() >> 8) % n;
}

/* Numbers of any size, or near each other. */
static struct column make_numbers(int64_t *numbers)
{
	struct column c = {.n = 1 + random_below(MOST), .numbers = numbers};
	unsigned int shift = (unsigned int)random_below(64);

	for (size_t i = 0; i < c.n; i++)
		numbers[i] = (int64_t)(random_64() >> shift);
	return c;
}

/* Lists of numbers as stacks have them, some of them empty; without `lists`, other texts. */
static struct column make_texts(char *text, uint32_t *at, bool lists)
{
	struct column c = {.n = 1 + random_below(MOST), .text = text, .at = at};
	size_t len = 0;

	for (size_t i = 0; i < c.n; i++) {
		size_t n = random_below(6);

		at[i] = (uint32_t)len;
		for (size_t k = 0; k < n; k++)
			len += (size_t)sprintf(
				text + len, lists ? "%s%u" : "%s%x-", k ? "," : "",
				(unsigned int)(random_64() >> (32 + random_below(32))));
		text[len++] = '\0';
	}
	at[c.n] = (uint32_t)len;
	return c;
}

static struct column make_any(void)
{
	static int64_t numbers[MOST];
	static char text[MOST * 80];
	static uint32_t at[MOST + 1];

	return random_below(2) ? make_numbers(numbers) : make_texts(text, at, random_below(2));
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

/* Number by number it says the same as at once: these numbers, or that there are none. */
static void assert_same_by_cursor(const uint8_t *data, size_t len, size_t n,
				  const struct column *decoded)
{
	struct column_cursor c;
	int64_t v;
	size_t i = 0;

	if (column_cursor_open(data, len, n, &c)) {
		assert_true(!decoded || !decoded->numbers);
		return;
	}
	for (; column_cursor_next(&c, &v); i++)
		if (decoded)
			assert_int_equal(v, decoded->numbers[i]);
	assert_int_equal(column_cursor_close(&c), decoded ? 0 : -EBADMSG);
	assert_true(!decoded || i == n);
}

TEST(values_are_read_back_as_they_were)
{
	for (int turn = 0; turn < 400; turn++) {
		struct column in = make_any(), out = {0};
		uint8_t *data;
		size_t len;

		assert_int_equal(column_encode(&in, &data, &len), 0);
		assert_int_equal(column_decode(data, len, in.n, &out), 0);
		assert_same(&out, &in);
		assert_same_by_cursor(data, len, in.n, &out);
		column_release(&out);
		free(data);
	}
}

TEST(texts_that_are_nearly_lists_stay_what_they_are)
{
	static char text[] = "12,7\0"
			     "012\0"
			     "1,\0"
			     ",1\0"
			     "1,,2\0"
			     "4294967296\0"
			     "99999999999999999999\0"
			     "-1\0"
			     " 1\0"
			     "\0"
			     "0\0"
			     "4294967295,0";
	struct column in = {.n = 12, .text = text}, out;
	uint32_t at[13] = {0};
	uint8_t *data;
	size_t len;

	for (size_t i = 0; i < in.n; i++)
		at[i + 1] = at[i] + (uint32_t)strlen(text + at[i]) + 1;
	in.at = at;
	assert_int_equal(column_encode(&in, &data, &len), 0);
	assert_int_equal(column_decode(data, len, in.n, &out), 0);
	assert_same(&out, &in);
	column_release(&out);
	free(data);
}

TEST(ids_in_a_row_take_next_to_nothing)
{
	static int64_t numbers[MOST];
	struct column in = {.n = MOST, .numbers = numbers};
	uint8_t *data;
	size_t len;

	for (size_t i = 0; i < MOST; i++)
		numbers[i] = (int64_t)i + 1;
	assert_int_equal(column_encode(&in, &data, &len), 0);
	assert_true(len < 40);
	free(data);
}

/* Each new one is the next; those before come again at any time. */
TEST(numbers_in_order_of_their_first_coming_take_nothing_for_new_ones)
{
	static int64_t numbers[MOST];
	struct column in = {.n = MOST, .numbers = numbers}, out;
	int64_t greatest = 0;
	uint8_t *data;
	size_t len;

	for (size_t i = 0; i < MOST; i++) {
		numbers[i] = random_below(4) ? greatest + 1 : greatest - (int64_t)random_below(40);
		greatest = numbers[i] > greatest ? numbers[i] : greatest;
	}
	numbers[MOST / 2] = INT64_MAX;
	numbers[MOST / 2 + 1] = INT64_MIN;
	assert_int_equal(column_encode(&in, &data, &len), 0);
	assert_int_equal(data[0], COLUMN_FRESH);
	assert_int_equal(column_decode(data, len, in.n, &out), 0);
	assert_same(&out, &in);
	column_release(&out);
	free(data);
}

#define MANY 100003

/* Ids in a row; any of a few; new ones and old ones; any at all. */
static int64_t one_of_many(int kind, size_t i, int64_t *greatest)
{
	int64_t v = kind == 0 ? (int64_t)i * 3 :
		    kind == 1 ? (int64_t)random_below(200) :
				(int64_t)random_64();

	if (kind == 2)
		v = random_below(4) ? *greatest + 1 : *greatest - (int64_t)random_below(40);
	*greatest = v > *greatest ? v : *greatest;
	return v;
}

TEST(of_many_numbers_some_tell_the_form)
{
	static const int forms[] = {COLUMN_STEPS, COLUMN_NUMBERS, COLUMN_FRESH};
	static int64_t numbers[MANY];

	for (int kind = 0; kind < 4; kind++) {
		struct column in = {.n = MANY, .numbers = numbers}, out;
		int64_t greatest = 0;
		uint8_t *data;
		size_t len;

		for (size_t i = 0; i < MANY; i++)
			numbers[i] = one_of_many(kind, i, &greatest);
		assert_int_equal(column_encode(&in, &data, &len), 0);
		if (kind < 3)
			assert_int_equal(data[0] & ~COLUMN_WEIGHTS, forms[kind]);
		assert_int_equal(column_decode(data, len, in.n, &out), 0);
		assert_same(&out, &in);
		assert_same_by_cursor(data, len, in.n, &out);
		column_release(&out);
		free(data);
	}
}

/* Hand-made by rule 6 of the header, so that what is written and what is read cannot be wrong
 * alike: 1, -1, 300, 70000. */
TEST(numbers_by_weight_are_what_the_rule_says)
{
	static const uint8_t raw[] = {2, 1, 0xd8, 0xe0, 4, 0xc5, 8};
	static const int64_t numbers[] = {1, -1, 300, 70000};
	uint8_t data[64] = {COLUMN_NUMBERS | COLUMN_WEIGHTS, sizeof(raw)};
	size_t len;
	struct column out;

	len = ZSTD_compress(data + 2, sizeof(data) - 2, raw, sizeof(raw), 1);
	assert_false(ZSTD_isError(len));
	assert_int_equal(column_decode(data, 2 + len, 4, &out), 0);
	assert_memory_equal(out.numbers, numbers, sizeof(numbers));
	column_release(&out);
	assert_int_equal(column_decode(data, 2 + len, 3, &out), -EBADMSG);
	assert_int_equal(column_decode(data, 2 + len, 5, &out), -EBADMSG);
}

/* Times to the nanosecond: their higher bytes are alike, their lower ones are not. */
TEST(numbers_of_many_bytes_are_told_by_weight)
{
	static int64_t numbers[MOST];
	struct column in = {.n = MOST, .numbers = numbers}, out;
	uint8_t *data;
	size_t len;

	for (size_t i = 1; i < MOST; i++)
		numbers[i] = numbers[i - 1] + (int64_t)random_below(50000000);
	assert_int_equal(column_encode(&in, &data, &len), 0);
	assert_true(data[0] & COLUMN_WEIGHTS);
	assert_int_equal(column_decode(data, len, in.n, &out), 0);
	assert_same(&out, &in);
	column_release(&out);
	free(data);
}

TEST(a_form_of_later_is_told_from_damage)
{
	struct column in = make_any();
	uint8_t *data;
	size_t len;

	assert_int_equal(column_encode(&in, &data, &len), 0);
	data[0] = 15;
	assert_int_equal(column_decode(data, len, in.n, &in), -ENOTSUP);
	free(data);
}

TEST(a_text_with_a_nul_is_not_encoded)
{
	uint32_t at[] = {0, 4};
	struct column in = {.n = 1, .text = (char[]){"a\0b"}, .at = at};
	uint8_t *data;
	size_t len;

	assert_int_equal(column_encode(&in, &data, &len), -EINVAL);
}

/* Of that size in memory: a sanitizer sees what is read beyond. */
static int decode_copy(const uint8_t *data, size_t len, size_t n)
{
	uint8_t *copy = malloc(len + !len);
	struct column out = {0};
	int rc;

	memcpy(copy, data, len);
	rc = column_decode(copy, len, n, &out);
	assert_same_by_cursor(copy, len, n, rc ? NULL : &out);
	column_release(&out);
	free(copy);
	return rc;
}

TEST(a_column_that_is_cut_or_of_another_length_is_refused)
{
	for (int turn = 0; turn < 20; turn++) {
		struct column in = make_any();
		uint8_t *data;
		size_t len;

		assert_int_equal(column_encode(&in, &data, &len), 0);
		for (size_t cut = 0; cut < len; cut += 1 + len / 50)
			assert_int_equal(decode_copy(data, cut, in.n), -EBADMSG);
		assert_int_equal(decode_copy(data, len, in.n + 1), -EBADMSG);
		assert_int_equal(decode_copy(data, len, in.n - 1), -EBADMSG);
		assert_int_equal(decode_copy(data, len, SIZE_MAX / 16), -EBADMSG);
		free(data);
	}
}

TEST(any_bit_that_is_turned_is_refused_or_leaves_as_many_values)
{
	size_t refused = 0, all = 0;

	for (int turn = 0; turn < 10; turn++) {
		struct column in = make_any();
		uint8_t *data;
		size_t len;

		assert_int_equal(column_encode(&in, &data, &len), 0);
		for (size_t i = 0; i < 200; i++, all++) {
			size_t at = random_below(len);
			uint8_t bit = (uint8_t)(1u << random_below(8));

			data[at] ^= bit;
			refused += decode_copy(data, len, in.n) != 0;
			data[at] ^= bit;
		}
		free(data);
	}
	assert_true(refused > all * 9 / 10); /* the frame's checksum sees them */
}
