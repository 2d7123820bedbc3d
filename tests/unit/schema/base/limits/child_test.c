/* SPDX-License-Identifier: Apache-2.0 */
/* child: one query in a child process, its limits, and that nothing is left afterwards. */
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "schema/base/limits/child.h"
#include "tests/unit/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define MEMORY (1ull << 50) /* its shadow counts as memory */
#else
#define MEMORY (256ull << 20)
#endif

static const struct child_limits LIMITS = {
	.seconds = 20, .memory_bytes = MEMORY, .answer_bytes = 1 << 20};

static struct child_answer shell(const char *script, const struct child_limits *limits, int stop_fd,
				 int client_fd)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	struct child_answer a;
	struct err e = {0};

	assert_int_equal(child_ask(argv, limits, stop_fd, client_fd, &a, &e), 0);
	assert_true(a.out_fd >= 0);
	return a;
}

TEST(what_it_prints_says_and_exits_with_is_told)
{
	struct child_answer a = shell("printf 'a\\000b'; echo why >&2; exit 4", &LIMITS, -1, -1);
	char text[8];

	assert_int_equal(a.end, CHILD_EXITED);
	assert_int_equal(a.exit, 4);
	assert_int_equal(a.out_bytes, 3);
	assert_int_equal(pread(a.out_fd, text, sizeof(text), 0), 3);
	assert_memory_equal(text, "a\0b", 3);
	assert_string_equal(a.said, "why\n");
	close(a.out_fd);
}

TEST(it_has_nothing_open_but_its_streams_and_reads_nothing)
{
	struct child_answer a = shell("cat; ls /proc/self/fd | wc -l", &LIMITS, -1, -1);
	char text[8] = "";

	assert_true(pread(a.out_fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "4\n"); /* the fourth is the folder that ls reads */
	close(a.out_fd);
}

TEST(it_reads_what_it_is_given_from_its_beginning)
{
	struct child_limits limits = LIMITS;
	struct child_answer a;
	char text[8] = "";

	limits.in_fd = memfd_create("in", MFD_CLOEXEC);
	assert_int_equal(write(limits.in_fd, "abc", 3), 3);
	a = shell("cat; ls /proc/self/fd | wc -l", &limits, -1, -1);
	assert_true(pread(a.out_fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "abc4\n");
	close(a.out_fd);
	close(limits.in_fd);
}

TEST(one_that_takes_too_long_is_ended_with_what_it_started)
{
	const struct child_limits one = {
		.seconds = 1, .memory_bytes = MEMORY, .answer_bytes = 1 << 20};
	struct child_answer a = shell("sleep 1000 & echo $!; wait", &one, -1, -1);
	char text[16] = "";
	int pid = 0;

	assert_int_equal(a.end, CHILD_OVER_TIME);
	assert_true(pread(a.out_fd, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(sscanf(text, "%d", &pid), 1);
	for (int i = 0; i < 2000 && !kill(pid, 0); i++) { /* its new parent takes it away */
		char path[64], state_of[64] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%*d %*s %60s", state_of) != 1 || *state_of == 'Z')
			i = 2000;
		if (f)
			fclose(f);
		usleep(1000);
		assert_true(i != 1999);
	}
	close(a.out_fd);
}

TEST(an_answer_without_end_is_cut_off)
{
	struct child_answer a = shell("exec yes", &LIMITS, -1, -1);

	assert_int_equal(a.end, CHILD_KILLED);
	assert_int_equal(a.signal, SIGXFSZ);
	assert_true(a.out_bytes <= LIMITS.answer_bytes);
	close(a.out_fd);
}

TEST(whoever_hangs_up_or_ends_ends_it)
{
	int pair[2], stop = eventfd(1, EFD_CLOEXEC);
	struct child_answer a;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	close(pair[1]);
	a = shell("exec sleep 1000", &LIMITS, -1, pair[0]);
	assert_int_equal(a.end, CHILD_LEFT);
	close(a.out_fd);
	close(pair[0]);
	a = shell("exec sleep 1000", &LIMITS, stop, -1);
	assert_int_equal(a.end, CHILD_STOPPED);
	close(a.out_fd);
	close(stop);
}

TEST(one_that_a_signal_ended_is_told)
{
	struct child_answer a = shell("kill -SEGV $$", &LIMITS, -1, -1);

	assert_int_equal(a.end, CHILD_KILLED);
	assert_int_equal(a.signal, SIGSEGV);
	close(a.out_fd);
}

TEST(one_that_cannot_be_started_is_said)
{
	const char *const argv[] = {"/nonexistent/sonde", NULL};
	struct child_answer a;
	struct err e = {0};

	assert_true(child_ask(argv, &LIMITS, -1, -1, &a, &e) < 0);
	assert_non_null(strstr(e.what, "/nonexistent/sonde"));
	assert_int_equal(a.out_fd, -1);
}
