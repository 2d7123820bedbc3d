/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_lines: sonded's log, which includes its children's stderr. On stderr: under the journal lines
 * with <N> priorities, else logfmt (ts=... level=... from=... msg="..."). The last LOG_LINES_KEPT
 * are kept for `sonde status --log`.
 */
#ifndef SONDE_SUPERVISOR_LOG_LINES_H
#define SONDE_SUPERVISOR_LOG_LINES_H

#include <stddef.h>

#include "schema/base/log.h"
#include "schema/base/strbuf.h"

#define LOG_LINES_KEPT 500

/* Finds out where stderr goes: to the journal if it is the stream that $JOURNAL_STREAM names
 * (device:inode), a variable that programs started by the journal's services inherit. */
void log_lines_init(void);
/* The same where stderr is sonded's own file, opened for appending: past `most` bytes it is
 * truncated, and the kept lines are written again. */
void log_lines_init_file(size_t most);
/* `from`: "sonded", "sonde-cpu", ... Control bytes in the message are made visible. */
void log_line(enum log_level level, const char *from, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The i-th of the kept lines, the oldest first, in logfmt; NULL past the last. */
const char *log_line_kept(size_t i);
/* Adds one line in logfmt, without newline. Pure. */
void log_line_format(struct strbuf *out, long long utc_ns, enum log_level level, const char *from,
		     const char *msg);

#endif
