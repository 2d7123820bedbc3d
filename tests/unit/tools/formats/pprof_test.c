/* SPDX-License-Identifier: Apache-2.0 */
/* pprof: protoc reads from a profile what the fold contains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/proto.h"
#include "schema/base/strbuf.h"
#include "tests/unit/tools/fold/fold_sample.h"
#include "tools/formats/pprof.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

TEST(varints_are_as_the_format_says)
{
	static const struct {
		uint64_t v;
		const char *bytes;
		size_t n;
	} cases[] = {
		{0, "\0", 1},
		{127, "\x7f", 1},
		{128, "\x80\x01", 2},
		{300, "\xac\x02", 2},
		{UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf s = STRBUF_INIT;

		proto_varint(&s, cases[i].v);
		assert_int_equal(s.len, cases[i].n);
		assert_memory_equal(s.buf, cases[i].bytes, s.len);
		strbuf_release(&s);
	}
}

static char *read_all(FILE *f)
{
	struct strbuf s = STRBUF_INIT;
	char buf[4096];
	size_t n;

	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(&s, buf, n);
	return strbuf_take(&s);
}

/* The profile as protoc prints it, without line breaks and indents; the caller's. */
static char *decoded_of(const struct fold *f)
{
	char path[] = "/tmp/sonde-pprof-XXXXXX", command[256], *text;
	FILE *out = fdopen(mkstemp(path), "w"), *in;
	size_t to = 0;

	assert_non_null(out);
	assert_int_equal(pprof_write(f, out), 0);
	fclose(out);
	snprintf(
		command, sizeof(command),
		"gzip -dc %s | protoc -Itests/unit/tools --decode perftools.profiles.Profile profile.proto",
		path);
	in = popen(command, "r");
	assert_non_null(in);
	text = read_all(in);
	assert_int_equal(pclose(in), 0);
	unlink(path);
	for (size_t from = 0; text[from]; from++)
		if (text[from] != '\n' && !(text[from] == ' ' && (to == 0 || text[to - 1] == ' ')))
			text[to++] = text[from];
		else if (text[from] == '\n' && to && text[to - 1] != ' ')
			text[to++] = ' ';
	text[to] = '\0';
	return text;
}

static char *decoded(void)
{
	struct fold f = fold_sample();

	return decoded_of(&f);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0, len = strlen(part);

	for (; *text; text++) /* not strstr: where memory is checked each call looks at all of it */
		n += *text == *part && !strncmp(text, part, len);
	return n;
}

static int have_protoc(void)
{
	return system("protoc --version > /dev/null 2>&1") == 0;
}

enum { MANY = 100000 }; /* megabytes of samples, and of strings: they are compressed in pieces */

TEST(a_large_profile_is_whole)
{
	struct fold f = fold_sample();
	struct fold_leaf *leaves;
	char(*names)[16], *text, part[64];
	const char *at;

	if (!have_protoc()) {
		skip_missing("protoc (protobuf-compiler)");
	}
	leaves = calloc(MANY, sizeof(*leaves));
	names = calloc(MANY, sizeof(*names));
	assert_non_null(leaves);
	assert_non_null(names);
	for (int i = 0; i < MANY; i++) {
		leaves[i] = f.leaves[0];
		snprintf(names[i], sizeof(names[i]), "thread-%06d", i);
		leaves[i].thread = names[i];
	}
	f.leaves = leaves;
	f.n_leaves = MANY;
	text = decoded_of(&f);
	assert_int_equal(count(text, "sample {"), MANY);
	assert_non_null(at = strstr(text, "string_table: "));
	assert_int_equal(strncmp(at, "string_table: \"\" ", 17), 0);
	assert_non_null(at = strstr(at, "string_table: \"thread-000000\" "));
	assert_non_null(at = strstr(at, "string_table: \"thread-000001\" "));
	for (int i = 1; i < MANY; i++) { /* one behind the other */
		int n = snprintf(part, sizeof(part), "string_table: \"thread-%06d\" ", i);

		assert_int_equal(strncmp(at, part, (size_t)n), 0);
		at += n;
	}
	free(text);
	free(names);
	free(leaves);
}

TEST(protoc_reads_what_the_fold_said)
{
	char *text;

	if (!have_protoc()) {
		skip_missing("protoc (protobuf-compiler)");
	}
	text = decoded();
	assert_int_equal(count(text, "sample {"), 7);
	assert_int_equal(count(text, "mapping {"), 4);
	assert_int_equal(count(text, "function {"), 7); /* "[no stack]" is one */
	assert_int_equal(count(text, "location {"),
			 8); /* work twice: with and without what is inlined */
	assert_non_null(strstr(text, "value: 20 value: 200000000"));
	assert_non_null(strstr(text, "period: 10000000"));
	assert_non_null(strstr(text, "time_nanos: 1795144200000000000 duration_nanos: 1000000000"));
	assert_non_null(strstr(
		text, "string_table: \"\" string_table: \"samples\" string_table: \"count\""));
	assert_non_null(strstr(
		text, "\"</script><img src=x onerror=alert(1)>;\\\"&\\'\\360\\237\\224\\245\""));
	assert_non_null(strstr(text, "string_table: \"web\\\"1\""));
	assert_non_null(strstr(text, "lost 4 samples: ring"));
	free(text);
}

TEST(an_inlined_frame_is_a_line_of_its_caller_s_location)
{
	char *text, *at;

	if (!have_protoc())
		skip_missing("protoc (protobuf-compiler)");
	text = decoded();
	/* at the address of work in the first mapping (0x400000 + 0x1200), the inlined function
	 * first */
	at = strstr(text, "address: 4198912 line { function_id: ");
	assert_non_null(at);
	assert_int_equal(count(text, "line: 3 } line { function_id: "), 1);
	assert_int_equal(strncmp(strstr(text, "line: 3 } line {") +
					 strlen("line: 3 } line { function_id: N "),
				 "line: 20", 8),
			 0);
	free(text);
}

TEST(only_mappings_whose_frames_are_all_named_say_so)
{
	char *text;

	if (!have_protoc())
		skip_missing("protoc (protobuf-compiler)");
	text = decoded();
	assert_int_equal(count(text, "has_functions: true"), 3); /* app, kernel, evil; not libc */
	assert_int_equal(count(text, "has_filenames: true"), 1); /* app */
	assert_int_equal(count(text, "has_inline_frames: true"), 1);
	assert_int_equal(count(text, "start_line: 8"),
			 1); /* main, though one place of it does not know */
	assert_non_null(strstr(text, "mapping { id: 1 memory_start: 4194304"));
	free(text);
}
