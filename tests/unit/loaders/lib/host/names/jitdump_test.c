/* SPDX-License-Identifier: Apache-2.0 */
/* jitdump: names, lines and moves as written; records that lie; which file belongs to a process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "loaders/lib/host/names/jitdump.h"
#include "loaders/lib/host/names/perfmap.h"
#include "tests/unit/test.h"

#define PID 77

static struct {
	uint8_t bytes[8192];
	size_t len;
} d;

static void put(const void *data, size_t n)
{
	assert_true(d.len + n <= sizeof(d.bytes));
	memcpy(d.bytes + d.len, data, n);
	d.len += n;
}

static void put32(uint32_t v)
{
	put(&v, sizeof(v));
}

static void put64(uint64_t v)
{
	put(&v, sizeof(v));
}

static void head(uint32_t pid)
{
	d.len = 0;
	put32(0x4A695444);
	put32(1);
	put32(40);
	put32(62);
	put32(0);
	put32(pid);
	put64(0);
	put64(0);
}

/* Returns the offset of its size. */
static size_t record(uint32_t kind, uint32_t size)
{
	put32(kind);
	put32(size);
	put64(1);
	return d.len - 12;
}

static void load(uint64_t addr, uint64_t size, uint64_t number, const char *name)
{
	record(0, (uint32_t)(16 + 40 + strlen(name) + 1 + 4));
	put32(PID);
	put32(PID);
	put64(addr);
	put64(addr);
	put64(size);
	put64(number);
	put(name, strlen(name) + 1);
	put("code", 4);
}

static void move(uint64_t from, uint64_t to, uint64_t size, uint64_t number)
{
	record(1, 16 + 48);
	put32(PID);
	put32(PID);
	put64(to);
	put64(from);
	put64(to);
	put64(size);
	put64(number);
}

static void place(uint64_t addr, uint32_t line, const char *file)
{
	put64(addr);
	put32(line);
	put32(0);
	put(file, strlen(file) + 1);
}

/* What is kept of a file has the same names at the same addresses. */
static void same_when_slim(const struct perfmap *whole)
{
	uint64_t start, end, start_slim, end_slim;
	const char *name, *name_slim;
	struct perfmap *m = NULL;
	FILE *f = tmpfile();
	size_t len = 0, i = 0;
	char *kept = NULL;

	assert_int_equal(fwrite(d.bytes, 1, d.len, f), d.len);
	fflush(f);
	assert_int_equal(jitdump_slim(fileno(f), d.len, &kept, &len), 0);
	assert_true(len <= d.len);
	assert_int_equal(jitdump_parse(kept, len, PID, &m), 0);
	for (; perfmap_range(whole, i, &start, &end, &name); i++) {
		assert_true(perfmap_range(m, i, &start_slim, &end_slim, &name_slim));
		assert_true(start == start_slim && end == end_slim);
		assert_string_equal(name, name_slim);
	}
	assert_false(perfmap_range(m, i, &start, &end, &name));
	assert_int_equal(perfmap_bytes(m), perfmap_bytes(whole));
	perfmap_free(m);
	free(kept);
	fclose(f);
}

static struct perfmap *parse(void)
{
	uint8_t *own = malloc(d.len); /* so that a read beyond it is seen */
	struct perfmap *m = NULL;

	memcpy(own, d.bytes, d.len);
	assert_int_equal(jitdump_parse(own, d.len, PID, &m), 0);
	free(own);
	same_when_slim(m);
	return m;
}

static void expect(const struct perfmap *m, uint64_t addr, const char *name, const char *file,
		   uint32_t line)
{
	struct perfmap_entry e;

	if (!name) {
		assert_false(perfmap_find(m, addr, &e));
		return;
	}
	assert_true(perfmap_find(m, addr, &e));
	assert_string_equal(e.name, name);
	assert_int_equal(e.line, line);
	if (file)
		assert_string_equal(e.file, file);
	else
		assert_null(e.file);
}

static void two_lined_functions(void)
{
	head(PID);
	record(2, 16 + 16 + 3 * 16 + 5 + 2 + 5);
	put64(0x1000);
	put64(3);
	place(0x1000, 7, "a.js");
	place(0x1008, 8, "\xff");
	place(0x1010, 3, "b.js");
	load(0x1000, 0x20, 1, "first");
	load(0x2000, 0x10, 2, "second");
}

TEST(functions_have_names_and_lines)
{
	struct perfmap *m;

	two_lined_functions();
	m = parse();
	expect(m, 0x0fff, NULL, NULL, 0);
	expect(m, 0x1000, "first", "a.js", 7);
	expect(m, 0x100f, "first", "a.js", 8);
	expect(m, 0x101f, "first", "b.js", 3);
	expect(m, 0x1020, NULL, NULL, 0);
	expect(m, 0x2000, "second", NULL, 0); /* the lines were the first's */
	perfmap_free(m);
}

TEST(what_has_moved_has_its_name_and_lines_there_and_none_where_it_was)
{
	struct perfmap *m;

	two_lined_functions();
	move(0x1000, 0x5000, 0x20, 1);
	move(0x2000, 0x1008, 0x10, 2);
	move(0x7000, 0x8000, 0x10, 9); /* never loaded */
	m = parse();
	expect(m, 0x5008, "first", "a.js", 8);
	expect(m, 0x1000, NULL, NULL, 0);
	expect(m, 0x1008, "second", NULL, 0);
	expect(m, 0x1018, NULL, NULL, 0);
	expect(m, 0x2000, NULL, NULL, 0);
	expect(m, 0x8000, NULL, NULL, 0);
	perfmap_free(m);
}

TEST(a_later_function_stands_where_an_earlier_one_was)
{
	struct perfmap *m;

	two_lined_functions();
	load(0x1010, 0x100, 3, "third");
	m = parse();
	expect(m, 0x100f, "first", "a.js", 8);
	expect(m, 0x1010, "third", NULL, 0);
	perfmap_free(m);
}

TEST(records_that_lie_cost_their_own_names)
{
	struct perfmap *m;
	size_t size;

	two_lined_functions();
	load(UINT64_MAX - 4, 0x10, 4, "beyond");
	load(0x3000, 0, 5, "empty");
	record(9, 16);          /* of a kind that is not known */
	record(2, 16 + 16 + 4); /* more places than there is room for */
	put64(0x4000);
	put64(UINT64_MAX);
	put32(1);
	load(0x4000, 0x10, 6, "fourth");
	size = record(0, 16);
	memcpy(d.bytes + size, &(uint32_t){4},
	       4); /* shorter than itself: nothing behind it is read */
	load(0x6000, 0x10, 7, "never");
	m = parse();
	expect(m, 0x1000, "first", "a.js", 7);
	expect(m, 0x3000, NULL, NULL, 0);
	expect(m, 0x4000, "fourth", NULL, 0);
	expect(m, 0x6000, NULL, NULL, 0);
	assert_int_equal(perfmap_count(m), 3);
	perfmap_free(m);
}

TEST(a_file_that_is_cut_off_says_what_is_whole)
{
	size_t whole;

	two_lined_functions();
	whole = d.len;
	for (d.len = 40; d.len < whole; d.len++) {
		struct perfmap *m = parse();

		assert_in_range(perfmap_count(m), 0, 1);
		perfmap_free(m);
	}
}

TEST(what_is_no_jitdump_of_this_process_is_refused)
{
	struct perfmap *m = NULL;

	head(PID + 1);
	assert_int_equal(jitdump_parse(d.bytes, d.len, PID, &m), -EBADMSG);
	head(PID);
	assert_int_equal(jitdump_parse(d.bytes, 39, PID, &m), -EBADMSG);
	d.bytes[0]++;
	assert_int_equal(jitdump_parse(d.bytes, d.len, PID, &m), -EBADMSG);
	assert_null(m);
}

TEST(it_is_found_by_its_name_with_the_pid)
{
	const char *const paths[] = {"/usr/bin/node", NULL, "/srv/jit-770.dump",
				     "/srv/xjit-77.dump", "/srv/jit-77.dump"};
	const char *const bun = "/srv/jit-81-77.dump", *const others = "/srv/jit-77-81.dump";

	assert_string_equal(jitdump_path(paths, 5, PID), "/srv/jit-77.dump");
	assert_null(jitdump_path(paths, 4, PID));
	assert_null(jitdump_path(paths, 0, PID));
	assert_string_equal(jitdump_path(&bun, 1, PID), bun);
	assert_null(jitdump_path(&others, 1, PID));
}

TEST(a_bomb_is_refused_before_it_takes_memory_or_time)
{
	struct rusage was, is;
	size_t first, len = 0;
	char *kept = NULL;
	FILE *f = tmpfile();

	head(PID);
	first = d.len;
	load(0x1000, 16, 1, "f");
	fwrite(d.bytes, 1, d.len, f);
	for (size_t n = d.len; n < 64u << 20; n += d.len - first)
		fwrite(d.bytes + first, 1, d.len - first, f);
	fflush(f);
	getrusage(RUSAGE_SELF, &was);
	assert_int_equal(jitdump_slim(fileno(f), (uint64_t)ftell(f), &kept, &len), -E2BIG);
	getrusage(RUSAGE_SELF, &is);
#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed */
	assert_true(is.ru_maxrss - was.ru_maxrss < 20 << 10);
#endif
	fclose(f);
}
