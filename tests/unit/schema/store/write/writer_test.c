/* SPDX-License-Identifier: Apache-2.0 */
/* writer: every added sample is stored, or counted if it cannot be; nothing stored is ever damaged.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"
#include "tests/unit/missing.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10101010

STORE_TEST(what_is_added_is_stored_to_the_sample)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	const char *seg;

	for (uint32_t i = 0; i < 10000; i++)
		fixture_add(w, run, 100 + i % 7, i % 50, T0_S * NS + i * NS / 100, 1 + i % 2);
	store_run_until(w, run, (T0_S + 100) * NS);
	fixture_close(w);
	seg = fixture_segment(f, 0);
	assert_int_equal(fixture_sql(seg, "SELECT sum(samples) FROM cpu_samples"), 15000);
	assert_int_equal(fixture_sql(seg, "SELECT sum(cpu_ns) FROM cpu_samples"), 15000ll * PERIOD);
	assert_int_equal(fixture_sql(seg, "SELECT count(DISTINCT ts) FROM cpu_samples"), 100);
	assert_int_equal(fixture_sql(seg, "SELECT min(ts) FROM cpu_samples"), T0_S);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM processes"), 7);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM functions WHERE module = 'prog'"),
			 51);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM stacks WHERE depth = 3 AND folded = 'main;prog+0x200;leaf_7'"),
		1);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM stack_frames WHERE function = 'main' AND depth = 0"),
		50);
	assert_int_equal(
		fixture_sql(seg, "SELECT total FROM functions_top WHERE function = 'main'"), 15000);
	assert_int_equal(fixture_sql(seg, "SELECT self FROM functions_top WHERE function = 'main'"),
			 0);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM runs WHERE state = 'ended'"), 1);
	assert_int_equal(fixture_sql(seg, "SELECT accounted FROM run"), 15000);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM clock"), 1);
}

STORE_TEST(modes_do_not_depend_on_the_umask)
{
	struct fixture *f = *state;
	struct fixture inner;
	struct store_writer *w;
	struct stat st;
	mode_t old = umask(0);
	char wal[200];

	for (int i = 0; i < 2; i++) {
		umask(i ? 0077 : 0);
		snprintf(inner.dir, sizeof(inner.dir), "%.55s/d%d", f->dir, i);
		w = fixture_writer(&inner, 0);
		fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS), 1, 1,
			    T0_S * NS, 1);
		store_flush(w);
		assert_true(fixture_wait_stored(w, 1));
		assert_int_equal(stat(inner.dir, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0750);
		assert_int_equal(stat(fixture_segment(&inner, 0), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		snprintf(wal, sizeof(wal), "%s-wal", fixture_segment(&inner, 0));
		assert_int_equal(stat(wal, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		fixture_close(w);
		assert_int_equal(
			fixture_files(inner.dir, "-wal") + fixture_files(inner.dir, "-shm"), 0);
	}
	umask(old);
}

STORE_TEST(under_sudo_the_group_is_that_of_the_caller)
{
	struct fixture *f = *state;
	struct fixture inner;
	struct stat st;

	if (geteuid() != 0)
		skip_missing("root, to run as somebody else");
	setenv("SUDO_GID", "12345", 1);
	snprintf(inner.dir, sizeof(inner.dir), "%.55s/d", f->dir);
	fixture_close(fixture_writer(&inner, 0));
	unsetenv("SUDO_GID");
	assert_int_equal(stat(inner.dir, &st), 0);
	assert_int_equal(st.st_gid, 12345);
	assert_int_equal(stat(fixture_segment(&inner, 0), &st), 0);
	assert_int_equal(st.st_gid, 12345);
}

STORE_TEST(ids_go_stale_when_memory_is_short_and_nothing_is_lost)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 2 * 1024 * 1024);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	struct store_writer_stat st;
	uint64_t most = 0;

	for (uint32_t i = 0; i < 60000; i++) {
		fixture_add(w, run, 100 + i % 300, i % 20000, T0_S * NS + i * NS / 500, 1);
		if (i % 500 == 499) {
			store_flush(w);
			assert_true(fixture_wait_stored(w, i + 1));
			store_writer_stat(w, &st);
			most = st.waiting_bytes > most ? st.waiting_bytes : most;
		}
	}
	assert_true(store_epoch(w) > 3);
	fixture_close(w);
	assert_true(most < 3 * 1024 * 1024);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT sum(samples) FROM cpu_samples"),
			 60000);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM processes"), 300);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM function"),
			 20001);
	assert_int_equal(
		fixture_sql(fixture_segment(f, 0), "SELECT count(DISTINCT folded) FROM stacks"),
		20000);
}

/* The same frames are the same stack, whatever stack came before. */
STORE_TEST(a_stack_is_the_same_whatever_was_stored_before_it)
{
	struct store_writer *w = fixture_writer(*state, 0);
	struct store_image img = {STORE_IMAGE_ELF, "app", "/app", "", "1-2"};
	uint32_t f[300], other[3], deep, callers, before;

	for (uint32_t i = 0; i < 300; i++) {
		struct store_frame fr = {.image = store_image(w, &img), .offset = i + 1};

		f[i] = store_frame(w, &fr);
	}
	deep = store_stack(w, f, 300);
	callers = store_stack(w, f, 7);
	assert_int_not_equal(callers, deep);
	memcpy(other, f, sizeof(other));
	other[2] = f[9];
	assert_int_not_equal(store_stack(w, other, 3), store_stack(w, f, 3));
	assert_int_equal(store_stack(w, f, 300), deep);
	assert_int_equal(store_stack(w, other, 2), store_stack(w, f, 2));
	assert_int_equal(store_stack(w, f, 7), callers);
	before = f[6];
	f[6] = 0; /* left out */
	assert_int_equal(store_stack(w, f, 7), store_stack(w, f, 6));
	f[6] = before;
	assert_int_equal(store_stack(w, f, 7), callers);
	f[5] = 99999; /* never given out */
	assert_int_equal(store_stack(w, f, 7), UINT32_MAX);
	assert_int_equal(store_stack(w, f, 5), store_stack(w, f, 5));
	fixture_close(w);
}

STORE_TEST(ids_that_were_never_given_out_are_refused)
{
	struct store_writer *w = fixture_writer(*state, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	uint32_t frames[] = {77, 78};

	assert_int_equal(store_add(w, 0, T0_S * NS, 1), -ESTALE);
	assert_int_equal(store_add(w, 99, T0_S * NS, 1), -ESTALE);
	assert_int_equal(store_series(w, run, 5, "x", 1, 0, STORE_KIND_CPU), 0);
	assert_int_equal(store_series(w, run, 1, "x", 1, store_stack(w, frames, 2), STORE_KIND_CPU),
			 0);
	assert_int_equal(store_series(w, 9, 1, "x", 1, 0, STORE_KIND_CPU), 0);
	fixture_close(w);
}

STORE_TEST(a_process_is_known_better_later_and_a_frame_gets_its_name)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	struct store_process p = {.pid = 5,
				  .start_ticks = 9,
				  .exec_id = 2,
				  .comm = "sh",
				  .exe = "",
				  .args = "",
				  .cgroup = "",
				  .unit = ""};
	struct store_container c = {.runtime = "docker",
				    .runtime_id = "abc",
				    .name = "web",
				    .image = "",
				    .cgroup = "/x"};
	struct store_image im = {STORE_IMAGE_ELF, "libfoo.so", "/lib/libfoo.so", "", ""};
	struct store_frame fr = {.image = store_image(w, &im), .offset = 0x1a2b};
	struct store_function fn = {.name = "foo_bar", .image = fr.image, .file = "", .line = 0};
	uint32_t frame = store_frame(w, &fr);
	uint32_t series = store_series(w, run, store_process(w, &p), "sh", 5,
				       store_stack(w, &frame, 1), STORE_KIND_CPU);
	const char *seg;

	assert_int_equal(store_add(w, series, T0_S * NS, 1), 0);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 1));
	seg = fixture_segment(f, 0);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT count(*) FROM cpu_samples WHERE function = 'libfoo.so+0x1a2b'"),
		1);
	p.args = "sh -c true";
	p.exe = "/bin/sh";
	p.container = store_container(w, &c);
	assert_int_equal(store_series(w, run, store_process(w, &p), "sh", 5,
				      store_stack(w, &frame, 1), STORE_KIND_CPU),
			 series);
	store_frame_name(w, frame, store_function(w, &fn), 12, 0);
	assert_int_equal(store_add(w, series, T0_S * NS, 1), 0);
	fixture_close(w);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM processes WHERE args = 'sh -c true' AND exe = '/bin/sh'"
			" AND container = 'web' AND comm = 'sh'"),
		1);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT samples FROM cpu_samples WHERE function = 'foo_bar' AND line = 12"),
		2);
}

STORE_TEST(who_could_not_name_a_process_takes_no_name_away)
{
	struct fixture *f = *state;
	struct store_process p = {
		.pid = 5, .start_ticks = 9, .exe = "", .args = "", .cgroup = "", .unit = ""};
	static const char *const comms[] = {STORE_PROCESS_UNKNOWN, "sh", STORE_PROCESS_UNKNOWN};

	for (size_t i = 0; i < 3; i++) { /* three writers, and each twice */
		struct store_writer *w = fixture_writer(f, 0);
		uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

		p.comm = comms[i];
		assert_int_equal(store_add(w,
					   store_series(w, run, store_process(w, &p), "sh", 5, 0,
							STORE_KIND_CPU),
					   T0_S * NS, 1),
				 0);
		p.comm = STORE_PROCESS_UNKNOWN;
		store_process(w, &p);
		fixture_close(w);
		assert_int_equal(
			fixture_sql(fixture_segment(f, 0),
				    i ? "SELECT count(*) FROM process WHERE comm = 'sh'" :
					"SELECT count(*) FROM process WHERE comm = '[unknown]'"),
			1);
	}
}

STORE_TEST(a_container_stored_before_its_name_was_known_gains_it)
{
	struct fixture *f = *state;
	struct store_container c = {
		.runtime = "docker", .runtime_id = "abc", .name = "", .image = "", .cgroup = "/x"};
	struct store_process p = {
		.start_ticks = 9, .comm = "sh", .exe = "", .args = "", .cgroup = "", .unit = ""};
	const char *seg;

	/* three writers: before, with the name, and one that has not heard of it */
	for (uint32_t i = 0; i < 3; i++) {
		struct store_writer *w = fixture_writer(f, 0);
		uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

		c.name = i == 1 ? "web" : "";
		c.image = i == 1 ? "nginx:1" : "";
		p.pid = 5 + i;
		p.container = store_container(w, &c);
		assert_int_equal(store_add(w,
					   store_series(w, run, store_process(w, &p), "sh", 5 + i,
							0, STORE_KIND_CPU),
					   T0_S * NS, 1),
				 0);
		fixture_close(w);
	}
	seg = fixture_segment(f, 0);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM container"), 1);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM processes WHERE container = 'web'"),
			 3);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM container WHERE image = 'nginx:1'"),
			 1);
}

STORE_TEST(an_image_stored_before_its_file_was_read_gains_its_build_id)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	struct store_process p = {.pid = 5,
				  .start_ticks = 9,
				  .comm = "sh",
				  .exe = "",
				  .args = "",
				  .cgroup = "",
				  .unit = ""};
	struct store_image early = {STORE_IMAGE_ELF, "libfoo.so", "/lib/libfoo.so", "",
				    "pending-1-2"};
	struct store_image own = {STORE_IMAGE_ELF, "libbar.so", "/lib/libbar.so", "cafe", "cafe-1"};
	struct store_frame fr[] = {{.image = store_image(w, &early), .offset = 1},
				   {.image = store_image(w, &own), .offset = 1}};
	uint32_t frames[] = {store_frame(w, &fr[0]), store_frame(w, &fr[1])};
	uint32_t series = store_series(w, run, store_process(w, &p), "sh", 5,
				       store_stack(w, frames, 2), STORE_KIND_CPU);
	const char *seg;

	assert_int_equal(store_add(w, series, T0_S * NS, 1), 0);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 1));
	store_image_build_id(w, fr[0].image, "beef");
	store_image_build_id(w, fr[0].image, "dead"); /* once only */
	store_image_build_id(w, fr[1].image, "dead"); /* it has one */
	store_image_build_id(w, 4711, "dead");
	assert_int_equal(store_add(w, series, T0_S * NS, 1), 0);
	fixture_close(w);
	seg = fixture_segment(f, 0);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM image WHERE name = 'libfoo.so' AND build_id = 'beef' AND key = 'pending-1-2'"),
		1);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM image WHERE name = 'libbar.so' AND build_id = 'cafe'"),
		1);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM image"), 2);
}

STORE_TEST(command_lines_come_back_as_they_were)
{
	/* clang-format off */
	static const char *const LINES[] = {
		"cc1 -I . src/flame.c -MD obj/src/flame.d -MQ obj/src/flame.o -dumpbase flame.c -O2 -o /tmp/ccA.s",
		"cc1 -I . src/fold.c -MD obj/src/fold.d -MQ obj/src/fold.o -dumpbase fold.c -O2 -o /tmp/ccBC.s",
		"cc1 -I . src/\xc3\xa4x.c -MD obj/src/\xc3\xa4x.d -MQ obj/src/\xc3\xa4x.o -dumpbase \xc3\xa4x.c -O2 -o /tmp/\xc3\xa4.s",
		"cc1 -I . src/a.c -MD obj/src/a.d -MQ obj/src/a.o -dumpbase a.c -O2 -o /tmp/a.s",
		"cc1 --version", "", "cc1 x.c x.c", "cc1 x.c x.c x.c\037x.c", "x.y x.y",
	};
	/* clang-format on */
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	const char *seg;

	for (uint32_t i = 0; i < ARRAY_SIZE(LINES); i++) {
		struct store_process p = {.pid = 10 + i,
					  .start_ticks = 9,
					  .comm = "cc1",
					  .exe = "/usr/lib/cc1",
					  .args = LINES[i],
					  .cgroup = "",
					  .unit = ""};

		assert_int_equal(store_add(w,
					   store_series(w, run, store_process(w, &p), "cc1", 10 + i,
							0, STORE_KIND_CPU),
					   T0_S * NS, 1),
				 0);
	}
	fixture_close(w);
	seg = fixture_segment(f, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(LINES); i++) {
		/* control bytes are spelled out before anything is shared */
		char *sql = sqlite3_mprintf(
			"SELECT count(*) FROM processes WHERE pid = %u AND args = replace(%Q, char(31), '\\x1f')",
			10 + i, LINES[i]);

		assert_int_equal(fixture_sql(seg, sql), 1);
		sqlite3_free(sql);
	}
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM text WHERE value LIKE 'cc1 -I%'"),
			 1);
	assert_true(fixture_sql(seg, "SELECT max(length(args)) FROM process WHERE pid < 14") < 20);
}

STORE_TEST(a_segment_that_is_old_or_large_is_followed_by_another)
{
	struct fixture *f = *state;
	struct store_writer_opts o = {
		.dir = f->dir, .segment_bytes = 900 * 1024}; /* an empty one has some 620 KiB */
	struct store_writer *w;
	uint32_t run;

	assert_int_equal(store_writer_open(&o, &w, NULL), 0);
	run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	for (uint32_t i = 0; i < 30000; i++) {
		fixture_add(w, run, 100, i % 3000, T0_S * NS + i * NS / 100, 1);
		if (i % 1000 == 999) {
			store_flush(w);
			assert_true(fixture_wait_stored(w, i + 1));
		}
	}
	fixture_close(w);
	assert_true(fixture_files(f->dir, ".db") >= 2);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples"), 30000);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM runs WHERE state = 'ended'"), 1);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM runs WHERE state = 'continued'"),
			 (int64_t)fixture_files(f->dir, ".db") - 1);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT token FROM run"),
			 fixture_sql(fixture_segment(f, 1), "SELECT token FROM run"));
	for (size_t i = 0; *fixture_segment(f, i); i++)
		assert_int_equal(fixture_sql(fixture_segment(f, i),
					     "SELECT count(*) FROM sqlite_master WHERE name = 'run'"
					     " AND (SELECT count(*) FROM cpu_samples WHERE function"
					     " LIKE 'leaf_%') > 0"),
				 1);
}

STORE_TEST(one_that_is_ended_on_demand_is_left_by_all_its_writers_and_is_whole)
{
	struct fixture *f = *state;
	char name[SEGMENT_NAME_MAX], wal[512];
	struct store_writer *w[2];
	uint32_t run[2];

	for (int i = 0; i < 2; i++) {
		w[i] = fixture_writer(f, 0);
		run[i] = fixture_run(w[i], STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	}
	for (uint32_t round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++) {
			fixture_add(w[i], run[i], 100, 7, (T0_S + (int64_t)round) * NS, 5);
			store_flush(w[i]);
			assert_true(fixture_wait_stored(w[i], 5 * (round + 1)));
		}
		if (round == 1)
			assert_int_equal(folder_turn(f->dir, name, NULL), 0);
	}
	assert_int_equal(fixture_files(f->dir, ".db"), 2);
	assert_string_equal(strrchr(fixture_segment(f, 0), '/') + 1, name);
	snprintf(wal, sizeof(wal), "%s-wal", fixture_segment(f, 0));
	assert_int_equal(access(wal, F_OK), -1);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT sum(n) FROM sample"), 20);
	assert_int_equal(fixture_sql(fixture_segment(f, 0),
				     "SELECT count(*) FROM runs WHERE state = 'continued'"),
			 2);
	assert_int_equal(fixture_sql(fixture_segment(f, 1), "SELECT sum(n) FROM sample"), 10);
	/* a new writer does not join it either */
	fixture_close(w[0]);
	fixture_close(w[1]);
	assert_int_equal(folder_turn(f->dir, name, NULL), 0);
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(fixture_files(f->dir, ".db"), 3);
}

STORE_TEST(each_change_of_the_clock_is_on_record_though_several_come_before_a_batch)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	int64_t now = clock_utc_ns(), offset = clock_boot_offset_ns();

	store_clock_changed(w, now + NS, offset + 3600 * NS);
	store_clock_changed(w, now + 2 * NS, offset - 7200 * NS);
	store_clock_changed(w, now + 3 * NS, offset);
	fixture_add(w, run, 100, 1, T0_S * NS, 5);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 5));
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM clock"), 4);
	assert_int_equal(
		fixture_sql(
			fixture_segment(f, 0),
			"SELECT (max(boot_offset_ns) - min(boot_offset_ns)) / 1000000000 FROM clock"),
		10800);
	store_clock_changed(w, now + 4 * NS, offset); /* it is that already */
	fixture_add(w, run, 100, 1, (T0_S + 1) * NS, 5);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 10));
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM clock"), 4);
	fixture_close(w);
}

STORE_TEST(a_young_segment_of_this_boot_is_joined_and_one_of_another_boot_is_not)
{
	struct fixture *f = *state;

	fixture_close(fixture_writer(f, 0));
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	fixture_exec(fixture_segment(f, 0),
		     "UPDATE meta SET value = 'another' WHERE key = 'boot_id'");
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(fixture_files(f->dir, ".db"), 2);
	fixture_exec(fixture_segment(f, 1),
		     "UPDATE meta SET value = value - 3700000000000 WHERE key = 'created_ns'");
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(fixture_files(f->dir, ".db"), 3);
}

STORE_TEST(a_newer_schema_is_refused_and_left_alone)
{
	struct fixture *f = *state;
	struct store_writer_opts o = {.dir = f->dir};
	struct store_writer *w = NULL;
	struct fixture_sums sums = {0};
	struct err e = {0};

	fixture_close(fixture_writer(f, 0));
	fixture_exec(fixture_segment(f, 0),
		     "UPDATE meta SET value = 99 WHERE key = 'schema_version'");
	assert_true(store_writer_open(&o, &w, &e) < 0);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_non_null(strstr(e.what, "schema 99"));
	assert_true(e.fix[0] != '\0');
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	memset(&e, 0, sizeof(e));
	assert_true(fixture_totals(f->dir, 0, INT64_MAX, &sums, &e) < 0);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_non_null(strstr(e.what, "schema 99"));
}

STORE_TEST(a_schema_from_before_the_first_release_is_refused_and_left_alone)
{
	struct fixture *f = *state;
	struct store_writer_opts o = {.dir = f->dir};
	struct fixture_sums sums = {0};
	struct store_writer *w = NULL;
	struct err e = {0};
	const char *seg;

	fixture_close(fixture_writer(f, 0));
	seg = fixture_segment(f, 0);
	fixture_exec(seg, "UPDATE meta SET value = 27 WHERE key = 'schema_version'");
	assert_true(store_writer_open(&o, &w, &e) < 0);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_non_null(strstr(e.what, "schema 27"));
	assert_true(e.fix[0] != '\0');
	memset(&e, 0, sizeof(e));
	assert_true(fixture_totals(f->dir, 0, INT64_MAX, &sums, &e) < 0);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_non_null(strstr(e.what, "schema 27"));
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	assert_int_equal(fixture_sql(seg, "SELECT value FROM meta WHERE key = 'schema_version'"),
			 27);
}

static void scribble(const char *path, off_t at, size_t n)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pwrite(fd, "\xa5", 1, at + (off_t)i), 1);
	close(fd);
}

STORE_TEST(a_damaged_segment_is_set_aside_and_the_capture_goes_on)
{
	struct fixture *f = *state;
	struct fixture_sums sums = {0};
	struct store_writer *w;
	struct stat st;

	for (int i = 0; i < 3; i++) {
		w = fixture_writer(f, 0);
		fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS), 1, 1,
			    T0_S * NS, 1);
		fixture_close(w);
		assert_int_equal(stat(fixture_segment(f, 0), &st), 0);
		if (i == 0) /* no database at all */
			scribble(fixture_segment(f, 0), 0, 100);
		else if (i == 1) /* pages overwritten */
			scribble(fixture_segment(f, 0), 4096, (size_t)st.st_size - 4096);
		else /* cut short */
			assert_int_equal(truncate(fixture_segment(f, 0), st.st_size / 2), 0);
	}
	w = fixture_writer(f, 0);
	fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS), 1, 1, T0_S * NS, 5);
	fixture_close(w);
	assert_int_equal(fixture_files(f->dir, ".bad") + fixture_files(f->dir, ".bad.2") +
				 fixture_files(f->dir, ".bad.3"),
			 3);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	assert_int_equal(fixture_totals(f->dir, 0, INT64_MAX, &sums, NULL), 0);
	assert_int_equal(sums.samples, 5);
}

STORE_TEST(a_segment_damaged_while_it_is_written_is_set_aside)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	for (uint32_t i = 0; i < 4000; i++)
		fixture_add(w, run, 1, i, T0_S * NS, 1);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 4000));
	/* another program checkpoints the log, and then the file is overwritten with garbage */
	fixture_sql(fixture_segment(f, 0), "PRAGMA wal_checkpoint(TRUNCATE)");
	scribble(fixture_segment(f, 0), 100, 200000);
	for (uint32_t i = 0; i < 4000; i++)
		fixture_add(w, run, 2, i, (T0_S + 1) * NS, 1);
	fixture_close(w);
	assert_int_equal(fixture_files(f->dir, ".bad"), 1);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples WHERE pid = 2"),
			 4000);
}

STORE_TEST(a_segment_that_is_removed_under_a_writer_is_noticed)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	fixture_add(w, run, 1, 1, T0_S * NS, 1);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 1));
	assert_int_equal(unlink(fixture_segment(f, 0)), 0);
	fixture_add(w, run, 1, 1, T0_S * NS, 2);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples"), 2);
}

static uint32_t library(struct store_writer *w)
{
	return store_image(
		w, &(struct store_image){
			   .name = "libx.so", .path = "/lib/libx.so", .build_id = "", .key = ""});
}

STORE_TEST(how_stacks_end_is_summed_by_minute_program_and_file)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	for (int i = 0; i < 180; i++) {
		fixture_add(w, run, 1, 1, (T0_S + i) * NS, 1);
		store_unwound(w, run, (T0_S + i) * NS, "/bin/a", 0, 1, 1);
		store_unwound(w, run, (T0_S + i) * NS, "/bin/b", library(w), i % 2 ? 5 : 8, 1);
		if (i % 50 == 49)
			store_flush(w);
	}
	store_unwound(w, run, T0_S * NS, "", 0, 2, 7);
	store_unwound(w, run, T0_S * NS, "/bin/gone", 0, 14, 9);
	store_unwound(w, run, T0_S * NS, "/bin/a", 9999, 1, 0);  /* none: no row */
	store_unwound(w, run + 1, T0_S * NS, "/bin/a", 0, 1, 1); /* no such run */
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM unwound_row"), 3 + 2 * 3 + 2);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM unwound_row"), 180 + 180 + 7 + 9);
	assert_int_equal(
		fixture_sql_all(f, "SELECT count(DISTINCT ts) FROM unwound_row WHERE "
				   "(ts + (SELECT value FROM meta WHERE key = 't0')) % 60 = 0"),
		3);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM unwinding"), 5);
	assert_int_equal(fixture_sql_all(f, "SELECT samples FROM unwinding WHERE complete IS NULL"),
			 9);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT samples FROM unwinding WHERE complete AND reason = 'complete' AND "
			"executable = '/bin/a' AND module = '' AND share = 1.0"),
		180);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT samples FROM unwinding WHERE executable = '/bin/b' AND "
			"module = 'libx.so' AND reason = 'the chain of frame pointers ended' AND "
			"share = 0.5"),
		90);
	assert_int_equal(
		fixture_sql_all(
			f, "SELECT samples FROM unwinding WHERE executable = '' AND NOT complete"),
		7);
}

STORE_TEST(how_stacks_end_is_written_once_its_minute_is_over)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 10, PERIOD, T0_S * NS);
	const int64_t minute = T0_S - T0_S % 60;

	for (int i = 0; i < 60; i += 10) {
		fixture_add(w, run, 1, 1, (minute + i) * NS, 1);
		store_unwound(w, run, (minute + i) * NS, "/bin/a", 0, 1, 1);
		store_flush(w);
		assert_true(fixture_wait_stored(w, (uint64_t)i / 10 + 1));
	}
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM unwound_row"), 0);
	fixture_add(w, run, 1, 1, (minute + 60) * NS, 1);
	store_unwound(w, run, (minute + 60) * NS, "/bin/a", 0, 1, 4);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 7));
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM unwound_row"), 6);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM unwound_row"), 2);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM run_unwound"), 10);
}

STORE_TEST(a_disk_that_stalls_costs_the_oldest_batches_and_each_sample_is_counted)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 1024 * 1024);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	struct store_writer_stat st;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/lock", f->dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0); /* no process can write now */
	for (uint32_t i = 0; i < 200000; i++) {
		fixture_add(w, run, 100 + i % 10, i % 100, T0_S * NS + (int64_t)i * NS / 100, 1);
		store_unwound(w, run, T0_S * NS + (int64_t)i * NS / 100, "/bin/a", 0, 1, 1);
		if (i % 1000 == 999)
			store_flush(w);
		if (i % 5000 == 0)
			store_loss(w, run, T0_S * NS + (int64_t)i * NS / 100, "ring", 3);
	}
	store_writer_stat(w, &st);
	assert_true(st.waiting_bytes < 2 * 1024 * 1024);
	assert_true(st.dropped > 0);
	close(fd);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(lost) FROM loss WHERE reason = 'ring'"),
			 120);
	assert_int_equal(
		fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples") +
			fixture_sql_all(f, "SELECT sum(lost) FROM loss WHERE reason = 'store'"),
		200000);
	assert_int_equal(fixture_sql_all(f, "SELECT accounted FROM run"), 200120);
	/* a full batch is handed over before the unwinding of its last stack is added; batches
	 * before the stall was noticed leave theirs to the next one, which may be dropped */
	assert_in_range(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples") -
				fixture_sql_all(f, "SELECT sum(samples) FROM unwinding") + 10,
			0, 2020);
}

STORE_TEST(a_hanging_disk_does_not_hang_the_end)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	struct err e = {0};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/lock", f->dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS), 1, 1, T0_S * NS, 1);
	assert_int_equal(store_writer_close(w, 100, &e), -ETIMEDOUT);
	assert_int_equal(e.exit, EXIT_STORE);
	close(fd);
	usleep(300000); /* it goes on by itself as soon as it can */
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples"), 1);
}

/* --- a full disk: a small tmpfs --- */

static void fill_disk(const char *dir, const char *name)
{
	static char block[65536];
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	for (size_t size = sizeof(block); size; size /= 4)
		while (write(fd, block, size) > 0)
			;
	close(fd);
}

static bool mount_small(const char *dir, const char *size)
{
	char options[32];

	snprintf(options, sizeof(options), "size=%s", size);
	return geteuid() == 0 && mount("tmpfs", dir, "tmpfs", 0, options) == 0;
}

STORE_TEST(a_full_disk_is_said_at_the_start)
{
	struct fixture *f = *state;
	struct store_writer_opts o = {.dir = f->dir};
	struct store_writer *w = NULL;
	struct err e = {0};

	if (!mount_small(f->dir, "1m"))
		skip_missing("root and the right to mount a tmpfs");
	fill_disk(f->dir, "filler");
	assert_int_equal(store_writer_open(&o, &w, &e), -ENOSPC);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_non_null(strstr(e.what, "store full"));
	assert_true(e.fix[0] != '\0');
	assert_int_equal(fixture_files(f->dir, ".db"), 0);
	assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
}

STORE_TEST(a_disk_that_fills_up_hurts_nothing_and_what_is_lost_is_counted)
{
	struct fixture *f = *state;
	struct store_writer_stat st = {0};
	struct store_writer *w;
	uint64_t added = 0;
	char filler[160];
	uint32_t run;

	if (!mount_small(f->dir, "16m"))
		skip_missing("root and the right to mount a tmpfs");
	w = fixture_writer(f, 1024 * 1024);
	run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	snprintf(filler, sizeof(filler), "%s/filler", f->dir);
	for (uint32_t i = 0; i < 100000; i++, added++) {
		fixture_add(w, run, 100 + i % 10, i % 1000, T0_S * NS + (int64_t)i * NS / 100, 1);
		if (i == 20000)
			fill_disk(f->dir, "filler");
		if (i % 1000 == 999) {
			store_flush(w);
			usleep(5000);
		}
	}
	store_writer_stat(w, &st);
	assert_int_equal(st.last_error, -ENOSPC);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) > 0 FROM cpu_samples"),
			 1);
	assert_int_equal(unlink(filler), 0);
	fixture_close(w);
	assert_int_equal(fixture_sql(fixture_segment(f, 0),
				     "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
			 1);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples") +
				 fixture_sql_all(f, "SELECT coalesce(sum(lost), 0) FROM loss"),
			 (int64_t)added);
	assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
}

STORE_TEST(what_a_full_disk_kept_out_at_the_end_is_counted_by_the_next_writer)
{
	struct fixture *f = *state;
	struct store_writer *w;
	struct err e = {0};
	char filler[160];
	int64_t stored;
	uint32_t run;

	if (!mount_small(f->dir, "2m"))
		skip_missing("root and the right to mount a tmpfs");
	w = fixture_writer(f, 0);
	run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	fixture_add(w, run, 1, 1, T0_S * NS, 100);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 100));
	fill_disk(f->dir, "filler");
	for (uint32_t i = 0; i < 5000; i++)
		fixture_add(w, run, 100 + i % 10, i, T0_S * NS, 1);
	assert_int_equal(store_writer_close(w, 300, &e), -ENOSPC);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_non_null(strstr(e.what, "store full"));
	snprintf(filler, sizeof(filler), "%s/filler", f->dir);
	assert_int_equal(unlink(filler), 0);
	fixture_close(fixture_writer(f, 0));
	stored = fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples");
	assert_int_equal(stored, 100);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(lost) FROM loss WHERE reason = 'store'"),
			 5000);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
}

STORE_TEST(a_folder_that_cannot_be_made_is_refused_with_a_fix)
{
	struct fixture *f = *state;
	struct store_writer_opts o = {.dir = "/proc/nowhere"};
	struct store_writer *w = NULL;
	struct err e = {0};
	char file[128];

	assert_true(store_writer_open(&o, &w, &e) < 0);
	assert_true(e.exit == EXIT_STORE || e.exit == EXIT_PERMISSION);
	assert_true(e.fix[0] != '\0');
	snprintf(file, sizeof(file), "%s/file", f->dir);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	o.dir = file;
	memset(&e, 0, sizeof(e));
	assert_true(store_writer_open(&o, &w, &e) < 0);
	assert_int_equal(e.exit, EXIT_STORE);
}

STORE_TEST(the_default_folder_follows_the_environment)
{
	setenv("SONDE_STORE", "/x/y", 1);
	assert_string_equal(store_default_dir(), "/x/y");
	unsetenv("SONDE_STORE");
	if (geteuid() == 0)
		assert_string_equal(store_default_dir(), "/var/lib/sonde");
}
