/* SPDX-License-Identifier: Apache-2.0 */
/* span_cache: the span of a settled file is remembered for the next process; that of a file that
 * was written to or has a log, or a torn record, is not. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/store/read/span_cache.h"
#include "tests/unit/test.h"

#define RECORD    64
#define MINUTE_NS 60000000000

static char path[64];

static void text_put(const char *name, const char *text)
{
	FILE *f = fopen(name, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int cache_make(void)
{
	int fd = memfd_create("spans", 0);

	assert_true(fd >= 0 && !fcntl(fd, F_SETFL, O_APPEND));
	return fd;
}

/* The file as it was a minute ago: ctime cannot be set, so the query has the older time stamp. */
static struct span_cache_file settled(void)
{
	struct span_cache_file f;

	if (!span_cache_of(path, &f))
		_exit(99);
	f.ctime_ns -= MINUTE_NS;
	return f;
}

/* The result of `of` in a new process with this cache: a process reads the cache once. */
static int elsewhere(int cache, int (*of)(void))
{
	char number[16];
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		snprintf(number, sizeof(number), "%d", cache);
		setenv("SONDE_SPANS", number, 1);
		span_cache_load();
		_exit(of());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static int remember(void)
{
	struct span_cache_file f = settled();

	span_cache_put(&f, &(struct span_cache_span){5, 9});
	return 0;
}

static int remember_fresh(void)
{
	struct span_cache_file f;

	if (span_cache_of(path, &f))
		span_cache_put(&f, &(struct span_cache_span){5, 9});
	return 0;
}

static int is_known(void)
{
	struct span_cache_file f = settled();
	struct span_cache_span span = {0, 0};

	return span_cache_get(&f, &span) ? (span.from_ns == 5 && span.to_ns == 9 ? 1 : 2) : 0;
}

static int another_is_known(void)
{
	struct span_cache_file f = settled();
	struct span_cache_span span;

	f.mtime_ns++;
	return span_cache_get(&f, &span);
}

static int has_span(void)
{
	struct span_cache_file f;

	return span_cache_of(path, &f);
}

static off_t bytes_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

TEST(what_a_file_spans_is_remembered_as_long_as_it_is_the_same)
{
	int cache = cache_make();

	assert_int_equal(elsewhere(cache, is_known), 0);
	elsewhere(cache, remember);
	assert_int_equal(bytes_of(cache), RECORD);
	assert_int_equal(elsewhere(cache, is_known), 1);
	assert_int_equal(elsewhere(cache, another_is_known), 0);
	close(cache);
}

TEST(a_file_that_was_just_written_is_not_remembered)
{
	int cache = cache_make();

	text_put(path, "y");
	elsewhere(cache, remember_fresh);
	assert_int_equal(bytes_of(cache), 0);
	close(cache);
}

TEST(a_file_with_a_log_has_no_span_of_its_own)
{
	static const char *const ends[] = {"-wal", "-journal"};
	int cache = cache_make();
	char log[80];

	for (size_t i = 0; i < 2; i++) {
		snprintf(log, sizeof(log), "%s%s", path, ends[i]);
		text_put(log, "");
		assert_int_equal(elsewhere(cache, has_span), 0);
		unlink(log);
		assert_int_equal(elsewhere(cache, has_span), 1);
	}
	close(cache);
	assert_int_equal(elsewhere(-1, has_span), 0); /* nothing to remember by */
}

TEST(a_strange_or_torn_record_is_none)
{
	int cache = cache_make(), other = cache_make();
	char record[2 * RECORD];

	elsewhere(cache, remember);
	assert_int_equal(pread(cache, record, RECORD, 0), RECORD);
	memcpy(record + RECORD, record, RECORD);
	assert_int_equal(write(other, record, RECORD - 1), RECORD - 1);
	assert_int_equal(elsewhere(other, is_known), 0);
	close(other);
	other = cache_make();
	record[48] ^= 1; /* its span */
	assert_int_equal(write(other, record, RECORD), RECORD);
	assert_int_equal(elsewhere(other, is_known), 0);
	assert_int_equal(write(other, record + RECORD, RECORD), RECORD);
	assert_int_equal(elsewhere(other, is_known), 1);
	close(other);
	close(cache);
}

static int file_make(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/spancache-%d", getpid());
	text_put(path, "x");
	return 0;
}

static int file_remove(void **state)
{
	(void)state;
	return unlink(path);
}

const struct test_group test_group = {file_make, file_remove};
