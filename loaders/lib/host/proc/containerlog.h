/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerlog: the last lines of a container's log, as Docker and Podman write it. Pure over the
 * end of a log file.
 *
 * Docker's json-file: records of a line each, {"log":"text\n","stream":"stderr","time":"..."}.
 * Podman's k8s-file (CRI's form): "TIME STREAM F TEXT".
 *
 *   1. A program's line that is longer than 16 KiB is several records: all but its last have no
 *      "\n" at their end (CRI: P instead of F). They are put together by stream. A file that is
 *      read from the middle begins with a record that is not whole, which is passed by, and perhaps
 *      with the rest of a long line, which is told as cut.
 *   2. Of a line CONTAINERLOG_LINE bytes are kept, and it is said that it was cut; secrets in it
 *      are masked (args.h) before that.
 *   3. At most CONTAINERLOG_LINES lines, and CONTAINERLOG_BYTES bytes, the last ones. Lines later
 *      than `until_ns` are of the container's next life.
 *   4. What is no text stays no text: escape sequences are left out, other control bytes are
 *      blanks, wrong UTF-8 is replaced. A record that is not understood is passed by.
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

/* A line that is put together of pieces, of each stream. */
enum { CONTAINERLOG_OUT, CONTAINERLOG_ERR, CONTAINERLOG_STREAMS };
struct containerlog_partial {
	struct strbuf raw;
	bool longer, begun, torn; /* longer: than what is kept before it is masked; torn: its
				     beginning is not here */
};

struct containerlog_line {
	struct strbuf text;
	bool cut;
};

struct containerlog {
	struct containerlog_line
		line[CONTAINERLOG_LINES]; /* a ring: the oldest is at `n % CONTAINERLOG_LINES` */
	uint64_t n;                       /* all lines that were met */
};

void containerlog_release(struct containerlog *l);
/* Lines of `text`, in order: of an older file first. whole: it is the file from its beginning. */
void containerlog_read(struct containerlog *l, enum containerlog_form form, const char *text,
		       size_t len, bool whole, int64_t until_ns);
/* Lines that come from elsewhere (the journal), piece by piece; `ends`: with this one the line is
 * over. In the end the ones that are not are lines, too. */
struct containerlog_joint {
	struct containerlog *l;
	struct containerlog_partial stream[CONTAINERLOG_STREAMS];
};
void containerlog_piece(struct containerlog_joint *j, int stream, const char *s, size_t len,
			bool ends);
void containerlog_end(struct containerlog_joint *j);
/* The lines that there are, the oldest first. */
void containerlog_each(const struct containerlog *l,
		       void (*each)(void *ctx, const char *line, bool cut), void *ctx);

#endif
