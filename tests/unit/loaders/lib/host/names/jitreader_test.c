/* SPDX-License-Identifier: Apache-2.0 */
/* jitreader: perf maps and jitdumps as hostile files, read by the process without rights; what
 * becomes of it and of its children. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/jitreader.h"
#include "loaders/lib/host/names/perfmap.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

/* The tests say themselves which files a process has. */
size_t hostmaps_files(const struct hostmaps_process *p, const char **paths, size_t max,
		      const struct hostmaps_image **exe)
{
	(void)p;
	(void)paths;
	(void)max;
	*exe = NULL;
	return 0;
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

/* ---- files: our own /tmp is that of /proc/self/root ---- */

#define FAKE_NSPID 4190001u
static char map_path[64];
static const char *dump_path; /* NULL: the process has no jitdump */

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

/* Through the process without rights, as a loader has it done. */
static struct jitreader *reader;
static struct jitnames_told told;

static int read_as(uid_t uid, struct jitnames_stamp *stamp, struct perfmap **m)
{
	struct jitjob job = JITJOB_NONE;
	struct jitnames_files f;
	int rc;

	if (!reader)
		reader = jitreader_open();
	assert_non_null(reader);
	rc = jitnames_open_of((uint32_t)getpid(), FAKE_NSPID, uid, dump_path, stamp, &f);
	if (rc)
		return rc;
	assert_int_equal(jitreader_ask(reader, &f, &job), 0);
	*stamp = f.stamp;
	jitnames_close(&f);
	return jitjob_take(&job, 20000, m, &told);
}

static int read_map(struct jitnames_stamp *stamp, struct perfmap **m)
{
	return read_as(getuid(), stamp, m);
}

TEST(a_map_is_read_again_only_when_it_has_changed)
{
	struct jitnames_stamp stamp = {0};
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
	struct jitnames_stamp stamp = {0};
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
		assert_int_equal(read_as(12345, &stamp, &m), 0);
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
	struct jitnames_stamp stamp = {0};
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
		stamp = (struct jitnames_stamp){0};
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
	struct jitnames_stamp stamp = {0};
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
	struct jitnames_stamp stamp = {0};
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

static pid_t reader_pid(void)
{
	char path[96], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	return (pid_t)strtol(line, NULL, 10);
}

TEST(the_process_that_reads_has_no_capability_and_no_descriptor_of_ours)
{
	struct jitnames_stamp stamp = {0};
	struct perfmap *m = NULL;
	char path[64], line[256];
	int caps = 0;
	FILE *f;

	make_map("100 10 x\n");
	assert_int_equal(read_map(&stamp, &m), 0);
	perfmap_free(m);
	unlink(map_path);
	snprintf(path, sizeof(path), "/proc/%d/status", reader_pid());
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Cap", 3) && strncmp(line, "CapInh", 6)) {
			assert_int_equal(strtoull(line + 7, NULL, 16), 0);
			caps++;
		}
		if (!strncmp(line, "NoNewPrivs:", 11) || !strncmp(line, "Seccomp:", 8))
			assert_true(strtol(strchr(line, '\t'), NULL, 10) > 0);
	}
	fclose(f);
	assert_int_equal(caps, 4);
	snprintf(path, sizeof(path), "/proc/%d/fd/4", reader_pid());
	for (int i = 0; i < 500 && !access(path, F_OK); i++) /* it is closing the map */
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_int_equal(access(path, F_OK), -1);
}

/* What its writer does while it is read costs nothing but its own names. */
TEST(a_map_that_shrinks_or_grows_while_it_is_read_does_no_harm)
{
	struct jitnames_stamp stamp = {0};
	struct jitjob job = JITJOB_NONE;
	struct jitnames_files f;
	struct perfmap *m = NULL;
	pid_t writer;

	make_bomb("7f0000001000 10 name\n", 1u << 20);
	assert_int_equal(read_map(&stamp, &m), 0);
	perfmap_free(m);
	writer = fork();
	if (!writer) {
		int fd = open(map_path, O_WRONLY | O_APPEND);

		for (int i = 0;; i++)
			if ((i & 1 ? ftruncate(fd, 1000) : ftruncate(fd, 40 << 20)) ||
			    write(fd, "200 10 late\n", 12) < 0)
				_exit(1);
	}
	for (int i = 0; i < 30; i++) {
		int rc;

		stamp = (struct jitnames_stamp){0};
		m = NULL;
		rc = read_map(&stamp, &m);
		assert_true(!rc || rc == -E2BIG || rc == -ECHILD);
		perfmap_free(m);
	}
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	assert_int_equal(truncate(map_path, 0), 0);
	stamp = (struct jitnames_stamp){0};
	assert_int_equal(
		jitnames_open_of((uint32_t)getpid(), FAKE_NSPID, getuid(), NULL, &stamp, &f), 0);
	assert_int_equal(jitreader_ask(reader, &f, &job), 0);
	jitnames_close(&f);
	assert_int_equal(jitjob_take(&job, 20000, &m, &told), 0);
	assert_int_equal(told.names, 0);
	perfmap_free(m);
	unlink(map_path);
}

TEST(a_map_longer_than_what_is_read_says_that_it_is_cut)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	struct jitnames_stamp stamp = {0};
	struct perfmap *m = NULL;

	strbuf_addstr(&line, "1000 10 a\n# ");
	for (int i = 0; i < 60000; i++)
		strbuf_addch(&line, '-');
	strbuf_addch(&line, '\n');
	make_bomb(strbuf_str(&line), 66u << 20);
	assert_int_equal(read_map(&stamp, &m), 0);
	assert_true(told.cut && told.names > 900 && told.names == perfmap_count(m));
	perfmap_free(m);
	unlink(map_path);
}

TEST(a_jitdump_that_is_none_gives_way_to_the_perf_map)
{
	static char dump[] = "/tmp/sonde-jit-XXXXXX";
	int fd = mkstemp(dump);
	struct jitnames_stamp stamp = {0};
	struct perfmap *m = NULL;

	assert_true(fd >= 0 && write(fd, "no jitdump", 10) == 10);
	close(fd);
	dump_path = dump;
	unlink(map_path);
	assert_int_equal(read_map(&stamp, &m), -EBADMSG);
	make_map("100 10 x\n");
	assert_int_equal(read_map(&stamp, &m), 0);
	assert_false(told.dump);
	expect(m, 0x100, "x");
	perfmap_free(m);
	assert_int_equal(read_map(&stamp, &m), -EALREADY);
	dump_path = NULL;
	unlink(dump);
	unlink(map_path);
}

/* Its children that break cost their own job; without it the names are missing, and that is said.
 */
TEST(a_process_that_is_gone_reads_nothing_and_blocks_nobody)
{
	struct jitnames_stamp stamp = {0};
	struct perfmap *m = NULL;
	struct jitjob job = JITJOB_NONE;
	struct jitnames_files f;
	int rc;

	make_map("100 10 x\n");
	assert_int_equal(read_map(&stamp, &m), 0);
	perfmap_free(m);
	kill(reader_pid(), SIGKILL);
	waitpid(-1, NULL, 0);
	stamp = (struct jitnames_stamp){0};
	assert_int_equal(
		jitnames_open_of((uint32_t)getpid(), FAKE_NSPID, getuid(), NULL, &stamp, &f), 0);
	rc = jitreader_ask(reader, &f, &job);
	assert_int_equal(rc, -ENOSYS);
	assert_int_equal(jitreader_ask(NULL, &f, &job), -ENOSYS);
	jitnames_close(&f);
	jitreader_close(reader);
	reader = NULL;
	unlink(map_path);
}
