/* SPDX-License-Identifier: Apache-2.0 */
/* log_lines: the form of a line by where it goes, and a file that does not grow without end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/control/log_lines.h"
#include "tests/unit/test.h"

#define MOST (256u << 10)

static int before; /* the real stderr, -1: it is in its place */
static char text[MOST + 4096];

static void to_file(void)
{
	FILE *f = tmpfile();

	before = dup(STDERR_FILENO);
	dup2(fileno(f), STDERR_FILENO);
	fcntl(STDERR_FILENO, F_SETFL, O_APPEND);
	fclose(f);
}

static const char *what_the_file_says(void)
{
	ssize_t n = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static int to_terminal(void **state)
{
	(void)state;
	dup2(before, STDERR_FILENO);
	close(before);
	unsetenv("JOURNAL_STREAM");
	return 0;
}

static void set_stream(unsigned long long ino_more)
{
	char stream[64];
	struct stat st;

	fstat(STDERR_FILENO, &st);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + ino_more);
	setenv("JOURNAL_STREAM", stream, 1);
}

TEST_WITH(the_journal_gets_priorities, NULL, to_terminal)
{
	to_file();
	set_stream(0);
	log_lines_init();
	log_line(LOG_LEVEL_ERROR, "sonded", "bad");
	log_line(LOG_LEVEL_WARN, "sonde-cpu", "odd");
	log_line(LOG_LEVEL_INFO, "sonded", "well");
	log_line(LOG_LEVEL_DEBUG, "sonded", "so");
	assert_string_equal(what_the_file_says(),
			    "<3>sonded: bad\n<4>sonde-cpu: odd\n<6>sonded: well\n<7>sonded: so\n");
}

TEST_WITH(a_file_gets_logfmt_whatever_stream_was_inherited, NULL, to_terminal)
{
	to_file();
	set_stream(1);
	log_lines_init();
	log_line(LOG_LEVEL_INFO, "sonded", "hello");
	assert_true(strncmp(what_the_file_says(), "ts=", 3) == 0);
	assert_non_null(strstr(text, "level=info from=sonded msg=\"hello\"\n"));
}

TEST_WITH(a_file_of_ours_is_begun_anew_with_the_last_lines, NULL, to_terminal)
{
	struct stat st;

	to_file();
	log_lines_init_file(MOST);
	for (int i = 0; i < 10000; i++) {
		log_line(LOG_LEVEL_INFO, "sonded", "this is line %d", i);
		fstat(STDERR_FILENO, &st);
		assert_true(st.st_size < (off_t)MOST + 1000);
	}
	assert_non_null(strstr(what_the_file_says(), "line 9999\""));
	/* the last 500, however recently the file was restarted */
	assert_non_null(strstr(text, "line 9500\""));
	assert_null(strstr(text, "line 5000\""));
	assert_int_equal(strncmp(text, "ts=", 3), 0);
}
