/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/log_lines.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/clock.h"

static const char *const names[] = {"error", "warn", "info", "debug"};
static const int priorities[] = {3, 4, 6, 7};

static bool journal;
static char *kept[LOG_LINES_KEPT];
static size_t said;
static size_t file_most, file_bytes; /* 0: stderr is not a file of ours */

void log_lines_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	journal = stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		  fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
	file_most = 0;
}

void log_lines_init_file(size_t most)
{
	struct stat st;

	log_lines_init();
	file_bytes = fstat(STDERR_FILENO, &st) == 0 ? (size_t)st.st_size : 0;
	file_most = most;
}

void log_line_format(struct strbuf *out, long long utc_ns, enum log_level level, const char *from,
		     const char *msg)
{
	time_t s = utc_ns / NSEC_PER_SEC;
	char stamp[32] = "?";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	strbuf_addf(out, "ts=%s.%03lldZ level=%s from=%s msg=\"", stamp, utc_ns / 1000000 % 1000,
		    names[level], from);
	while (*msg) {
		size_t n = strcspn(msg, "\"\\");

		strbuf_addshown(out, msg, n);
		msg += n;
		if (*msg)
			strbuf_addf(out, "\\%c", *msg++);
	}
	strbuf_addch(out, '"');
}

static void say(const struct strbuf *text)
{
	if (write(STDERR_FILENO, text->buf, text->len) < 0) {
		/* stderr is gone; the line is still kept for `sonde status --log` */
	}
	file_bytes += text->len;
}

/* `sonde status --log` shows only these, too. */
static void begin_file_anew(void)
{
	struct strbuf all cleanup_strbuf = STRBUF_INIT;

	if (ftruncate(STDERR_FILENO, 0) < 0)
		return;
	file_bytes = 0;
	for (size_t i = 0; log_line_kept(i); i++)
		strbuf_addf(&all, "%s\n", log_line_kept(i));
	if (all.len)
		say(&all);
}

void log_line(enum log_level level, const char *from, const char *fmt, ...)
{
	struct strbuf line = STRBUF_INIT, plain cleanup_strbuf = STRBUF_INIT;
	char msg[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	log_line_format(&line, clock_utc_ns(), level, from, msg);
	if (journal) {
		strbuf_addf(&plain, "<%d>%s: ", priorities[level], from);
		strbuf_addshown(&plain, msg, strlen(msg));
	} else {
		strbuf_addstr(&plain, strbuf_str(&line));
	}
	strbuf_addch(&plain, '\n');
	if (file_most && file_bytes > file_most)
		begin_file_anew();
	say(&plain);
	free(kept[said % LOG_LINES_KEPT]);
	kept[said++ % LOG_LINES_KEPT] = strbuf_take(&line);
}

const char *log_line_kept(size_t i)
{
	size_t n = said < LOG_LINES_KEPT ? said : LOG_LINES_KEPT;

	return i < n ? kept[(said - n + i) % LOG_LINES_KEPT] : NULL;
}
