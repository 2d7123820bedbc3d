/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level: how bad a line says that it is. Pure and linear; looks at its beginning only.
 *
 *   1. JSON: level, lvl, severity, levelname, log.level, @l, s (MongoDB): a word, or the numbers of
 *      pino and bunyan (50: error).
 *   2. level=error, severity=..., of logfmt.
 *   3. A word of a level in the first words: in capitals (ERROR, WRN), in brackets ([error]),
 *      before a colon (error:, TypeError:), or alone at the begin. A word in prose does not count:
 * "no error" says nothing.
 *   4. The letter of klog (E1129 18:00:00), the sign of Redis (#), <3> of syslog, "panic:",
 *      "Traceback (most recent call last):".
 */
#ifndef SONDE_LOGS_LEVEL_H
#define SONDE_LOGS_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

enum line_level {
	LEVEL_UNKNOWN,
	LEVEL_DEBUG,
	LEVEL_INFO,
	LEVEL_WARNING,
	LEVEL_ERROR,
	LEVEL_FATAL,
	LEVELS
};

#define LEVEL_LOOKED_AT 255 /* bytes of a line */

extern const char *const LEVEL_NAMES[LEVELS]; /* "unknown", "debug", ... */

enum line_level level_of(const char *s, size_t len);
/* A word alone: "WARN", "err", "40". */
enum line_level level_word(const char *s, size_t len);
/* syslog's: 0 (emergency) to 7 (debug). */
enum line_level level_priority(int priority);

#endif
