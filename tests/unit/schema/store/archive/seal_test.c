/* SPDX-License-Identifier: Apache-2.0 */
/* seal: archived segments give the same answers as before, whatever is killed at any moment; no
 * reader reads a row twice or misses one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "schema/store/archive/seal.h"
#include "schema/store/files/folder.h"
#include "schema/store/retention/retention.h"
#include "schema/store/retention/segcount.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD  10101010
#define BUCKETS 7
/* where each segment goes the same way; SONDE_SOAK: as many as elsewhere */
#define BUCKETS_FEW 3
#define SERIES      120 /* a segment: enough that its tables become columns */

/* --- a store of many segments --- */

static int buckets = BUCKETS;

/* An always-on capture of the host over many segments, most of which end within a bucket of 10 s;
 * with `two`, also a capture of process 102 from 25 s to 48 s. The period changes at 60 s. */
static void make_store_at(const struct fixture *f, int64_t t0_s, bool two)
{
	struct store_writer *w;
	uint32_t always, fine = 0;
	uint64_t stored = 0;

	fixture_segment_bytes(1); /* each commit begins another segment */
	w = fixture_writer(f, 0);
	always = fixture_run(w, STORE_SCOPE_HOST, 10, PERIOD, t0_s * NS);
	for (int64_t s = 0; s < 10 * buckets; s += 5) {
		int64_t at = t0_s + s;

		if (two && s == 25)
			fine = fixture_run(w, STORE_SCOPE_NARROW, 1, PERIOD / 10, at * NS);
		if (s == 60)
			store_run_period(w, always, at * NS, 2 * PERIOD);
		for (uint32_t k = 0; k < SERIES; k++) {
			fixture_add(w, always, 100 + k % 4, k / 4 + (uint32_t)s / 20,
				    (at - s % 10) * NS, 3 + k);
			stored += 3 + k;
		}
		for (int64_t x = 0; fine && x < 5; x++, stored += 40)
			fixture_add(w, fine, 102, 2 + (uint32_t)x, (at + x) * NS, 40);
		store_run_until(w, always, (at + 5) * NS);
		if (fine)
			store_run_until(w, fine, (at + 5 > t0_s + 48 ? t0_s + 48 : at + 5) * NS);
		if (s == 45)
			fine = 0;
		store_flush(w);
		assert_true(fixture_wait_stored(w, stored));
	}
	fixture_close(w);
	fixture_segment_bytes(1 << 30);
}

static void make_store(const struct fixture *f)
{
	make_store_at(f, T0_S, true);
}

/* --- what it answers: by content, from all segments together --- */

struct answers {
	sqlite3 *db;
	sqlite3_stmt *put;
	const struct store_dict *dict;
	const char *what;
};

static void note(struct answers *a, const char *who, uint64_t n, uint64_t value)
{
	sqlite3_bind_text(a->put, 1, a->what, -1, SQLITE_STATIC);
	sqlite3_bind_text(a->put, 2, who, -1, SQLITE_STATIC);
	sqlite3_bind_int64(a->put, 3, (int64_t)n);
	sqlite3_bind_int64(a->put, 4, (int64_t)value);
	assert_int_equal(sqlite3_step(a->put), SQLITE_DONE);
	sqlite3_reset(a->put);
}

static int note_total(void *ctx, const struct store_total *t)
{
	struct answers *a = ctx;
	const struct store_process_row *p = &a->dict->processes[t->process];
	struct strbuf who = STRBUF_INIT;

	strbuf_addf(&who, "%u %s %s %s %u %s", p->pid, p->comm, p->exe, p->args, t->tid, t->thread);
	for (uint32_t at = t->stack; at; at = a->dict->stack_parent[at])
		strbuf_addf(&who, ";%s:%u", a->dict->frames[a->dict->stack_frame[at]].name,
			    a->dict->frames[a->dict->stack_frame[at]].line);
	note(a, strbuf_str(&who), t->n, t->value);
	strbuf_release(&who);
	return 0;
}

static int note_step(void *ctx, int64_t from_ns, uint32_t process, uint64_t value)
{
	struct answers *a = ctx;
	char who[64];

	snprintf(who, sizeof(who), "%lld %u", (long long)(from_ns / NS),
		 a->dict->processes[process].pid);
	note(a, who, 1, value);
	return 0;
}

static void ask_segment(struct answers *a, struct store_segment *s, const struct store_query *q)
{
	struct err e = {0};

	assert_int_equal(store_segment_dict(s, &a->dict, &e), 0);
	assert_int_equal(store_totals(s, q, note_total, a, &e), 0);
	assert_int_equal(store_timeline(s, q, 20, note_step, a, &e), 0);
}

/* All that was asked, as text; the caller's. */
static char *answers(const struct fixture *f)
{
	static const int64_t windows[][2] = {{0, INT64_MAX}, {5, 33},  {20, 60},
					     {30, 40},       {55, 75}, {100, 1000}};
	struct store_segment_info *info;
	struct answers a = {0};
	struct err e = {0};
	char *out;
	size_t n;
	sqlite3_stmt *st;

	sqlite3_open(":memory:", &a.db);
	sqlite3_exec(a.db, "CREATE TABLE t(what, who, n, v)", NULL, NULL, NULL);
	sqlite3_prepare_v2(a.db, "INSERT INTO t VALUES(?1, ?2, ?3, ?4)", -1, &a.put, NULL);
	if (store_segments(f->dir, 0, INT64_MAX, &info, &n, &e))
		fail_msg("%s", e.what);
	for (size_t i = 0; i < n; i++) {
		struct store_segment *s;

		if (store_segment_open(info[i].path, &s, &e))
			fail_msg("%s", e.what);
		for (size_t k = 0; k < ARRAY_SIZE(windows); k++) {
			struct store_query q = {.from_ns = k ? (T0_S + windows[k][0]) * NS : 0,
						.to_ns =
							k ? (T0_S + windows[k][1]) * NS : INT64_MAX,
						.kind = STORE_KIND_CPU};
			char what[16];

			snprintf(what, sizeof(what), "window %zu", k);
			a.what = what;
			ask_segment(&a, s, &q);
		}
		store_segment_close(s);
	}
	free(info);
	sqlite3_finalize(a.put);
	sqlite3_prepare_v2(
		a.db,
		"SELECT group_concat(line, char(10)) FROM (SELECT printf('%s: %s %d %d', what, who, "
		"iif(instr(who, ';'), sum(n), 0), sum(v)) AS line FROM t GROUP BY what, who ORDER BY 1)",
		-1, &st, NULL);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	out = strdup((const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	sqlite3_close(a.db);
	return out;
}

static void assert_same(const struct fixture *f, const char *before)
{
	char *now = answers(f);

	if (strcmp(before, now)) {
		size_t i = 0;

		while (before[i] == now[i])
			i++;
		while (i && before[i - 1] != '\n')
			i--;
		fail_msg("before: %.200s\nnow: %.200s", before + i, now + i);
	}
	free(now);
}

static void seal_keeping(const struct fixture *f, uint64_t plain, uint32_t keep_s,
			 struct seal_report *r)
{
	struct seal_opts o = {.dir = f->dir, .plain = plain, .keep_s = keep_s};
	struct err e = {0};

	if (seal_run(&o, r, &e))
		fail_msg("%s", e.what);
}

static void seal(const struct fixture *f, struct seal_report *r)
{
	seal_keeping(f, 0, 0, r);
}

static size_t archives(const struct fixture *f)
{
	size_t n = 0;

	for (size_t i = 0; *fixture_segment(f, i); i++)
		n += folder_is_archived(fixture_segment(f, i));
	return n;
}

/* --- the tests --- */

static int setup(void **state)
{
	buckets = BUCKETS;
	return fixture_setup(state);
}

static int setup_few(void **state)
{
	buckets = getenv("SONDE_SOAK") ? BUCKETS : BUCKETS_FEW;
	return fixture_setup(state);
}

TEST_WITH(archived_segments_answer_as_they_did, setup, fixture_teardown)
{
	struct fixture *f = *state;
	struct seal_report r;
	size_t files;
	char *before;

	make_store(f);
	before = answers(f);
	files = fixture_files(f->dir, ".db");
	assert_true(files > 5);
	seal(f, &r);
	assert_int_equal(r.segments, files - 1);
	assert_int_equal(archives(f), files - 1); /* all but the newest */
	assert_true(r.bytes_after < r.bytes_before);
	assert_int_equal(fixture_files(f->dir, ".db"), files);
	assert_same(f, before);
	seal(f, &r);
	assert_int_equal(r.segments, 0);
	free(before);
}

TEST_WITH(the_newest_stay_rows_as_far_as_asked, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct seal_opts o = {.dir = f->dir};
	struct seal_report r;
	struct seal_due due;
	uint64_t bytes = 0;
	size_t files;

	make_store(f);
	files = fixture_files(f->dir, ".db");
	for (size_t i = files - 4; i < files - 1; i++) /* three of the finished ones */
		bytes += (uint64_t)fixture_sql(
			fixture_segment(f, i),
			"SELECT page_size * page_count FROM pragma_page_size, pragma_page_count");
	seal_keeping(f, UINT32_MAX, 0, &r);
	assert_int_equal(r.segments, 0);
	seal_keeping(f, UINT32_MAX, 3600, &r); /* all are young */
	assert_int_equal(r.segments, 0);
	seal_keeping(f, bytes / 2 + 1, 3600, &r); /* up to twice as many bytes */
	assert_int_equal(r.segments, files - 4);
	o.plain = bytes / 3 + 1;
	seal_look(&o, &due);
	assert_int_equal(due.segments, 2);
	assert_true(due.room > bytes / 3 && due.room < bytes);
	seal_keeping(f, o.plain, 0, &r);
	assert_int_equal(r.segments, 2);
	assert_false(folder_is_archived(fixture_segment(f, files - 2)));
}

TEST_WITH(what_finds_no_room_is_put_off, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct seal_opts o = {.dir = f->dir, .room = 1 << 17};
	struct seal_report r;
	struct err e = {0};

	make_store(f);
	assert_int_equal(seal_run(&o, &r, &e), 0);
	assert_int_equal(r.segments, 0);
	assert_int_equal(r.put_off, fixture_files(f->dir, ".db") - 1);
}

/* --- two connections, one dictionary --- */

struct asked {
	uint64_t n, value, rows;
	struct asked *within; /* asked when the first row of this one comes, NULL */
	struct store_segment *s;
	int64_t from_s, to_s;
};

static void ask_sums(struct asked *a);

static int sum_total(void *ctx, const struct store_total *t)
{
	struct asked *a = ctx;

	if (!a->rows && a->within)
		ask_sums(a->within);
	a->rows++;
	a->n += t->n;
	a->value += t->value * (1 + t->series);
	return 0;
}

static void ask_sums(struct asked *a)
{
	struct store_query q = {.from_ns = (T0_S + a->from_s) * NS,
				.to_ns = (T0_S + a->to_s) * NS,
				.kind = STORE_KIND_CPU};
	struct err e = {0};

	assert_int_equal(store_totals(a->s, &q, sum_total, a, &e), 0);
}

static void assert_same_sums(const struct asked *a, const struct asked *b)
{
	assert_true(a->rows > 3);
	assert_int_equal(a->rows, b->rows);
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->value, b->value);
}

TEST_WITH(a_shared_dictionary_is_asked_by_both_at_once, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct store_segment *s, *other, *newest;
	struct store_segment_info *info;
	const struct store_dict *dict;
	struct seal_report r;
	struct err e = {0};
	size_t n;

	make_store(f);
	seal(f, &r);
	assert_int_equal(store_segments(f->dir, 0, INT64_MAX, &info, &n, &e), 0);
	assert_int_equal(store_segment_open(info[2].path, &s, &e), 0);
	assert_int_equal(store_segment_open(info[2].path, &other, &e), 0);
	assert_int_equal(store_segment_open(info[n - 1].path, &newest, &e), 0);
	assert_true(store_segment_archived(s) && !store_segment_archived(newest));
	assert_int_equal(store_segment_share(other, s), -EAGAIN); /* it has none yet */
	assert_int_equal(store_segment_dict(s, &dict, &e), 0);
	assert_int_equal(store_segment_dict(newest, &dict, &e), 0);
	assert_int_equal(store_segment_share(newest, s), -EAGAIN);
	assert_int_equal(store_segment_share(other, newest), -EAGAIN);
	assert_int_equal(store_segment_share(other, s), 0);
	{
		struct asked alone[2] = {{.s = s, .from_s = 0, .to_s = 60},
					 {.s = s, .from_s = 0, .to_s = 33}};
		struct asked within = {.s = other, .from_s = 0, .to_s = 33},
			     outer = {.s = s, .from_s = 0, .to_s = 60, .within = &within};

		ask_sums(&alone[0]);
		ask_sums(&alone[1]);
		ask_sums(&outer);
		assert_same_sums(&alone[0], &outer);
		assert_same_sums(&alone[1], &within);
	}
	store_segment_close(other);
	store_segment_close(newest);
	store_segment_close(s);
	free(info);
}

/* An archive that was written again is another file, although its name is the same. */
TEST_WITH(a_dictionary_of_another_archive_is_not_shared, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct store_segment *s, *other;
	struct store_segment_info *info;
	const struct store_dict *dict;
	struct seal_report r;
	struct err e = {0};
	sqlite3 *db;
	size_t n;

	make_store(f);
	seal(f, &r);
	assert_int_equal(store_segments(f->dir, 0, INT64_MAX, &info, &n, &e), 0);
	assert_int_equal(store_segment_open(info[0].path, &s, &e), 0);
	assert_int_equal(store_segment_dict(s, &dict, &e), 0);
	{
		char *copy = sqlite3_mprintf("%s.copy", info[0].path),
		     *cmd = sqlite3_mprintf("cp '%s' '%s.copy'", info[0].path, info[0].path);

		assert_int_equal(system(cmd), 0);
		assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
		assert_int_equal(
			sqlite3_exec(db,
				     "UPDATE meta SET value = value + 1 WHERE key = 'archived_ns'",
				     NULL, NULL, NULL),
			SQLITE_OK);
		sqlite3_close(db);
		assert_int_equal(rename(copy, info[0].path), 0);
		sqlite3_free(copy);
		sqlite3_free(cmd);
	}
	assert_int_equal(store_segment_open(info[0].path, &other, &e), 0);
	assert_int_equal(store_segment_share(other, s), -EAGAIN);
	assert_int_equal(store_segment_dict(other, &dict, &e), 0); /* but it can have its own */
	store_segment_close(other);
	store_segment_close(s);
	free(info);
}

TEST_WITH(the_views_of_archives_have_the_same_sums, setup_few, fixture_teardown)
{
	/* clang-format off */
	static const char *const sums[] = {
		"SELECT sum(samples) FROM cpu_samples", "SELECT sum(cpu_ns) FROM cpu_samples",
		"SELECT sum(samples) FROM cpu_samples WHERE pid = 102", "SELECT sum(cpu_ns) FROM cpu_samples WHERE pid = 102",
		"SELECT sum(self * length(function)) FROM functions_top", "SELECT sum(total_ns) FROM functions_top",
		"SELECT sum(total) FROM lines_top",
	};
	/* clang-format on */
	int64_t before[ARRAY_SIZE(sums)];
	struct fixture *f = *state;
	struct seal_report r;

	make_store(f);
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		before[i] = fixture_sql_all(f, sums[i]);
	seal(f, &r);
	seal(f, &r);
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		if (fixture_sql_all(f, sums[i]) != before[i])
			fail_msg("%s: %lld, was %lld", sums[i],
				 (long long)fixture_sql_all(f, sums[i]), (long long)before[i]);
}

struct killer {
	int left;
};

static void kill_at(void *ctx, enum seal_step step, const char *name)
{
	struct killer *k = ctx;

	(void)step;
	(void)name;
	if (!k->left--)
		kill(getpid(), SIGKILL);
}

/* false: it was killed */
static bool seal_killed_at(const struct fixture *f, int step)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct killer k = {step};
		struct seal_opts o = {.dir = f->dir, .each = kill_at, .ctx = &k};
		struct seal_report r;
		struct err e = {0};

		_exit(seal_run(&o, &r, &e) ? 1 : 0);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return !WIFSIGNALED(status);
}

TEST_WITH(a_sealer_killed_at_any_step_loses_and_doubles_nothing, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct seal_report r;
	char *before;

	make_store(f);
	before = answers(f);
	/* further each time, over what the one before left */
	for (int step = 0; !seal_killed_at(f, step); step++)
		if (step % 4 == 3)
			assert_same(f, before);
	seal(f, &r);
	assert_same(f, before);
	assert_int_equal(archives(f), fixture_files(f->dir, ".db") - 1);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
		fixture_files(f->dir, ".db"));
	free(before);
}

/* At any instant, not only between steps. SONDE_SOAK: a thousand times, with segments that come in
 * between. */
TEST_WITH(a_sealer_killed_at_any_instant_loses_and_doubles_nothing, setup_few, fixture_teardown)
{
	int times = getenv("SONDE_SOAK") ? 1000 : 16;
	struct fixture *f = *state;
	struct seal_report r;
	char *before;

	make_store(f);
	before = answers(f);
	for (int i = 0; i < times; i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			struct seal_opts o = {.dir = f->dir};
			struct err e = {0};

			_exit(seal_run(&o, &r, &e) ? 1 : 0);
		}
		usleep((useconds_t)(i * 7919 % 60000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (i % 8 == 0)
			assert_same(f, before);
		if (i % (times == 16 ? 5 : 50) == 4) { /* something to do again */
			make_store_at(f, T0_S + 1000 * i, false);
			free(before);
			before = answers(f);
		}
	}
	seal(f, &r);
	seal(f, &r);
	assert_same(f, before);
	free(before);
}

TEST_WITH(what_a_living_writer_needs_is_left_alone, setup, fixture_teardown)
{
	struct fixture *f = *state;
	struct store_writer *w;
	struct seal_report r;
	uint32_t run;

	fixture_segment_bytes(1 << 30);
	w = fixture_writer(f, 0);
	run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	fixture_add(w, run, 100, 1, T0_S * NS, 5);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 5));
	seal(f, &r);
	assert_int_equal(r.segments, 0);
	fixture_close(w);
	seal(f, &r); /* the newest stays in any case */
	assert_int_equal(r.segments, 0);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
}

TEST_WITH(no_writer_joins_an_archive, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct seal_report r;
	char archive[512];
	size_t files;

	make_store(f);
	seal(f, &r);
	files = fixture_files(f->dir, ".db");
	snprintf(archive, sizeof(archive), "%s", fixture_segment(f, files - 2));
	assert_int_equal(unlink(fixture_segment(f, files - 1)),
			 0); /* as retention never would: an archive is the newest */
	make_store_at(f, T0_S + 1000, false);
	assert_true(folder_is_archived(archive));
	assert_true(fixture_files(f->dir, ".db") > files);
}

TEST_WITH(a_table_that_nobody_knows_is_archived_too, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct seal_report r;
	const char *path;

	make_store(f);
	path = fixture_segment(f, 3);
	fixture_exec(
		path,
		"ALTER TABLE process ADD COLUMN of_tomorrow INTEGER; CREATE TABLE tomorrow(ts INTEGER, who TEXT, n INTEGER);"
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
		" INSERT INTO tomorrow SELECT i / 10, 'who' || i % 7, iif(i % 3, i, NULL) FROM n; PRAGMA wal_checkpoint(TRUNCATE);"
		"PRAGMA journal_mode = DELETE");
	seal(f, &r);
	assert_true(folder_is_archived(path));
	assert_int_equal(
		fixture_sql(path, "SELECT count(*) FROM packed_table WHERE name = 'tomorrow'"), 1);
	assert_int_equal(
		fixture_sql(
			path,
			"SELECT sum(ts) * 1000000 + sum(n) * 10 + count(who) - count(n) FROM tomorrow"),
		4380300100ll);
}

/* Destroys the first page of this table, which is in the middle of the file. */
static void damage(const char *path, const char *table)
{
	char sql[200];
	int64_t page;
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	snprintf(
		sql, sizeof(sql),
		"SELECT rootpage * (SELECT page_size FROM pragma_page_size) - (SELECT page_size FROM pragma_page_size)"
		" FROM sqlite_master WHERE name = '%s'",
		table);
	page = fixture_sql(path, sql);
	assert_true(page > 0 && fd >= 0);
	assert_int_equal(pwrite(fd, "this was a page of a table", 26, page), 26);
	close(fd);
}

TEST_WITH(a_damaged_segment_is_set_aside_and_the_others_are_archived, setup_few, fixture_teardown)
{
	struct fixture *f = *state;
	struct seal_report r;
	int64_t all, lost;
	char path[512];
	size_t files;

	make_store(f);
	files = fixture_files(f->dir, ".db");
	snprintf(path, sizeof(path), "%s", fixture_segment(f, 3));
	all = fixture_sql_all(f, "SELECT sum(n) FROM sample");
	lost = fixture_sql(path, "SELECT sum(n) FROM sample");
	assert_true(lost > 0);
	damage(path, "frame");
	seal(f, &r);
	assert_int_equal(r.set_aside, 1);
	assert_int_equal(r.segments, files - 2); /* nor the newest */
	assert_int_equal(fixture_files(f->dir, ".bad"), 1);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM sample"), all - lost);
	seal(f, &r);
	assert_int_equal(r.segments, 0);
}

static uint64_t events_of(const char *path)
{
	struct segcount c;
	struct err e = {0};
	uint64_t n = 0;

	if (segcount_read(path, &c, &e))
		fail_msg("%s", e.what);
	for (uint32_t i = 0; i < c.n; i++)
		n += c.family[i].events;
	return n;
}

TEST_WITH(retention_counts_an_archive_as_the_segment_that_it_was, setup_few, fixture_teardown)
{
	struct retention_limits l = {.bytes = 1, .reserve_bytes = 1, .age_ns = INT64_MAX / 4};
	struct fixture *f = *state;
	struct retention_report report;
	struct removed_page page;
	struct seal_report r;
	struct err e = {0};
	uint64_t all = 0, newest = 0, archived = 0;
	size_t n = 0;

	make_store(f);
	for (; *fixture_segment(f, n); n++)
		all += newest = events_of(fixture_segment(f, n));
	seal(f, &r);
	for (size_t i = 0; i + 1 < n; i++)
		archived += events_of(fixture_segment(f, i));
	assert_int_equal(archived, all - newest);
	if (retention_run(f->dir, &l, false, NULL, NULL, &report, &e))
		fail_msg("%s", e.what);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	assert_int_equal(removed_read(f->dir, &page), 0);
	assert_int_equal(page.family[0].events, all - newest);
	assert_int_equal(page.uncounted, 0);
}
