/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerlog: the last lines of a container's log, as Docker and Podman write it. Pure over the
 * end of a log file.
 *
 * Docker's json-file: one record a line, {"log":"text\n","stream":"stderr","time":"..."}. Podman's
 * k8s-file (CRI's form): "TIME STREAM F TEXT".
 *
 *   1. A line of the program that is longer than 16 KiB is split into records: all but the last
 *      lack the "\n" at the end (CRI: P instead of F). They are joined by stream. A file read from
 *      the middle begins with an incomplete record, which is skipped, and perhaps with the rest of
 *      a long line, which is marked as cut.
 *   2. CONTAINERLOG_LINE bytes of a line are kept, and it is marked as cut; secrets in it are
 *      masked (args.h) before that.
 *   3. At most CONTAINERLOG_LINES lines, and CONTAINERLOG_BYTES bytes, the last ones. Lines later
 *      than `until_ns` belong to the container's next start.
 *   4. The result is plain text: escape sequences are dropped, other control bytes become blanks,
 *      invalid UTF-8 is replaced. Records that cannot be parsed are skipped.
 */
#ifndef SONDE_HOST_CONTAINERLOG_H
#define SONDE_HOST_CONTAINERLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

#define CONTAINERLOG_LINES 20
#define CONTAINERLOG_LINE  500
#define CONTAINERLOG_BYTES 8000
#define CONTAINERLOG_TAIL  (256u << 10)

enum containerlog_form { CONTAINERLOG_DOCKER, CONTAINERLOG_CRI };

/* A line being joined from records, by stream. */
enum { CONTAINERLOG_OUT, CONTAINERLOG_ERR, CONTAINERLOG_STREAMS };
struct containerlog_partial {
	struct strbuf raw;
	bool longer, begun,
		torn; /* longer: than fits before masking; torn: its beginning is missing */
};

struct containerlog_line {
	struct strbuf text;
	bool cut;
};

struct containerlog {
	struct containerlog_line
		line[CONTAINERLOG_LINES]; /* a ring: the oldest is at `n % CONTAINERLOG_LINES` */
	uint64_t n;                       /* all lines so far */
};

void containerlog_release(struct containerlog *l);
/* Add the lines of `text`, in order: older files first. whole: the text starts at the beginning of
 * its file. */
void containerlog_read(struct containerlog *l, enum containerlog_form form, const char *text,
		       size_t len, bool whole, int64_t until_ns);
/* Lines from another source (the journal), piece by piece; `ends`: this piece ends the line.
 * Unfinished lines count as lines at the end. */
struct containerlog_joint {
	struct containerlog *l;
	struct containerlog_partial stream[CONTAINERLOG_STREAMS];
};
void containerlog_piece(struct containerlog_joint *j, int stream, const char *s, size_t len,
			bool ends);
void containerlog_end(struct containerlog_joint *j);
/* The lines that were kept, the oldest first. */
void containerlog_each(const struct containerlog *l,
		       void (*each)(void *ctx, const char *line, bool cut), void *ctx);

#endif
