/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jcmd: commands for a Java virtual machine (HotSpot) over its attach socket, and its answers.
 * Pure.
 *
 *   request  "1" NUL "jcmd" NUL line NUL NUL NUL, or "1" NUL "load" NUL "instrument" NUL
 *            "false" NUL line NUL, which loads a Java agent: always three arguments, each of at
 * most 1024 bytes; a machine closes the socket without a word where one is longer answer   a status
 * in decimal, a newline, a text; ends with the connection. The status is 0 even where the command
 * did nothing: the text tells
 *
 * One command for each connection. Answers are bytes of a stranger.
 */
#ifndef SONDE_JAVA_JCMD_H
#define SONDE_JAVA_JCMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JCMD_LINE_MAX    1024u
#define JCMD_ANSWER_MAX  (64u << 10)
#define JCMD_REQUEST_MAX (JCMD_LINE_MAX + 32)
#define JCMD_NAME        "sonde" /* of the recording */

/* The bytes of a request; 0: the line is too long. `out` has JCMD_REQUEST_MAX. */
size_t jcmd_request(const char *line, char *out);
/* The same of the command that loads a Java agent: `line` is JAR=OPTIONS. */
size_t jcmd_load_request(const char *line, char *out);
/* What follows the status, which must be 0; NULL: another status, or no answer. */
const char *jcmd_text(const char *answer);

/* Of VM.version's text the version, "17.0.15" and what follows; NULL: not known. */
const char *jcmd_version(const char *text);
/* The same as a number: 8, 17, 25; 0: not known. */
uint32_t jcmd_major(const char *text);
/* Of JFR.check's text the recordings named sonde; returns how many, *id: of the last. -1: this
 * machine has no flight recorder. */
int jcmd_recordings(const char *text, uint32_t *id);
/* Of JFR.start's text: the recording that began; 0: none did. */
uint32_t jcmd_started(const char *text);
bool jcmd_stopped(const char *text);

/* Machines of this version and newer write an open chunk to disk each second, and take settings in
 * the line itself; older ones write one at a dump, and want a file of settings. */
#define JCMD_LIVE_SINCE 17u

struct jcmd_wish {
	uint32_t major;
	bool no_exceptions;
	const char *settings; /* a file, for an old one */
};
/* The line of JFR.start. 0, -E2BIG. */
int jcmd_start_line(const struct jcmd_wish *w, char *out, size_t size);
/* The file of settings for an old machine, as text; its length. */
size_t jcmd_settings(const struct jcmd_wish *w, char *out, size_t size);

/* How one line of a stranger's answer is shown: at most `size` bytes, printable. */
void jcmd_line(const char *text, char *out, size_t size);

#endif
