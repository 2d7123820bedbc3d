/* SPDX-License-Identifier: Apache-2.0 */
/* What is new in a file, whatever is done to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/logs/follow.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

static char buffer[FOLLOW_BUFFER + FOLLOW_KEPT];
static struct forms forms;

struct got {
	size_t lines;
	uint64_t bytes, pieces;
};

static void take(void *ctx, const struct log_record *r)
{
	struct got *g = ctx;

	g->lines += !r->piece;
	g->pieces += r->piece;
	g->bytes += r->len;
}

static struct got read_all(struct follow *f)
{
	struct got g = {0};

	while (follow_read(f, &forms, buffer, take, &g))
		;
	return g;
}

static int file(void)
{
	char path[] = "/tmp/follow-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	return fd;
}

static void put(int fd, const char *s)
{
	off_t end = lseek(fd, 0, SEEK_END);

	assert_int_equal(pwrite(fd, s, strlen(s), end), strlen(s));
}

TEST(only_complete_lines_are_taken_and_the_rest_at_the_end)
{
	int fd = file();
	struct follow f = {.fd = fd};
	struct got g = {0};

	put(fd, "one\ntwo\nthr");
	assert_int_equal(read_all(&f).lines, 2);
	assert_int_equal(read_all(&f).lines, 0);
	put(fd, "ee\nfour");
	assert_int_equal(read_all(&f).lines, 1);
	follow_rest(&f, &forms, buffer, take, &g);
	assert_int_equal(g.lines, 1);
	assert_int_equal(g.bytes, 4);
	close(fd);
}

TEST(a_truncated_file_is_read_from_its_begin)
{
	int fd = file();
	struct follow f = {.fd = fd};

	put(fd, "first line of it\nsecond line of it\n");
	assert_int_equal(read_all(&f).lines, 2);
	assert_int_equal(ftruncate(fd, 0), 0);
	put(fd, "third\n");
	assert_int_equal(read_all(&f).lines, 1);
	assert_int_equal(f.cuts, 1);
	/* and where it has grown past the place by now */
	assert_int_equal(ftruncate(fd, 0), 0);
	put(fd, "something longer\nthan it was\n");
	assert_int_equal(read_all(&f).lines, 2);
	assert_int_equal(f.cuts, 2);
	close(fd);
}

/* A writer without O_APPEND goes on where it was: what is before is sparse. */
TEST(what_is_sparse_after_a_truncation_is_passed_over)
{
	int fd = file();
	struct follow f = {.fd = fd};
	static char big[300000];

	memset(big, 'x', sizeof(big));
	for (size_t i = 99; i < sizeof(big); i += 100)
		big[i] = '\n';
	assert_int_equal(pwrite(fd, big, sizeof(big), 0), sizeof(big));
	assert_int_equal(read_all(&f).lines, 3000);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "after\n", 6, sizeof(big)), 6);
	assert_int_equal(read_all(&f).lines, 1);
	assert_int_equal(f.cuts, 1);
	close(fd);
}

TEST(a_line_longer_than_the_buffer_is_one)
{
	static char big[2 * FOLLOW_BUFFER + 1000];
	int fd = file();
	struct follow f = {.fd = fd};
	struct got g;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\n';
	assert_int_equal(pwrite(fd, big, sizeof(big), 0), sizeof(big));
	put(fd, "next\n");
	g = read_all(&f);
	assert_int_equal(g.lines, 2);
	assert_int_equal(g.bytes, sizeof(big) - 1 + 4);
	close(fd);
}

TEST(from_the_end_on_only_what_comes_is_read)
{
	int fd = file();
	struct follow f = {.fd = fd};

	put(fd, "old\n");
	follow_to_end(&f);
	put(fd, "new\n");
	assert_int_equal(read_all(&f).lines, 1);
	assert_int_equal(f.cuts, 0);
	close(fd);
}

static const char PACKED[] = "/tmp/follow-packed-XXXXXX";

/* By gzip itself; two members, as `cat a.gz b.gz` makes them. */
TEST(a_compressed_file_is_read_as_what_is_in_it_also_from_a_place_on)
{
	char path[sizeof(PACKED)], command[300];
	struct follow f = {0}, again = {0};
	struct got g, rest = {0};
	int fd;

	memcpy(path, PACKED, sizeof(PACKED));
	fd = mkstemp(path);
	snprintf(command, sizeof(command),
		 "{ seq 1 200000 | gzip -c; printf 'more\nthe end' | gzip -c; } > %s", path);
	if (system(command))
		skip_missing("gzip");
	f.fd = again.fd = fd;
	follow_pack(&f);
	g = read_all(&f);
	assert_int_equal(g.lines, 200001);
	follow_rest(&f, &forms, buffer, take, &rest);
	assert_int_equal(rest.lines, 1);
	assert_int_equal(f.cuts, 0);
	again.offset = 2 * 9 + 90 * 3; /* 1 to 99 */
	follow_pack(&again);
	assert_int_equal(read_all(&again).lines, 200001 - 99);
	assert_int_equal(again.offset, f.offset - strlen("the end"));
	follow_release(&f);
	follow_release(&again);
	close(fd);
	unlink(path);
}

TEST(a_compressed_file_that_is_cut_is_read_so_far_and_that_is_told)
{
	char path[sizeof(PACKED)], command[300];
	struct follow f = {0};
	struct got g, rest = {0};

	memcpy(path, PACKED, sizeof(PACKED));
	f.fd = mkstemp(path);
	snprintf(command, sizeof(command), "seq 1 200000 | gzip -c | head -c 200000 > %s", path);
	if (system(command))
		skip_missing("gzip");
	follow_pack(&f);
	g = read_all(&f);
	follow_rest(&f, &forms, buffer, take, &rest);
	assert_in_range(g.lines + rest.lines, 10000, 199999);
	assert_int_equal(f.cuts, 1);
	follow_release(&f);
	close(f.fd);
	unlink(path);
}
