/* SPDX-License-Identifier: Apache-2.0 */
/* jsonschema: the short notation becomes a schema. */
#include <stdlib.h>

#include "tests/unit/test.h"
#include "tools/print/schema/jsonschema.h"

static void assert_schema(const char *shape, const char *text)
{
	json_t *made = jsonschema_of(shape);
	char *said = made ? json_dumps(made, JSON_COMPACT) : NULL;

	assert_non_null(said);
	assert_string_equal(said, text);
	free(said);
	json_decref(made);
}

TEST(each_mark_is_a_type)
{
	assert_schema(
		"a b# c% d! e*",
		"{\"type\":[\"object\",\"null\"],\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]},"
		"\"b\":{\"type\":[\"integer\",\"null\"]},\"c\":{\"type\":[\"number\",\"null\"]},"
		"\"d\":{\"type\":[\"boolean\",\"null\"]},\"e\":{}}}");
	assert_schema(
		"a{b#} c[$] d[e]",
		"{\"type\":[\"object\",\"null\"],\"properties\":{\"a\":{\"type\":[\"object\",\"null\"],"
		"\"properties\":{\"b\":{\"type\":[\"integer\",\"null\"]}}},\"c\":{\"type\":\"array\","
		"\"items\":{\"type\":[\"string\",\"null\"]}},\"d\":{\"type\":\"array\",\"items\":{\"type\":"
		"[\"object\",\"null\"],\"properties\":{\"e\":{\"type\":[\"string\",\"null\"]}}}}}}");
}

TEST(a_keys_ending_says_its_unit)
{
	assert_schema(
		"cpu_ns#",
		"{\"type\":[\"object\",\"null\"],\"properties\":{\"cpu_ns\":{\"type\":[\"integer\",\"null\"],"
		"\"description\":\"nanoseconds; a time: since 1970, UTC\"}}}");
}

TEST(what_is_no_shape_has_no_schema)
{
	static const char *const bad[] = {
		"a{", "a[",    "a[$",   "a]",
		"{",  "a[$$]", "a b-c", "a{b{c{d{e{f{g{h{i{j{k{l{m{n{o{p{q{r}}}}}}}}}}}}}}}}}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(jsonschema_of(bad[i]));
}

TEST(each_verbs_shape_can_be_read)
{
	static const char *const verbs[] = {"overview", "requests", "net",  "map",  "flame",
					    "diff",     "status",   "seal", "prune"};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const char *shape = jsonshape_of(verbs[i]);
		json_t *made = shape ? jsonschema_of(shape + (*shape == '=')) : NULL;

		assert_non_null(made);
		json_decref(made);
	}
	assert_null(jsonshape_of("serve"));
}
