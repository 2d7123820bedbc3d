/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/schema/store/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/store/files/folder.h"
#include "schema/store/packed/module.h"

void fixture_make(struct fixture *f)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(f->dir, sizeof(f->dir), "%s/sonde-store-XXXXXX",
		 tmp && strlen(tmp) < 30 ? tmp : "/tmp");
	if (!mkdtemp(f->dir))
		abort();
}

static void remove_tree(const char *dir)
{
	char path[PATH_MAX];
	struct dirent *de;
	DIR *d = opendir(dir);

	while (d && (de = readdir(d))) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		if (de->d_type == DT_DIR)
			remove_tree(path);
		else
			unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

void fixture_remove(struct fixture *f)
{
	remove_tree(f->dir);
}

const char *fixture_segment(const struct fixture *f, size_t n)
{
	static char path[4][PATH_MAX];
	static int turn;
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	size_t count = 0;

	turn = (turn + 1) % 4;
	path[turn][0] = '\0';
	if (folder_segments(f->dir, &names, &count) == 0 && n < count)
		snprintf(path[turn], PATH_MAX, "%s/%s", f->dir, names[n]);
	free(names);
	return path[turn];
}

size_t fixture_files(const char *dir, const char *suffix)
{
	struct dirent *de;
	DIR *d = opendir(dir);
	size_t n = 0;

	while (d && (de = readdir(d))) {
		size_t len = strlen(de->d_name), end = strlen(suffix);

		n += len >= end && !strcmp(de->d_name + len - end, suffix);
	}
	if (d)
		closedir(d);
	return n;
}

static uint64_t limit_bytes;

void fixture_segment_bytes(uint64_t bytes)
{
	limit_bytes = bytes;
}

int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	fixture_make(f);
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	fixture_segment_bytes(0);
	fixture_remove(*state);
	free(*state);
	return 0;
}

struct store_writer *fixture_writer(const struct fixture *f, size_t max_bytes)
{
	struct store_writer_opts o = {
		.dir = f->dir, .max_bytes = max_bytes, .segment_bytes = limit_bytes};
	struct store_writer *w = NULL;
	struct err e = {0};

	if (store_writer_open(&o, &w, &e)) {
		fprintf(stderr, "%s\n", e.what);
		abort();
	}
	return w;
}

void fixture_close(struct store_writer *w)
{
	struct err e = {0};

	if (store_writer_close(w, 10000, &e)) {
		fprintf(stderr, "%s\n", e.what);
		abort();
	}
}

uint32_t fixture_run(struct store_writer *w, enum store_scope scope, uint32_t bucket_s,
		     uint64_t period_ns, int64_t from_ns)
{
	struct store_run r = {.family = "cpu",
			      .options = "sonde-cpu --test",
			      .scope = scope,
			      .bucket_s = bucket_s,
			      .period_ns = period_ns,
			      .cpus = 2,
			      .from_ns = from_ns,
			      .boot_offset_ns = clock_boot_offset_ns()};

	return store_run_begin(w, &r);
}

static uint32_t fixture_stack(struct store_writer *w, uint32_t leaf)
{
	struct store_image im = {STORE_IMAGE_ELF, "prog", "/usr/bin/prog", "abcd", ""};
	uint32_t image = store_image(w, &im), frames[3];
	char name[32];
	struct store_function fn = {.name = name, .image = image, .file = "prog.c", .line = 10};
	struct store_frame fr = {.image = image};

	snprintf(name, sizeof(name), "main");
	fr.function = store_function(w, &fn);
	fr.offset = 0x100;
	fr.line = 11;
	frames[0] = store_frame(w, &fr);
	fr.function = 0; /* never named: prog+0x200 */
	fr.offset = 0x200;
	fr.line = 0;
	frames[1] = store_frame(w, &fr);
	snprintf(name, sizeof(name), "leaf_%u", leaf);
	fr.function = store_function(w, &fn);
	fr.offset = 0x1000 + leaf;
	fr.leaf = true;
	frames[2] = store_frame(w, &fr);
	return store_stack(w, frames, 3);
}

uint32_t fixture_series(struct store_writer *w, uint32_t run, uint32_t pid, uint32_t leaf)
{
	char comm[16];
	struct store_process p = {.pid = pid,
				  .ppid = 1,
				  .uid = 0,
				  .exec_id = 1,
				  .start_ns = T0_S * NS,
				  .start_ticks = 5,
				  .comm = comm,
				  .exe = "/usr/bin/prog",
				  .args = "prog",
				  .cgroup = "/",
				  .unit = ""};

	snprintf(comm, sizeof(comm), "prog-%u", pid);
	return store_series(w, run, store_process(w, &p), "main", pid, fixture_stack(w, leaf),
			    STORE_KIND_CPU);
}

void fixture_add(struct store_writer *w, uint32_t run, uint32_t pid, uint32_t leaf, int64_t utc_ns,
		 uint64_t n)
{
	for (int tries = 0; tries < 3; tries++)
		if (store_add(w, fixture_series(w, run, pid, leaf), utc_ns, n) == 0)
			return;
	abort();
}

bool fixture_wait_stored(struct store_writer *w, uint64_t stored)
{
	struct store_writer_stat st;

	for (int i = 0; i < 1000; i++) {
		store_writer_stat(w, &st);
		if (st.stored >= stored)
			return true;
		usleep(10000);
	}
	fprintf(stderr, "stored %llu of %llu, dropped %llu, error %d\n",
		(unsigned long long)st.stored, (unsigned long long)stored,
		(unsigned long long)st.dropped, st.last_error);
	return false;
}

/* An archive, too. */
static bool open_file(const char *path, sqlite3 **db)
{
	return sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
	       packed_register(*db) == SQLITE_OK && packed_views(*db, NULL) == SQLITE_OK;
}

int64_t fixture_sql(const char *path, const char *sql)
{
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int64_t v = -1;

	if (open_file(path, &db)) {
		sqlite3_busy_timeout(db, 5000);
		if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
			fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
		else if (sqlite3_step(st) == SQLITE_ROW)
			v = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
	return v;
}

bool fixture_text(const char *path, const char *sql, char *out, size_t size)
{
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	bool row = false;

	if (open_file(path, &db) && sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK)
		row = sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0);
	if (row)
		snprintf(out, size, "%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	sqlite3_close(db);
	return row;
}

int64_t fixture_sql_all(const struct fixture *f, const char *sql)
{
	int64_t sum = 0;

	for (size_t i = 0; *fixture_segment(f, i); i++)
		sum += fixture_sql(fixture_segment(f, i), sql);
	return sum;
}

void fixture_exec(const char *path, const char *sql)
{
	sqlite3 *db = NULL;

	if (!open_file(path, &db) || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
		abort();
	}
	sqlite3_close(db);
}

void fixture_drop_all_but(const char *path, const char *names)
{
	char ask[512], drops[8192];
	int n = snprintf(
		ask, sizeof(ask),
		"SELECT group_concat(printf('DROP %%s %%s;', type, name), '') FROM (SELECT type, name "
		"FROM sqlite_master WHERE type IN ('view', 'trigger', 'table') AND name NOT LIKE 'sqlite%%' AND name NOT IN (%s) "
		"ORDER BY type DESC)",
		names); /* views and triggers before their tables */

	if (n < 0 || (size_t)n >= sizeof(ask) || !fixture_text(path, ask, drops, sizeof(drops)))
		abort();
	fixture_exec(path, drops);
}

struct sum_ctx {
	struct fixture_sums *out;
	const struct store_dict *dict;
};

static int sum_one(void *ctx, const struct store_total *t)
{
	struct sum_ctx *c = ctx;

	if (c->out->pid && c->dict->processes[t->process].pid != c->out->pid)
		return 0;
	c->out->samples += t->n;
	c->out->cpu_ns += t->value;
	return 0;
}

int fixture_totals(const char *dir, int64_t from_ns, int64_t to_ns, struct fixture_sums *out,
		   struct err *e)
{
	struct store_query q = {.from_ns = from_ns, .to_ns = to_ns, .kind = STORE_KIND_CPU};
	struct store_segment_info *info = NULL;
	struct sum_ctx c = {.out = out};
	struct store_segment *s;
	size_t n = 0;
	int rc = store_segments(dir, from_ns, to_ns, &info, &n, e);

	out->samples = out->cpu_ns = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		rc = store_segment_open(info[i].path, &s, e);
		if (rc)
			break;
		rc = store_segment_dict(s, &c.dict, e);
		if (!rc)
			rc = store_totals(s, &q, sum_one, &c, e);
		store_segment_close(s);
	}
	free(info);
	return rc;
}
