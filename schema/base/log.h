/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: messages on stderr, one line for each event: "sonde-maps: cannot open /proc/812/maps:
 * permission denied". Data never goes here; losses are counted in the store, not only logged.
 */
#ifndef SONDE_BASE_LOG_H
#define SONDE_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* The name before the colon (borrowed, kept) and the least severe level still printed (default:
 * WARN). */
void log_init(const char *prog, enum log_level max);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
