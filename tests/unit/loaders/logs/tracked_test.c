/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are open, round by round, whatever they are renamed to. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/logs/tracked.h"
#include "schema/base/clock.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

static unsigned opens, closes;

/* Instead of the reader's process: what it is asked. */
bool reader_ask(const struct reader *r, const struct wire_ask *q, int fd)
{
	(void)r;
	(void)fd;
	opens += q->what == WIRE_OPEN;
	closes += q->what == WIRE_CLOSE;
	return true;
}

struct tried {
	struct tracked tracked;
	struct places places;
	char folder[32], files[40];
	int64_t now_ns;
};

static int tried_begin(void **state)
{
	struct tried *t = calloc(1, sizeof(*t));

	snprintf(t->folder, sizeof(t->folder), "/tmp/tracked-XXXXXX");
	assert_non_null(mkdtemp(t->folder));
	opens = closes = 0;
	t->now_ns = NSEC_PER_SEC;
	*state = t;
	return 0;
}

static int tried_end(void **state)
{
	struct tried *t = *state;
	char command[64];

	tracked_release(&t->tracked);
	places_release(&t->places);
	snprintf(command, sizeof(command), "rm -r %s", t->folder);
	assert_int_equal(system(command), 0);
	free(t);
	return 0;
}

static const char *in(const struct tried *t, const char *name)
{
	static char path[2][300];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "%s/%s", t->folder, name);
	return path[i];
}

static void file_make(const struct tried *t, const char *name)
{
	int fd = open(in(t, name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0 && write(fd, "a line\n", 7) == 7);
	close(fd);
}

static bool wanted(void *ctx, struct tracked_source *s)
{
	(void)ctx;
	(void)s;
	return true;
}

/* A round 3 s after the one before, in which these were found, in this order. */
static void look(struct tried *t, const char *first, const char *second)
{
	const char *const names[] = {first, second};
	struct place x = {.kind = "file", .form = LOG_PLAIN};

	t->now_ns += 3 * NSEC_PER_SEC;
	tracked_begin(&t->tracked);
	for (int i = 0; i < 2; i++) {
		x.path = names[i] ? in(t, names[i]) : NULL;
		if (!x.path)
			continue;
		snprintf(x.name, sizeof(x.name), "%s", x.path);
		tracked_found(&t->tracked, &x, t->now_ns, wanted, NULL);
	}
	tracked_end(&t->tracked, t->now_ns);
}

/* Whichever of the two is found first. */
static void renamed_to_a_log(struct tried *t, bool new_first)
{
	file_make(t, "a.log");
	look(t, "a.log", NULL);
	assert_int_equal(opens, 1);
	rename(in(t, "a.log"), in(t, "a-1.log"));
	look(t, "a-1.log", NULL);
	file_make(t, "a.log");
	for (int i = 0; i < 50; i++)
		look(t, new_first ? "a.log" : "a-1.log", new_first ? "a-1.log" : "a.log");
	assert_int_equal(opens, 2);
	assert_int_equal(closes, 0);
	assert_int_equal(HASH_COUNT(t->tracked.sources), 1);
}

TEST_WITH(a_file_that_is_renamed_to_a_log_is_opened_once, tried_begin, tried_end)
{
	renamed_to_a_log(*state, true);
}

TEST_WITH(and_whichever_is_found_first, tried_begin, tried_end)
{
	renamed_to_a_log(*state, false);
}

TEST_WITH(both_are_seen_in_one_look, tried_begin, tried_end)
{
	struct tried *t = *state;

	file_make(t, "a.log");
	look(t, "a.log", NULL);
	rename(in(t, "a.log"), in(t, "a-1.log"));
	file_make(t, "a.log");
	for (int i = 0; i < 50; i++)
		look(t, "a.log", "a-1.log");
	assert_int_equal(opens, 2);
	assert_int_equal(closes, 0);
}

TEST_WITH(a_file_that_is_no_log_any_more_is_closed_after_a_while, tried_begin, tried_end)
{
	struct tried *t = *state;

	file_make(t, "a.log");
	look(t, "a.log", NULL);
	rename(in(t, "a.log"), in(t, "a.old"));
	look(t, NULL, NULL);
	assert_int_equal(closes, 0);
	look(t, NULL, NULL);
	look(t, NULL, NULL);
	assert_int_equal(closes, 1);
	assert_int_equal(HASH_COUNT(t->tracked.files), 0);
}

TEST_WITH(a_strangers_link_is_followed_to_his_own_files_only, tried_begin, tried_end)
{
	struct tried *t = *state;

	if (geteuid())
		skip_missing("root, to make another user's link");
	file_make(t, "secret");
	file_make(t, "his");
	assert_int_equal(chown(in(t, "his"), 1234, 1234), 0);
	for (int own = 0; own < 2; own++) {
		const char *name = own ? "own.log" : "not.log";

		assert_int_equal(symlink(in(t, own ? "his" : "secret"), in(t, name)), 0);
		assert_int_equal(lchown(in(t, name), 1234, 1234), 0);
		look(t, name, NULL);
		assert_int_equal(opens, own);
	}
}

static void count(void *ctx, const struct place *x)
{
	unsigned *seen = ctx;
	const char *name = strrchr(x->path, '/');

	if (!strcmp(x->kind, "file"))
		*seen = *seen * 10 + (unsigned)strlen(name + 1);
}

/* Names of different lengths, so that a number says which were found. */
TEST_WITH(what_was_rotated_is_left_out_while_its_log_is_there, tried_begin, tried_end)
{
	static const char *const ALL[] = {"a.log", "a.log.1", "a.log-20261129", "a.log-1",
					  "b.log.22"};
	struct tried *t = *state;
	unsigned seen = 0;

	for (size_t i = 0; i < sizeof(ALL) / sizeof(ALL[0]); i++)
		file_make(t, ALL[i]);
	snprintf(t->files, sizeof(t->files), "%s/*", t->folder);
	places_init(&t->places, t->files);
	places_look(&t->places, t->now_ns, count, &seen);
	assert_true(seen / 100 > 0 && seen / 1000 == 0); /* three of five */
	seen = seen / 100 + seen / 10 % 10 + seen % 10;
	assert_int_equal(seen, strlen("a.log") + strlen("a.log-1") + strlen("b.log.22"));
}

TEST_WITH(a_number_that_the_reader_gives_to_another_source_of_a_journal_is_that_ones, tried_begin,
	  tried_end)
{
	struct tried *t = *state;
	struct tracked_source *s = tracked_own(&t->tracked, WIRE_OWN + 3, "cron.service", "");

	tracked_pattern(s, 0, "a pattern", "");
	assert_ptr_equal(tracked_own(&t->tracked, WIRE_OWN + 3, "cron.service", ""), s);
	assert_int_equal(s->n_patterns, 1);
	s = tracked_own(&t->tracked, WIRE_OWN + 3, "nginx.service", "");
	assert_string_equal(s->name, "nginx.service");
	assert_int_equal(s->n_patterns, 0);
	s = tracked_own(&t->tracked, WIRE_OWN + 3, "", "0123abcd");
	assert_string_equal(s->container, "0123abcd");
	assert_ptr_equal(tracked_own(&t->tracked, WIRE_OWN + 3, "", "0123abcd"), s);
}
