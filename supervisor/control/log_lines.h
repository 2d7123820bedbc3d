/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk: sonded's log, its children's words included. On stderr: under the journal lines with <N>
 * priorities, else logfmt (ts=... level=... from=... msg="..."). The last TALK_LINES are kept for
 * `sonde logs`.
 */
#ifndef SONDE_SUPERVISOR_TALK_H
#define SONDE_SUPERVISOR_TALK_H

#include <stddef.h>

#include "schema/base/log.h"
#include "schema/base/strbuf.h"

#define TALK_LINES 500

/* Where stderr leads now: to the journal if it is the stream that $JOURNAL_STREAM names
 * (device:inode), which programs that the journal's did start inherit as well. */
void talk_init(void);
/* The same, and stderr is a file of ours, opened to append: past `most` bytes it is begun anew,
 * with the kept lines. */
void talk_init_file(size_t most);
/* `from`: "sonded", "sonde-cpu", ... Control bytes in the message are made visible. */
void talk(enum log_level level, const char *from, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The i-th of the kept lines, the oldest first, in logfmt; NULL past the last. */
const char *talk_line(size_t i);
/* Adds one line in logfmt, without newline. Pure. */
void talk_format(struct strbuf *out, long long utc_ns, enum log_level level, const char *from,
		 const char *msg);

#endif
