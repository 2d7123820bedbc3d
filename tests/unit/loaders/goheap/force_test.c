/* SPDX-License-Identifier: Apache-2.0 */
/* force: changes a word in a child's memory and restores it, under the conditions of its header. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/goheap/force.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

static uint64_t word;

struct world {
	char dir[64];
	pid_t child;
	uint64_t start_ns;
	int dirfd;
};

static uint64_t childs_word(const struct world *w)
{
	uint64_t v = ~0ull;
	struct iovec here = {&v, sizeof(v)}, there = {&word, sizeof(word)};

	assert_int_equal(process_vm_readv(w->child, &here, 1, &there, 1, 0), sizeof(v));
	return v;
}

static void childs_word_clear(const struct world *w)
{
	uint64_t zero = 0;
	struct iovec here = {&zero, sizeof(zero)}, there = {&word, sizeof(word)};

	assert_int_equal(process_vm_writev(w->child, &here, 1, &there, 1, 0), sizeof(zero));
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct proc_stat st;
	struct err e;

	assert_non_null(w);
	strcpy(w->dir, "/tmp/sonde-force-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	w->child = fork();
	if (!w->child)
		for (;;)
			pause();
	assert_int_equal(proc_read_stat((uint32_t)w->child, &st), 0);
	w->start_ns = proc_ticks_ns(st.start_ticks);
	assert_int_equal(force_dir_open(w->dir, &w->dirfd, &e), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	kill(w->child, SIGKILL);
	waitpid(w->child, NULL, 0);
	close(w->dirfd);
	assert_int_equal(rmdir(w->dir), 0); /* no record is left */
	free(w);
	return 0;
}

static void record_path(const struct world *w, char *out, size_t size)
{
	struct proc_stat st;

	assert_int_equal(proc_read_stat((uint32_t)w->child, &st), 0);
	snprintf(out, size, "%s/%d-%llu", w->dir, w->child, (unsigned long long)st.start_ticks);
}

static bool record_is_there(const struct world *w)
{
	char path[160];

	record_path(w, path, sizeof(path));
	return !access(path, F_OK);
}

static struct force *forced(const struct world *w)
{
	struct force *f;

	assert_int_equal(force_open((uint32_t)w->child, w->start_ns, &f), 0);
	assert_int_equal(force_write(f, w->dirfd, (uint64_t)(uintptr_t)&word, 4096), 0);
	assert_int_equal(childs_word(w), 4096);
	assert_true(record_is_there(w));
	return f;
}

/* The state that a kill leaves: a process changes the word and dies. */
static void forced_and_killed(const struct world *w)
{
	pid_t other = fork();
	int status;

	if (!other) {
		struct force *f;

		if (!force_open((uint32_t)w->child, w->start_ns, &f) &&
		    !force_write(f, w->dirfd, (uint64_t)(uintptr_t)&word, 4096))
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	waitpid(other, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(childs_word(w), 4096);
}

/* The record with one of its numbers, from 0, replaced. */
static void record_edit(const struct world *w, int which, const char *value)
{
	char path[160], text[256] = "", out[320] = "sonde-goheap 1", *at = text;
	FILE *f;

	record_path(w, path, sizeof(path));
	f = fopen(path, "r+");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	strtok_r(at, " \n", &at);
	strtok_r(NULL, " \n", &at);
	for (int i = 0; i < 7; i++) {
		const char *v = strtok_r(NULL, " \n", &at);

		strcat(strcat(out, " "), i == which ? value : v);
	}
	rewind(f);
	assert_int_equal(ftruncate(fileno(f), 0), 0);
	fprintf(f, "%s\n", out);
	fclose(f);
}

TEST_WITH(what_was_written_is_put_back_and_off_the_record, setup, teardown)
{
	struct world *w = *state;

	force_close(forced(w));
	assert_int_equal(childs_word(w), 0);
	assert_false(record_is_there(w));
}

TEST_WITH(what_has_an_owner_is_not_put_back_by_another, setup, teardown)
{
	struct world *w = *state;
	struct force *f = forced(w), *second;

	force_put_back_left(w->dir);
	assert_int_equal(childs_word(w), 4096);
	assert_int_equal(force_open((uint32_t)w->child, w->start_ns, &second), 0);
	assert_int_equal(force_write(second, w->dirfd, (uint64_t)(uintptr_t)&word, 8192), -EBUSY);
	force_close(second);
	assert_int_equal(childs_word(w), 4096);
	force_close(f);
	assert_int_equal(childs_word(w), 0);
}

TEST_WITH(what_a_killed_one_left_is_put_back_at_the_next_start, setup, teardown)
{
	struct world *w = *state;

	forced_and_killed(w);
	force_put_back_left(w->dir);
	assert_int_equal(childs_word(w), 0);
	assert_false(record_is_there(w));
}

TEST_WITH(another_process_is_not_written_to, setup, teardown)
{
	static const int fields[] = {1, 2, 3, 4}; /* start, device, inode, auxiliary vector */
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		forced_and_killed(w);
		record_edit(w, fields[i], "7");
		force_put_back_left(w->dir);
		assert_int_equal(childs_word(w), 4096);
		assert_false(record_is_there(w)); /* it says nothing about anybody */
		childs_word_clear(w);
	}
}

TEST_WITH(what_stands_there_now_is_left_alone, setup, teardown)
{
	struct world *w = *state;

	forced_and_killed(w);
	record_edit(w, 6, "4097"); /* not what was written */
	force_put_back_left(w->dir);
	assert_int_equal(childs_word(w), 4096);
	assert_false(record_is_there(w));
}

TEST_WITH(a_word_that_is_not_zero_is_not_written, setup, teardown)
{
	struct world *w = *state;
	struct force *f = forced(w), *second;
	char path[160];

	record_path(w, path, sizeof(path));
	assert_int_equal(unlink(path), 0); /* as if no other had it */
	assert_int_equal(force_open((uint32_t)w->child, w->start_ns, &second), 0);
	assert_int_equal(force_write(second, w->dirfd, (uint64_t)(uintptr_t)&word, 8192),
			 -EALREADY);
	assert_int_equal(childs_word(w), 4096);
	assert_false(record_is_there(w));
	force_close(second);
	force_close(f);
}

TEST_WITH(of_a_process_of_another_start_nothing_is_opened, setup, teardown)
{
	struct world *w = *state;
	struct force *f;

	assert_int_equal(force_open((uint32_t)w->child, w->start_ns + 1000000000ull, &f), -ESRCH);
}

TEST_WITH(a_process_that_has_ended_leaves_no_record, setup, teardown)
{
	struct world *w = *state;
	struct force *f = forced(w);
	char path[160];

	record_path(w, path, sizeof(path));
	kill(w->child, SIGKILL);
	waitpid(w->child, NULL, 0);
	force_close(f);
	assert_int_not_equal(access(path, F_OK), 0);
}

TEST_WITH(a_record_that_others_may_write_is_not_believed, setup, teardown)
{
	struct world *w = *state;
	char path[160];

	forced_and_killed(w);
	record_path(w, path, sizeof(path));
	assert_int_equal(chmod(path, 0666), 0);
	force_put_back_left(w->dir);
	assert_int_equal(childs_word(w), 4096);
	assert_int_equal(unlink(path), 0);
}

TEST(a_record_is_one_line_of_numbers)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", "sonde-goheap 1", "sonde-goheap 2 1 2 3 4 5 8 7\n", "sonde-goheap 1 0 2 3 4 5 8 7\n",
		"sonde-goheap 1 1 2 3 4 5 8 7", "sonde-goheap 1 1 2 3 4 5 8 7\n\n", "sonde-goheap 1 1 2 3 4 5 9 7\n",
		"sonde-goheap 1 1 2 3 4 5 8 0\n", "sonde-goheap 1 1 -2 3 4 5 8 7\n", "sonde-goheap 1 1  2 3 4 5 8 7\n",
		"sonde-goheap 1 1 99999999999999999999 3 4 5 8 7\n", "sonde-goheap 1 4294967296 2 3 4 5 8 7\n",
	};
	/* clang-format on */
	struct force_record r;

	assert_int_equal(force_record_parse("sonde-goheap 1 1 2 3 4 5 8 7\n", 29, &r), 0);
	assert_int_equal(r.pid, 1);
	assert_int_equal(r.mark, 5);
	assert_int_equal(r.addr, 8);
	assert_int_equal(r.rate, 7);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(force_record_parse(bad[i], strlen(bad[i]), &r), -EBADMSG);
}
