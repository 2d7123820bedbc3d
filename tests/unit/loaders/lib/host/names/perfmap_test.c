/* SPDX-License-Identifier: Apache-2.0 */
/* perfmap: overlaps, compared with a naive oracle; hostile lines; a map on its way from one process
 * to another; a map written by node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/names/perfmap.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

static struct perfmap *parse(const char *s)
{
	struct perfmap *m;

	perfmap_parse(s, strlen(s), &m);
	return m;
}

static void expect(const struct perfmap *m, uint64_t addr, const char *name)
{
	struct perfmap_entry e;

	if (!name) {
		assert_false(perfmap_find(m, addr, &e));
		return;
	}
	assert_true(perfmap_find(m, addr, &e));
	assert_string_equal(e.name, name);
}

TEST(ranges_are_found_from_first_to_last_byte)
{
	struct perfmap *m = parse(
		"7f0010 20 LazyCompile:*fast /a b.js:1:2\n0x7f0100 0X10 second\r\n7f0200 1 last");
	struct perfmap_entry e;

	expect(m, 0x7f000f, NULL);
	expect(m, 0x7f0010, "LazyCompile:*fast /a b.js:1:2");
	expect(m, 0x7f002f, "LazyCompile:*fast /a b.js:1:2");
	expect(m, 0x7f0030, NULL);
	expect(m, 0x7f010f, "second");
	expect(m, 0x7f0200, "last");
	expect(m, 0x7f0201, NULL);
	assert_true(perfmap_find(m, 0x7f0020, &e));
	assert_int_equal(e.start, 0x7f0010);
	assert_int_equal(e.size, 0x20);
	perfmap_free(m);
}

TEST(a_later_line_overrides_what_it_overlaps)
{
	struct perfmap *m = parse("100 100 old\n140 20 new\n180 10 x\n170 40 newest\n");

	expect(m, 0x13f, "old");
	expect(m, 0x140, "new");
	expect(m, 0x15f, "new");
	expect(m, 0x160, "old");
	expect(m, 0x170, "newest");
	expect(m, 0x185, "newest");
	expect(m, 0x1b0, "old");
	expect(m, 0x200, NULL);
	perfmap_free(m);
}

TEST(lines_that_cannot_be_are_skipped)
{
	struct perfmap *m =
		parse("\n100\n100 10\n100 10 \n-100 10 neg\n100 -10 neg\n100 0 empty\n"
		      "ffffffffffffff00 100 wraps\nffffffffffffff00 fffffffffffffff0 wraps\n"
		      "11111111111111111 10 wide\nzz 10 x\n100 zz x\n0x 10 x\n"
		      "ffffffffffffff00 ff top\n");

	assert_int_equal(perfmap_count(m), 1);
	assert_int_equal(perfmap_skipped(m), 12);
	expect(m, 0xfffffffffffffffe, "top");
	expect(m, 0x100, NULL);
	perfmap_free(m);
}

TEST(names_of_any_bytes_and_length_are_kept_bounded)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct perfmap_entry e;
	struct perfmap *m;

	strbuf_addstr(&s, "100 10 ");
	for (int i = 0; i < 5000; i++)
		strbuf_addch(&s, 'n');
	strbuf_add(&s, "\n200 10 \xff\xfe</script>\0x\n", 22);
	perfmap_parse(s.buf, s.len, &m);
	assert_true(perfmap_find(m, 0x100, &e));
	assert_int_equal(strlen(e.name), PERFMAP_NAME_MAX);
	expect(m, 0x200, "\xff\xfe</script>?x");
	perfmap_free(m);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* The oracle: the last of all lines that covers the address. */
TEST(random_overlaps_agree_with_a_linear_search)
{
	uint32_t seed = 7;

	for (int round = 0; round < 50; round++) {
		struct strbuf s cleanup_strbuf = STRBUF_INIT;
		unsigned int start[60], size[60];
		uint64_t last_end = 0, from, to;
		const char *name;
		struct perfmap *m;

		for (int i = 0; i < 60; i++) {
			start[i] = next_random(&seed) % 500;
			size[i] = 1 + next_random(&seed) % 80;
			strbuf_addf(&s, "%x %x f%d\n", start[i], size[i], i);
		}
		perfmap_parse(s.buf, s.len, &m);
		for (unsigned int a = 0; a < 620; a++) {
			char want[16] = "";

			for (int i = 0; i < 60; i++)
				if (a >= start[i] && a < start[i] + size[i])
					snprintf(want, sizeof(want), "f%d", i);
			expect(m, a, want[0] ? want : NULL);
		}
		for (size_t i = 0; perfmap_range(m, i, &from, &to, &name); i++) {
			assert_true(from >= last_end && to > from);
			last_end = to;
		}
		perfmap_free(m);
	}
}

TEST(a_hundred_thousand_nested_ranges_take_no_time)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	int64_t before;
	struct perfmap *m;

	for (unsigned int i = 0; i < 100000; i++)
		strbuf_addf(&s, "%x %x f\n", 0x1000 + i, 400000 - 2 * i);
	before = clock_cpu_ns();
	perfmap_parse(s.buf, s.len, &m);
	print_message("100 000 nested ranges: %.1f ms\n", (double)(clock_cpu_ns() - before) / 1e6);
	assert_true(clock_cpu_ns() - before < 2 * NSEC_PER_SEC);
	perfmap_free(m);
}

/* ---- from one process to another ---- */

static char *packed(const struct perfmap *m, size_t *len)
{
	char *bytes;

	*len = perfmap_packed_size(m);
	bytes = malloc(*len);
	assert_non_null(bytes);
	perfmap_pack(m, bytes);
	return bytes;
}

TEST(a_map_that_was_handed_over_says_the_same)
{
	static const struct perfmap_place places[] = {{0x500, "a.js", 7}, {0x508, "b.js", 9}};
	struct perfmap *m = perfmap_begin(), *got = NULL;
	struct perfmap_entry e;
	size_t len;
	char *bytes;

	assert_true(perfmap_add(m, 0x500, 0x20, "first", 5, places, 2, 0x500));
	assert_true(perfmap_add(m, 0x510, 0x20, "second", 6, NULL, 0, 0));
	assert_true(perfmap_add(m, 0x600, 0x20, NULL, 0, NULL, 0, 0));
	perfmap_end(m);
	bytes = packed(m, &len);
	assert_int_equal(perfmap_unpack(bytes, len, &got), 0);
	assert_int_equal(perfmap_count(got), perfmap_count(m));
	for (uint64_t at = 0x4f0; at < 0x640; at++) {
		struct perfmap_entry was;
		bool there = perfmap_find(m, at, &was);

		assert_int_equal(perfmap_find(got, at, &e), there);
		if (there)
			assert_string_equal(e.name, was.name);
	}
	assert_true(perfmap_find(got, 0x509, &e));
	assert_string_equal(e.file, "b.js");
	assert_int_equal(e.line, 9);
	perfmap_free(got);
	perfmap_free(m);
}

TEST(an_empty_map_can_be_handed_over)
{
	struct perfmap *m = parse(""), *got = NULL;
	size_t len;
	char *bytes = packed(m, &len);

	assert_int_equal(perfmap_unpack(bytes, len, &got), 0);
	expect(got, 0x100, NULL);
	perfmap_free(got);
	perfmap_free(m);
}

/* Each byte of it, changed: what is taken is safe to ask (under sanitizers), the rest is refused.
 */
TEST(a_map_that_lies_is_refused_or_harmless)
{
	struct perfmap *m = parse("100 100 old\n140 20 new\n300 10 x\n"), *got;
	struct perfmap_entry e;
	size_t len, refused = 0;
	char *good = packed(m, &len);

	for (size_t i = 0; i < len * 3; i++) {
		char *bytes = malloc(len);

		assert_non_null(bytes);
		memcpy(bytes, good, len);
		bytes[i / 3] ^= i % 3 == 0 ? 1 : i % 3 == 1 ? (char)0x80 : (char)0xff;
		if (perfmap_unpack(bytes, len, &got)) {
			free(bytes);
			refused++;
			continue;
		}
		for (uint64_t at = 0; at < 0x400; at++)
			if (perfmap_find(got, at, &e))
				assert_true(strlen(e.name) <= PERFMAP_NAME_MAX);
		perfmap_free(got);
	}
	assert_true(refused > len);
	assert_int_equal(perfmap_unpack(good, len - 8, &got), -EBADMSG);
	assert_int_equal(perfmap_unpack(good, 3, &got), -EBADMSG);
	free(good);
	perfmap_free(m);
}

TEST(what_node_writes_is_read_whole)
{
	char command[512];
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	char line[8192], *end;
	struct perfmap *m;
	size_t lines = 0;
	FILE *out;
	long pid;

	if (system("command -v node >/dev/null 2>&1"))
		skip_missing("node");
	snprintf(
		command, sizeof(command),
		"cd $(mktemp -d) && node --perf-basic-prof -e '"
		"function busy(n){let s=0;for(let i=0;i<n;i++)s+=Math.sqrt(i);return s};for(let j=0;j<300;j++)busy(20000);"
		"console.log(process.pid)'");
	out = popen(command, "r");
	assert_non_null(fgets(line, sizeof(line), out));
	pclose(out);
	pid = strtol(line, &end, 10);
	snprintf(command, sizeof(command), "/tmp/perf-%ld.map", pid);
	out = fopen(command, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		strbuf_addstr(&s, line);
		lines++;
	}
	fclose(out);
	unlink(command);
	perfmap_parse(s.buf, s.len, &m);
	print_message("node: %zu lines, %zu kept, %zu bytes held\n", lines, perfmap_count(m),
		      perfmap_bytes(m));
	assert_true(lines > 100);
	assert_true(perfmap_count(m) + perfmap_skipped(m) == lines);
	assert_true(perfmap_skipped(m) <= lines / 50);
	perfmap_free(m);
}
