/* SPDX-License-Identifier: Apache-2.0 */
/* budget: a store at its budget, on a full disk, on one that returns errors, and with a reader that
 * never ends. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/store/files/ballast.h"
#include "schema/store/files/segment.h"
#include "schema/store/retention/budget.h"
#include "schema/store/retention/removed.h"
#include "tests/unit/missing.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD  10101010
#define BUDGET  (6ull << 20)
#define SEGMENT (BUDGET / 8)

static struct store_writer *open_writer(const struct fixture *f, uint64_t budget, size_t max_bytes)
{
	struct store_writer_opts o = {.dir = f->dir,
				      .segment_bytes = SEGMENT,
				      .budget_bytes = budget,
				      .max_bytes = max_bytes};
	struct store_writer *w = NULL;
	struct err e = {0};

	if (store_writer_open(&o, &w, &e))
		fail_msg("%s", e.what);
	return w;
}

/* A batch of 800 samples, of stacks that no batch before it had. */
static void add_batch(struct store_writer *w, uint32_t run, uint32_t number, uint64_t *added)
{
	for (uint32_t i = 0; i < 800; i++, ++*added)
		fixture_add(w, run, 100 + i % 10, number * 800 + i, (T0_S + number) * NS, 1);
	store_flush(w);
}

/* Waits until everything added is stored or dropped. */
static bool wait_settled(struct store_writer *w, uint64_t added, int64_t ms)
{
	struct store_writer_stat st;

	for (int64_t i = 0; i < ms; i++) {
		store_writer_stat(w, &st);
		if (st.stored + st.dropped >= added)
			return true;
		usleep(1000);
	}
	return false;
}

static int64_t accounted(const struct fixture *f)
{
	struct removed_page p;
	int64_t n = fixture_sql_all(f, "SELECT coalesce(sum(n), 0) FROM sample") +
		    fixture_sql_all(f, "SELECT coalesce(sum(n), 0) FROM loss_row");

	assert_int_equal(removed_read(f->dir, &p), 0);
	assert_int_equal(p.uncounted, 0);
	for (uint32_t i = 0; i < p.n_families; i++)
		n += (int64_t)(p.family[i].events + p.family[i].lost);
	return n;
}

struct watch {
	const char *dir;
	atomic_bool stop;
	uint64_t most;
};

static void *watch_main(void *arg)
{
	struct watch *x = arg;
	struct usage u;

	while (!atomic_load(&x->stop)) {
		if (usage_measure(x->dir, &u) == 0 && u.bytes > x->most)
			x->most = u.bytes;
		usleep(500);
	}
	return NULL;
}

STORE_TEST(a_store_never_takes_more_than_its_budget_however_fast_it_is_written)
{
	struct fixture *f = *state;
	struct watch x = {.dir = f->dir};
	struct store_writer *w = open_writer(f, BUDGET, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	struct removed_page p;
	uint64_t added = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, watch_main, &x), 0);
	for (uint32_t i = 0; i < 64; i++) {
		add_batch(w, run, i, &added);
		if (i % 8 == 7) /* else what waits in memory is dropped */
			assert_true(wait_settled(w, added, 20000));
	}
	fixture_close(w);
	atomic_store(&x.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(removed_read(f->dir, &p), 0);
	print_message("%llu bytes at most of %llu, %llu files removed\n",
		      (unsigned long long)x.most, BUDGET, (unsigned long long)p.segments);
	assert_true(p.segments > 3);
	assert_in_range(x.most, BUDGET / 2, BUDGET + BUDGET / 100);
	assert_int_equal(accounted(f), (int64_t)added);
}

STORE_TEST(without_a_budget_nothing_is_removed)
{
	struct fixture *f = *state;
	struct store_writer *w = open_writer(f, 0, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	struct removed_page p;
	uint64_t added = 0;

	for (uint32_t i = 0; i < 20; i++)
		add_batch(w, run, i, &added);
	fixture_close(w);
	assert_int_equal(removed_read(f->dir, &p), 0);
	assert_int_equal(p.segments, 0);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM sample"), (int64_t)added);
}

/* --- a reader that never ends --- */

STORE_TEST(a_reader_that_never_ends_does_not_make_the_log_grow_without_end)
{
	struct fixture *f = *state;
	struct store_writer *w = open_writer(f, 0, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	uint64_t added = 0, longest = 0;
	sqlite3 *db;

	add_batch(w, run, 0, &added);
	assert_true(wait_settled(w, added, 10000));
	assert_int_equal(sqlite3_open_v2(fixture_segment(f, 0), &db, SQLITE_OPEN_READWRITE, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM sample", NULL, NULL, NULL),
			 SQLITE_OK);
	for (uint32_t i = 1; i < 30; i++) {
		add_batch(w, run, i, &added);
		assert_true(wait_settled(w, added, 10000));
		for (size_t k = 0; *fixture_segment(f, k); k++) {
			char wal[600];
			struct stat st;

			snprintf(wal, sizeof(wal), "%s-wal", fixture_segment(f, k));
			if (stat(wal, &st) == 0 && (uint64_t)st.st_size > longest)
				longest = (uint64_t)st.st_size;
		}
	}
	assert_true(fixture_files(f->dir, ".db") > 2);
	assert_in_range(longest, 1, SEGMENT + (512 << 10)); /* and the batch that went over */
	sqlite3_close(db);
	fixture_close(w);
	/* the next writer checkpoints what the reader held up */
	fixture_close(open_writer(f, 0, 0));
	assert_int_equal(fixture_files(f->dir, "-wal"), 0);
	assert_int_equal(accounted(f), (int64_t)added);
}

/* --- a full disk --- */

static void fill(const char *dir)
{
	static char block[65536];
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/filler", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	for (size_t size = sizeof(block); size; size /= 4)
		while (write(fd, block, size) > 0)
			;
	close(fd);
}

STORE_TEST(on_a_full_disk_the_ballast_goes_and_the_next_batch_is_stored)
{
	struct fixture *f = *state;
	struct store_writer_stat st;
	struct store_writer *w;
	uint64_t added = 0;
	char ballast[160];
	struct stat is;
	uint32_t run;

	if (geteuid() != 0 || mount("tmpfs", f->dir, "tmpfs", 0, "size=12m") != 0)
		skip_missing("root and the right to mount a tmpfs");
	ballast_keep(f->dir, 2 << 20, 12 << 20, 9 << 20);
	snprintf(ballast, sizeof(ballast), "%s/ballast", f->dir);
	assert_int_equal(stat(ballast, &is), -1); /* not where the reserve would suffer */
	ballast_keep(f->dir, 2 << 20, 12 << 20, 1 << 20);
	assert_int_equal(stat(ballast, &is), 0);
	assert_int_equal(is.st_blocks * 512, 2 << 20);
	w = open_writer(f, 0, 0);
	run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	add_batch(w, run, 0, &added);
	assert_true(wait_settled(w, added, 10000));
	fill(f->dir);
	for (uint32_t i = 1; i < 20 && stat(ballast, &is) == 0; i++) {
		add_batch(w, run, i, &added);
		assert_true(wait_settled(w, added, 10000));
	}
	assert_int_equal(stat(ballast, &is), -1);
	store_writer_stat(w, &st);
	assert_int_equal(st.last_error, 0);
	assert_int_equal(st.stored, added);
	fixture_close(w);
	assert_int_equal(accounted(f), (int64_t)added);
	assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
}

/* --- a disk that returns errors: SQLite's own files, with writes that fail while we say so --- */

static atomic_bool broken;
static sqlite3_vfs shim;
static sqlite3_io_methods methods[4]; /* of kinds of files; how they write is the same for all */
static const sqlite3_io_methods *real_methods[4];

static int shim_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
	return atomic_load(&broken) ? SQLITE_IOERR_WRITE :
				      real_methods[0]->xWrite(file, data, n, at);
}

static int shim_sync(sqlite3_file *file, int flags)
{
	return atomic_load(&broken) ? SQLITE_IOERR_FSYNC : real_methods[0]->xSync(file, flags);
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	sqlite3_vfs *real = vfs->pAppData;
	int rc = real->xOpen(real, name, file, flags, out), i = 0;

	if (rc != SQLITE_OK || !file->pMethods)
		return rc;
	while (i < 3 && real_methods[i] && real_methods[i] != file->pMethods)
		i++;
	real_methods[i] = file->pMethods;
	methods[i] = *file->pMethods;
	methods[i].xWrite = shim_write;
	methods[i].xSync = shim_sync;
	file->pMethods = &methods[i];
	return rc;
}

STORE_TEST(a_disk_that_returns_errors_costs_what_memory_cannot_hold_and_each_sample_is_counted)
{
	struct fixture *f = *state;
	struct store_writer_stat st;
	struct store_writer *w;
	uint64_t added = 0;
	uint32_t run;

	shim = *sqlite3_vfs_find(NULL);
	shim.pAppData = sqlite3_vfs_find(NULL);
	shim.zName = "shim";
	shim.xOpen = shim_open;
	assert_int_equal(sqlite3_vfs_register(&shim, 1), SQLITE_OK);
	w = open_writer(f, 0, 1 << 20);
	run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	add_batch(w, run, 0, &added);
	assert_true(wait_settled(w, added, 10000));
	atomic_store(&broken, true);
	add_batch(w, run, 1, &added);
	for (int i = 0; i < 5000 && (store_writer_stat(w, &st), !st.last_error); i++)
		usleep(1000);
	assert_int_equal(st.last_error, -EIO);
	for (uint32_t i = 2; i < 40; i++) {
		add_batch(w, run, i, &added);
		store_writer_stat(w, &st);
		assert_true(st.waiting_bytes < 2 << 20);
	}
	assert_true(st.dropped > 0);
	atomic_store(&broken, false);
	assert_true(wait_settled(w, added, 10000));
	fixture_close(w);
	assert_int_equal(sqlite3_vfs_unregister(&shim), SQLITE_OK);
	assert_int_equal(fixture_files(f->dir, ".bad"), 0);
	assert_int_equal(accounted(f), (int64_t)added);
	assert_int_equal(
		fixture_sql_all(f, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
		(int64_t)fixture_files(f->dir, ".db"));
}
