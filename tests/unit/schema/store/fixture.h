/* SPDX-License-Identifier: Apache-2.0 */
/* fixture: what the store's tests share: a new folder each, a writer with a small known profile,
 * queries in SQL. */
#ifndef SONDE_TESTS_STORE_FIXTURE_H
#define SONDE_TESTS_STORE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "schema/store/read/reader.h"
#include "schema/store/write/writer.h"
#include "tests/unit/test.h"

#define T0_S 1800000000ll /* when the tests' samples happen */
#define NS   1000000000ll

struct fixture {
	char dir[64];
};

void fixture_make(struct fixture *f); /* a new folder under TMPDIR */
void fixture_remove(struct fixture *f);
/* A test with a new folder: *state is its struct fixture. The teardown resets the size of segments
 * to the default. */
#define STORE_TEST(name) TEST_WITH(name, fixture_setup, fixture_teardown)
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* The n-th segment by age, from 0, or "". Static buffers, one a call up to four. */
const char *fixture_segment(const struct fixture *f, size_t n);
size_t fixture_files(const char *dir, const char *suffix);

/* Size at which later writers begin a new segment; 0: the default. */
void fixture_segment_bytes(uint64_t bytes);
struct store_writer *fixture_writer(const struct fixture *f, size_t max_bytes);
void fixture_close(struct store_writer *w);
uint32_t fixture_run(struct store_writer *w, enum store_scope scope, uint32_t bucket_s,
		     uint64_t period_ns, int64_t from_ns);
/* A series of process `pid` with a stack of three frames, the leaf being function "leaf_<leaf>". */
uint32_t fixture_series(struct store_writer *w, uint32_t run, uint32_t pid, uint32_t leaf);
/* Interns again when the writer says that ids are stale. */
void fixture_add(struct store_writer *w, uint32_t run, uint32_t pid, uint32_t leaf, int64_t utc_ns,
		 uint64_t n);
/* Waits until everything flushed has been committed; false after 10 s. */
bool fixture_wait_stored(struct store_writer *w, uint64_t stored);

/* One number from a segment, through a new connection; -1 on error. */
int64_t fixture_sql(const char *path, const char *sql);
/* One text; false if there is no row. */
bool fixture_text(const char *path, const char *sql, char *out, size_t size);
/* The number of fixture_sql summed over all segments of the folder. */
int64_t fixture_sql_all(const struct fixture *f, const char *sql);
void fixture_exec(const char *path, const char *sql);
/* Drops every view and table but those of this list ('a','b'): a file as an older migration left
 * it. */
void fixture_drop_all_but(const char *path, const char *names);

struct fixture_sums {
	uint64_t samples, cpu_ns;
	uint32_t pid; /* count this one only; 0: all */
};
/* store_totals over all segments of `dir`; 0 or the error. */
int fixture_totals(const char *dir, int64_t from_ns, int64_t to_ns, struct fixture_sums *out,
		   struct err *e);

#endif
