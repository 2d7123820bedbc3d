/* SPDX-License-Identifier: Apache-2.0 */
/* profile.proto, written here field by field. */
#include <errno.h>
#include <string.h>

#include "loaders/scrape/profile.h"
#include "schema/base/proto.h"
#include "tests/unit/test.h"

static struct {
	size_t mappings, stacks, depth;
	uint64_t values[WIRE_VALUES], first;
	struct wire_mapping mapping;
} got;

static void on_mapping(void *ctx, const struct wire_mapping *m)
{
	(void)ctx;
	got.mappings++;
	got.mapping = *m;
}

static void on_stack(void *ctx, const uint64_t values[WIRE_VALUES], const uint64_t *addresses,
		     size_t n)
{
	(void)ctx;
	got.stacks++;
	got.depth = n;
	got.first = n ? addresses[0] : 0;
	memcpy(got.values, values, sizeof(got.values));
}

static int read_it(const struct strbuf *s, enum wire_ask ask, struct wire_end *end)
{
	const struct profile_out out = {.mapping = on_mapping, .stack = on_stack};

	memset(&got, 0, sizeof(got));
	return profile_read(s->buf, s->len, ask, &out, end);
}

/* A field whose message has numbers, by field from 1 on. */
static void add(struct strbuf *s, unsigned int field, size_t n, const uint64_t *v)
{
	struct strbuf m = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		proto_uint(&m, (unsigned int)i + 1, v[i]);
	proto_bytes(s, field, strbuf_str(&m), m.len);
	strbuf_release(&m);
}

#define ADD(s, field, ...) \
	add(s, field, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]){__VA_ARGS__})

static void add_sample(struct strbuf *s, size_t depth, uint64_t location, uint64_t a, uint64_t b)
{
	struct strbuf m = STRBUF_INIT, packed = STRBUF_INIT;

	for (size_t i = 0; i < depth; i++)
		proto_varint(&packed, location);
	proto_bytes(&m, 1, strbuf_str(&packed), packed.len);
	strbuf_reset(&packed);
	proto_varint(&packed, a);
	proto_varint(&packed, b);
	proto_bytes(&m, 2, strbuf_str(&packed), packed.len);
	proto_bytes(s, 2, strbuf_str(&m), m.len);
	strbuf_release(&packed);
	strbuf_release(&m);
}

/* samples come before what they refer to, and strings last */
static struct strbuf mutex_profile(const char *unit)
{
	const char *const strings[] = {"", "contentions", "count", "delay", unit};
	struct strbuf s = STRBUF_INIT;

	ADD(&s, 1, 1, 2);
	ADD(&s, 1, 3, 4);
	add_sample(&s, 2, 7, 5, 9000);
	ADD(&s, 3, 1, 0x400000, 0x500000, 0x1000);
	ADD(&s, 4, 7, 1, 0x401234);
	for (size_t i = 0; i < 5; i++)
		proto_bytes(&s, 6, strings[i], strlen(strings[i]));
	proto_uint(&s, 10, 77);
	return s;
}

TEST(a_stack_has_its_addresses_and_its_values_by_name)
{
	struct strbuf s = mutex_profile("nanoseconds");
	struct wire_end end;

	assert_int_equal(read_it(&s, WIRE_ASK_MUTEX, &end), 0);
	assert_true(got.stacks == 1 && got.depth == 2 && got.first == 0x401234 &&
		    got.values[0] == 5 && got.values[1] == 9000);
	assert_true(got.mappings == 1 && got.mapping.start == 0x400000 &&
		    got.mapping.end == 0x500000 && got.mapping.offset == 0x1000);
	assert_true(end.duration_ns == 77 && !end.left_out);
	/* whatever is missing, it is read within its bounds */
	for (size_t cut = 1; cut < s.len; cut++) {
		struct strbuf part = {s.buf, s.len - cut, s.cap};

		read_it(&part, WIRE_ASK_MUTEX, &end);
	}
	strbuf_release(&s);
}

TEST(another_kind_or_unit_is_refused)
{
	struct strbuf s = mutex_profile("nanoseconds"), other = mutex_profile("seconds");
	struct wire_end end;

	assert_int_equal(read_it(&s, WIRE_ASK_HEAP, &end), -EBADMSG);
	assert_int_equal(read_it(&s, WIRE_ASK_INDEX, &end), -EBADMSG);
	assert_int_equal(read_it(&other, WIRE_ASK_MUTEX, &end), -EBADMSG);
	strbuf_release(&s);
	strbuf_release(&other);
}

TEST(negative_values_and_places_that_are_not_there_are_refused)
{
	struct strbuf s = mutex_profile("nanoseconds"), t = mutex_profile("nanoseconds");
	struct wire_end end;

	add_sample(&s, 1, 7, (uint64_t)-1, 1);
	assert_int_equal(read_it(&s, WIRE_ASK_MUTEX, &end), -EBADMSG);
	add_sample(&t, 1, 8, 1, 1);
	assert_int_equal(read_it(&t, WIRE_ASK_MUTEX, &end), -EBADMSG);
	strbuf_release(&s);
	strbuf_release(&t);
}

TEST(what_is_too_deep_or_too_much_is_cut_and_counted)
{
	struct strbuf s = mutex_profile("nanoseconds");
	struct wire_end end;

	add_sample(&s, WIRE_DEPTH + 100, 7, 1, 1);
	assert_int_equal(read_it(&s, WIRE_ASK_MUTEX, &end), 0);
	assert_true(got.stacks == 2 && got.depth == WIRE_DEPTH && !end.left_out);
	for (uint32_t i = 0; i < WIRE_STACKS_MAX + 10; i++)
		add_sample(&s, 1, 7, 1, 1);
	assert_int_equal(read_it(&s, WIRE_ASK_MUTEX, &end), 0);
	assert_true(got.stacks == WIRE_STACKS_MAX && end.left_out == 12);
	strbuf_release(&s);
}
