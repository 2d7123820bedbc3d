/* SPDX-License-Identifier: Apache-2.0 */
/* perfmap: overlaps, compared with a naive oracle; hostile lines; hostile files; a map written by
 * node. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/names/perfmap.h"
#include "schema/base/array.h"
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

/* ---- files: our own /tmp is that of /proc/self/root ---- */

#define FAKE_NSPID 4190001u
static char map_path[64];

static int make_map(const char *text)
{
	int fd;

	snprintf(map_path, sizeof(map_path), "/tmp/perf-%u.map", FAKE_NSPID);
	unlink(map_path);
	fd = open(map_path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return 0;
}

static int read_map(struct perfmap_stamp *stamp, struct perfmap **m)
{
	return perfmap_read((uint32_t)getpid(), FAKE_NSPID, getuid(), stamp, m);
}

TEST(a_map_is_read_again_only_when_it_has_changed)
{
	struct perfmap_stamp stamp = {0};
	struct perfmap *m = NULL;
	FILE *f;

	make_map("100 10 one\n");
	assert_int_equal(read_map(&stamp, &m), 0);
	expect(m, 0x100, "one");
	perfmap_free(m);
	assert_int_equal(read_map(&stamp, &m), -EALREADY);
	f = fopen(map_path, "a");
	fputs("100 10 two\n", f);
	fclose(f);
	assert_int_equal(read_map(&stamp, &m), 0);
	expect(m, 0x100, "two");
	perfmap_free(m);
	unlink(map_path);
	assert_int_equal(read_map(&stamp, &m), -ENOENT);
}

TEST(fifos_devices_foreign_and_huge_files_are_refused)
{
	struct perfmap_stamp stamp = {0};
	struct perfmap *m = NULL;

	make_map("");
	unlink(map_path);
	assert_int_equal(mkfifo(map_path, 0600), 0);
	assert_int_equal(read_map(&stamp, &m), -ENOTSUP);
	unlink(map_path);
	assert_int_equal(symlink("/dev/zero", map_path), 0);
	assert_int_equal(read_map(&stamp, &m), -ENOTSUP);
	unlink(map_path);
	make_map("");
	assert_int_equal(truncate(map_path, 100ll << 30), 0);
	assert_int_equal(read_map(&stamp, &m), -EFBIG);
	unlink(map_path);
	if (!getuid()) {
		make_map("100 10 x\n");
		assert_int_equal(chown(map_path, 12345, 12345), 0);
		assert_int_equal(read_map(&stamp, &m), -EPERM);
		assert_int_equal(perfmap_read((uint32_t)getpid(), FAKE_NSPID, 12345, &stamp, &m),
				 0);
		perfmap_free(m);
		unlink(map_path);
	}
}

/* Text of `size` bytes or a little more, as map. */
static void make_bomb(const char *piece, size_t size)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	FILE *f;

	while (s.len < 1 << 20)
		strbuf_addstr(&s, piece);
	make_map("100 10 first\n");
	f = fopen(map_path, "a");
	for (size_t n = 0; n < size; n += s.len)
		assert_int_equal(fwrite(s.buf, 1, s.len, f), s.len);
	fclose(f);
}

TEST(a_bomb_is_refused_before_it_takes_memory_or_time)
{
	cleanup_strbuf struct strbuf longest = STRBUF_INIT;
	static const char *const bombs[] = {"1 1 a\n", "x\n", "\n", "7f0000001000 1000 nn\n"};
	struct rusage before, after;
	struct perfmap_stamp stamp = {0};
	struct perfmap *m = NULL;
	int64_t cpu;

	for (int i = 0; i < 4096; i++)
		strbuf_addch(&longest, 'n');
	for (size_t i = 0; i <= ARRAY_SIZE(bombs); i++) {
		cleanup_strbuf struct strbuf piece = STRBUF_INIT;

		if (i < ARRAY_SIZE(bombs))
			strbuf_addstr(&piece, bombs[i]);
		else
			strbuf_addf(&piece, "1000 10 %s\n", strbuf_str(&longest));
		make_bomb(strbuf_str(&piece), 64u << 20);
		getrusage(RUSAGE_SELF, &before);
		cpu = clock_cpu_ns();
		stamp = (struct perfmap_stamp){0};
		assert_int_equal(read_map(&stamp, &m), -E2BIG);
		cpu = clock_cpu_ns() - cpu;
		getrusage(RUSAGE_SELF, &after);
		print_message("bomb %zu: %.1f ms, %ld KiB more\n", i, (double)cpu / 1e6,
			      after.ru_maxrss - before.ru_maxrss);
#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed */
		assert_true(after.ru_maxrss - before.ru_maxrss < 32 << 10);
#endif
		assert_int_equal(read_map(&stamp, &m), -EALREADY);
		unlink(map_path);
	}
}

TEST(a_line_longer_than_any_buffer_is_one_line)
{
	struct perfmap_stamp stamp = {0};
	struct perfmap *m = NULL;
	FILE *f;

	make_map("100 10 first\n200 10 ");
	f = fopen(map_path, "a");
	for (int i = 0; i < 300000; i++)
		fputs("300 10 a ", f);
	fputs("\n400 10 last", f);
	fclose(f);
	assert_int_equal(read_map(&stamp, &m), 0);
	assert_int_equal(perfmap_count(m), 3);
	assert_int_equal(perfmap_skipped(m), 0);
	expect(m, 0x100, "first");
	expect(m, 0x300, NULL);
	expect(m, 0x400, "last");
	perfmap_free(m);
	unlink(map_path);
}

TEST(a_link_to_a_map_is_not_followed)
{
	struct perfmap_stamp stamp = {0};
	struct perfmap *m = NULL;
	char real[] = "/tmp/sonde-map-XXXXXX";
	int fd = mkstemp(real);

	assert_true(fd >= 0 && write(fd, "100 10 x\n", 9) == 9);
	close(fd);
	make_map("");
	unlink(map_path);
	assert_int_equal(symlink(real, map_path), 0);
	assert_int_equal(read_map(&stamp, &m), -ENOTSUP);
	unlink(map_path);
	unlink(real);
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
