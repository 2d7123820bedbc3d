/* SPDX-License-Identifier: Apache-2.0 */
/* reader: a store can be read while it is written, after a clean end and after a kill -9, by the
 * group, and reading leaves no trace. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "tests/unit/missing.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10101010
#define GROUP  12345
#define NOBODY 65534

/* The writer makes the store one level down, in a folder that others may enter. */
static struct fixture inner_of(const struct fixture *f)
{
	struct fixture in;

	assert_int_equal(chmod(f->dir, 0755), 0);
	snprintf(in.dir, sizeof(in.dir), "%.55s/store", f->dir);
	return in;
}

/* In a child without any right but the group: the samples it sees, or -1. */
static int64_t read_as_group(const char *dir)
{
	int pipes[2];
	int64_t seen = -1;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		struct fixture_sums sums = {0};
		struct err e = {0};
		gid_t group = GROUP;

		if (setgroups(1, &group) || setgid(NOBODY) || setuid(NOBODY))
			_exit(1);
		if (fixture_totals(dir, 0, INT64_MAX, &sums, &e)) {
			fprintf(stderr, "%s\n", e.what);
			sums.samples = (uint64_t)-1;
		}
		_exit(write(pipes[1], &sums.samples, sizeof(sums.samples)) != sizeof(sums.samples));
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &seen, sizeof(seen)), sizeof(seen));
	close(pipes[0]);
	waitpid(pid, NULL, 0);
	return seen;
}

/* A writer in a separate process that stores 500 samples, says so, and waits to be killed. */
static pid_t writer_process(const struct fixture *f)
{
	int pipes[2];
	char ok;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		struct store_writer *w = fixture_writer(f, 0);
		uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

		for (uint32_t i = 0; i < 500; i++)
			fixture_add(w, run, 1, i, T0_S * NS + i * NS / 100, 1);
		store_flush(w);
		if (!fixture_wait_stored(w, 500) || write(pipes[1], "y", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &ok, 1), 1);
	close(pipes[0]);
	return pid;
}

STORE_TEST(a_member_of_the_group_reads_it_without_root)
{
	struct fixture in = inner_of(*state);
	pid_t pid;

	if (geteuid() != 0 || getgrnam("sonde"))
		skip_missing("root, and a host without a group called sonde");
	setenv("SUDO_GID", "12345", 1);
	pid = writer_process(&in);
	assert_int_equal(read_as_group(in.dir), 500); /* while it is written */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(read_as_group(in.dir), 500); /* after a kill -9 */
	fixture_close(fixture_writer(&in, 0));
	assert_int_equal(fixture_files(in.dir, "-wal"), 0);
	assert_int_equal(read_as_group(in.dir), 500); /* after a clean end */
	unsetenv("SUDO_GID");
}

STORE_TEST(the_plain_sqlite3_program_reads_it_as_the_group_too)
{
	struct fixture in = inner_of(*state);
	char cmd[512];
	pid_t pid;

	if (geteuid() != 0 || getgrnam("sonde") || system("command -v sqlite3 setpriv >/dev/null"))
		skip_missing("root, sqlite3 and setpriv, and a host without a group called sonde");
	setenv("SUDO_GID", "12345", 1);
	pid = writer_process(&in);
	snprintf(cmd, sizeof(cmd),
		 "test 500 = $(setpriv --reuid 65534 --regid 65534 --groups 12345 sqlite3 -readonly"
		 " %s 'SELECT sum(samples) FROM cpu_samples')",
		 fixture_segment(&in, 0));
	assert_int_equal(system(cmd), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(system(cmd), 0);
	fixture_close(fixture_writer(&in, 0));
	assert_int_equal(system(cmd), 0);
	unsetenv("SUDO_GID");
}

STORE_TEST(a_reader_that_is_there_when_the_last_writer_leaves_does_no_harm)
{
	struct fixture in = inner_of(*state);
	struct store_writer *w;
	struct store_segment *s;
	const struct store_dict *d;

	if (geteuid() != 0 || getgrnam("sonde"))
		skip_missing("root, and a host without a group called sonde");
	setenv("SUDO_GID", "12345", 1);
	w = fixture_writer(&in, 0);
	fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS), 1, 1, T0_S * NS, 5);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 5));
	assert_int_equal(store_segment_open(fixture_segment(&in, 0), &s, NULL), 0);
	assert_int_equal(store_segment_dict(s, &d, NULL), 0);
	fixture_close(w);
	assert_int_equal(read_as_group(in.dir), 5);
	store_segment_close(s);
	assert_int_equal(read_as_group(in.dir), 5);
	fixture_close(fixture_writer(&in, 0)); /* the next writer tidies up */
	assert_int_equal(fixture_files(in.dir, "-wal") + fixture_files(in.dir, "-shm"), 0);
	assert_int_equal(read_as_group(in.dir), 5);
	unsetenv("SUDO_GID");
}

STORE_TEST(somebody_else_is_told_what_to_do)
{
	struct fixture in = inner_of(*state);
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip_missing("root, to become somebody else");
	fixture_close(fixture_writer(&in, 0));
	pid = fork();
	if (!pid) {
		struct fixture_sums sums = {0};
		struct err e = {0};

		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(9);
		_exit(fixture_totals(in.dir, 0, INT64_MAX, &sums, &e) < 0 && e.fix[0] ? e.exit : 8);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), EXIT_PERMISSION);
}

STORE_TEST(a_single_file_copied_elsewhere_answers_and_nothing_is_created_beside_it)
{
	struct fixture *f = *state;
	struct fixture_sums sums = {0};
	struct fixture in = inner_of(f);
	char cmd[512], copy[256];
	pid_t pid;

	pid = writer_process(&in);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fixture_exec(fixture_segment(&in, 0), "PRAGMA wal_checkpoint(TRUNCATE)");
	snprintf(copy, sizeof(copy), "%s/a copy %%20 #1?.db", f->dir);
	snprintf(cmd, sizeof(cmd), "cp %s '%s'", fixture_segment(&in, 0), copy);
	assert_int_equal(system(cmd), 0); /* its header says WAL, and there is no log next to it */
	assert_int_equal(fixture_totals(copy, 0, INT64_MAX, &sums, NULL), 0);
	assert_int_equal(sums.samples, 500);
	assert_int_equal(fixture_files(f->dir, "-wal") + fixture_files(f->dir, "-shm"), 0);
	fixture_close(fixture_writer(&in, 0));
	sums = (struct fixture_sums){0};
	assert_int_equal(fixture_totals(in.dir, 0, INT64_MAX, &sums, NULL), 0);
	assert_int_equal(sums.samples, 500);
	assert_int_equal(fixture_files(in.dir, "-wal") + fixture_files(in.dir, "-shm"), 0);
}

STORE_TEST(a_folder_without_a_store_is_an_error_with_a_fix)
{
	struct fixture *f = *state;
	struct store_segment_info *info;
	struct err e = {0};
	size_t n;

	assert_int_equal(store_segments(f->dir, 0, INT64_MAX, &info, &n, &e), -ENOENT);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_true(e.fix[0] != '\0');
	assert_int_equal(store_segments("/nowhere/at/all", 0, INT64_MAX, &info, &n, &e), -ENOENT);
}

STORE_TEST(segments_are_found_by_what_they_span)
{
	struct fixture *f = *state;
	struct store_segment_info *info;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	size_t n;

	fixture_add(w, run, 1, 1, (T0_S + 10) * NS, 1);
	fixture_add(w, run, 1, 1, (T0_S + 19) * NS, 1);
	store_run_until(w, run, (T0_S + 20) * NS);
	fixture_close(w);
	assert_int_equal(store_segments(f->dir, 0, INT64_MAX, &info, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(info[0].from_ns, (T0_S + 10) * NS);
	assert_int_equal(info[0].to_ns, (T0_S + 20) * NS);
	assert_true(info[0].bytes > 0);
	free(info);
	assert_int_equal(store_segments(f->dir, (T0_S + 20) * NS, INT64_MAX, &info, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(info);
	assert_int_equal(store_segments(f->dir, 0, (T0_S + 10) * NS, &info, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(info);
}

STORE_TEST(the_dictionary_says_what_was_put_there)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	struct store_segment *s;
	const struct store_dict *d;
	uint32_t node, depth = 0;

	fixture_add(w, fixture_run(w, STORE_SCOPE_NARROW, 1, PERIOD, T0_S * NS), 42, 7, T0_S * NS,
		    1);
	fixture_close(w);
	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, NULL), 0);
	assert_int_equal(store_segment_dict(s, &d, NULL), 0);
	assert_int_equal(d->n_processes, 2);
	assert_string_equal(d->processes[1].comm, "prog-42");
	assert_string_equal(d->processes[1].exe, "/usr/bin/prog");
	assert_string_equal(d->processes[1].container, "");
	assert_int_equal(d->runs[1].scope, STORE_SCOPE_NARROW);
	assert_int_equal(d->runs[1].period_ns, PERIOD);
	assert_string_equal(d->runs[1].options, "sonde-cpu --test");
	node = (uint32_t)d->n_stacks - 1;
	assert_string_equal(d->frames[d->stack_frame[node]].name, "leaf_7");
	for (; node; node = d->stack_parent[node], depth++)
		assert_true(d->stack_parent[node] < node);
	assert_int_equal(depth, 3);
	store_segment_close(s);
}

STORE_TEST(hostile_rows_are_refused_or_left_out)
{
	static const char *const harm[] = {
		"UPDATE stack SET base = 99",
		"UPDATE stack SET keep = 1000000",
		"UPDATE stack SET tail = 'x,y'",
		"UPDATE stack SET tail = '99999999999999999999'",
		"UPDATE stack SET leaf = -5",
		"UPDATE stack SET id = 4000000000",
		"UPDATE frame SET id = 4000000000 WHERE id = 1",
		"UPDATE frame SET image = 77, function = 1 << 40",
		"UPDATE process SET id = 1 << 40",
		"UPDATE process SET exe = -1, container = 9999",
		"UPDATE series SET task = 77, stack = 1 << 33",
		"UPDATE task SET run = 9, process = -1",
		"UPDATE run SET bucket_s = 0, scope = 7, from_ns = -1 << 62",
		"UPDATE sample SET n = -5",
		"DELETE FROM meta WHERE key = 't0'",
		"DROP TABLE frame",
		"DELETE FROM run_period",
	};

	for (size_t i = 0; i < ARRAY_SIZE(harm); i++) {
		struct fixture f;
		struct fixture_sums sums = {0};
		struct err e = {0};
		struct store_writer *w;

		fixture_make(&f);
		w = fixture_writer(&f, 0);
		fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS), 42, 7,
			    T0_S * NS, 1);
		fixture_close(w);
		fixture_exec(fixture_segment(&f, 0), harm[i]);
		if (fixture_totals(f.dir, 0, INT64_MAX, &sums, &e) < 0)
			assert_int_equal(e.exit, EXIT_STORE);
		fixture_remove(&f);
	}
}

static int count_time(void *ctx, int64_t from_ns, uint32_t process, uint64_t cpu_ns)
{
	int64_t *last = ctx;

	assert_true(from_ns >= last[0]);
	assert_true(process > 0);
	last[0] = from_ns;
	last[1] += (int64_t)cpu_ns;
	return 0;
}

static int count_loss(void *ctx, const struct store_loss_row *l)
{
	*(uint64_t *)ctx += strcmp(l->reason, "ring") ? 0 : l->n;
	return 0;
}

STORE_TEST(a_timeline_and_the_losses_add_up)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	struct store_query q = {.from_ns = 0, .to_ns = INT64_MAX, .kind = STORE_KIND_CPU};
	struct store_segment *s;
	int64_t sums[2] = {0, 0};
	uint64_t lost = 0;

	for (uint32_t i = 0; i < 1000; i++)
		fixture_add(w, run, 1 + i % 5, i % 9, T0_S * NS + i * NS / 10, 1);
	store_loss(w, run, T0_S * NS, "ring", 3);
	store_loss(w, run, (T0_S + 50) * NS, "ring", 4);
	fixture_close(w);
	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, NULL), 0);
	assert_int_equal(store_timeline(s, &q, 10, count_time, sums, NULL), 0);
	assert_int_equal(sums[1], 1000ll * PERIOD);
	assert_int_equal(sums[0], (T0_S + 90) * NS);
	assert_int_equal(store_losses(s, 0, (T0_S + 10) * NS, count_loss, &lost, NULL), 0);
	assert_int_equal(lost, 3);
	store_segment_close(s);
}

/* Always-on at 99 Hz in 10 s buckets, and 10 s at 499 Hz in the middle: one core busy the whole
 * time. */
STORE_TEST(the_cpu_time_of_two_captures_at_once_is_right_to_the_sample)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t coarse = fixture_run(w, STORE_SCOPE_HOST, 10, NS / 100, T0_S * NS);
	uint32_t fine = fixture_run(w, STORE_SCOPE_NARROW, 1, NS / 500, (T0_S + 33) * NS);
	struct fixture_sums one = {.pid = 1}, two = {.pid = 2};

	for (uint32_t i = 0; i < 9000; i++)
		for (uint32_t pid = 1; pid <= 2; pid++)
			fixture_add(w, coarse, pid, i % 9, T0_S * NS + i * NS / 100, 1);
	store_run_until(w, coarse, (T0_S + 90) * NS);
	for (uint32_t i = 0; i < 10000; i++)
		fixture_add(w, fine, 1, i % 9, (T0_S + 33) * NS + i * NS / 500, 1);
	store_run_until(w, fine, (T0_S + 53) * NS);
	fixture_close(w);
	/* the whole, the minute around, the window of the finer run, a part of it */
	for (int i = 0; i < 4; i++) {
		static const int64_t from[] = {0, 10, 33, 40}, to[] = {90, 70, 53, 50};

		assert_int_equal(fixture_totals(f->dir, (T0_S + from[i]) * NS, (T0_S + to[i]) * NS,
						&one, NULL),
				 0);
		assert_int_equal(one.cpu_ns, (to[i] - from[i]) * NS);
	}
	assert_int_equal(one.samples, 5000); /* the last window was taken from the finer run */
	assert_int_equal(fixture_totals(f->dir, (T0_S + 10) * NS, (T0_S + 70) * NS, &two, NULL), 0);
	assert_int_equal(two.cpu_ns,
			 60 * NS); /* a process that the narrow run did not have is still there */
	assert_int_equal(fixture_sql(fixture_segment(f, 0),
				     "SELECT sum(cpu_ns) FROM cpu_samples WHERE pid = 1"),
			 90 * NS);
	assert_int_equal(fixture_sql(fixture_segment(f, 0),
				     "SELECT sum(cpu_ns) FROM cpu_samples WHERE pid = 2"),
			 90 * NS);
}
