/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms: how container engines write the lines of a program into a file. Pure over bytes.
 *
 *   1. LOG_PLAIN: the lines themselves.
 *   2. LOG_DOCKER: json-file: {"log":"text\n","stream":"stdout","time":"RFC 3339"}, one a line. A
 *      piece of a longer line (16 KiB) lacks the "\n" at the end of its text.
 *   3. LOG_CRI: of Kubernetes and Podman: "TIME stdout|stderr P|F text"; P: a piece.
 *   4. LOG_LOCAL: Docker's driver `local`: size (4 bytes, big-endian), a protobuf message, the size
 *      again. Of the message: 1 stream, 2 time in ns, 3 text, 4 is it of a longer line, 5 its place
 *      there (1: it is the last).
 *   5. LOG_JOURNAL is no form of lines (loaders/lib/host/journal).
 */
#ifndef SONDE_LOGS_FORMS_H
#define SONDE_LOGS_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_form { LOG_PLAIN, LOG_DOCKER, LOG_CRI, LOG_LOCAL, LOG_JOURNAL, LOG_FORMS };

/* One record: a line of the program, or a piece of one. */
struct log_record {
	const char *text; /* in the input, or in the reader's buffer */
	size_t len;
	int64_t utc_ns; /* 0: the form has no time */
	bool piece;     /* the line goes on in the next record of this stream */
	bool err;       /* stderr */
};

#define FORMS_TEXT 16384
/* What reads the records of one file after the other. */
struct forms {
	char minute[16]; /* the last one that was read, and when that began */
	int64_t minute_ns;
	char text[FORMS_TEXT]; /* more of a record is not kept */
};

/* A line of the file without its end. False: it is no record of this form (LOG_PLAIN: all are). */
bool forms_line(struct forms *f, enum log_form form, const char *s, size_t len,
		struct log_record *out);
/* LOG_LOCAL: how many bytes the first record takes; 0: it is not complete; -1: the file is damaged,
 * or it has another form. */
long forms_local(const uint8_t *p, size_t len, struct log_record *out);
/* RFC 3339; 0: not such a time. */
int64_t forms_time(struct forms *f, const char *s, size_t len);

#endif
