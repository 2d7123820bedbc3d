/* SPDX-License-Identifier: Apache-2.0 */
/* logs: what family logs stores (loaders/logs): the columns of its tables, in the tables' order. */
#ifndef SONDE_FACTS_LOGS_H
#define SONDE_FACTS_LOGS_H

#include "schema/facts/fact.h"

#define LOG_COLUMNS(X)                                                                                                   \
	X(LOG_SOURCE, "source", TEXT, KEY, "",                                                                           \
	  "text.id: who wrote: the container's name, the unit, NAMESPACE/POD/CONTAINER, a path")                         \
	X(LOG_CONTAINER, "container", CONTAINER, KEY, "",                                                                \
	  "container.id; 0: it is in none, or no process of it was seen")                                                \
	X(LOG_LEVEL, "level", TEXT, KEY, "",                                                                             \
	  "text.id: fatal, error, warning, info, debug, unknown: as the line says it")                                   \
	X(LOG_KIND, "kind", TEXT, GAUGE, "",                                                                             \
	  "text.id: where the lines were read: docker, podman, cri, journal, file")                                      \
	X(LOG_LINES, "lines", NUMBER, COUNTER, "", "lines")                                                              \
	X(LOG_MESSAGES, "messages", NUMBER, COUNTER, "",                                                                 \
	  "messages: a line with those that continue it, as the lines of a trace do")                                    \
	X(LOG_BYTES, "bytes", NUMBER, COUNTER, "bytes", "their text, without line ends")                                 \
	X(LOG_CUTS, "cuts", NUMBER, COUNTER, "",                                                                         \
	  "how often its file was truncated, or rotated too fast to follow: lines from just before may be missing here") \
	X(LOG_BURST, "burst", NUMBER, GAUGE, "",                                                                         \
	  "1: it wrote far more than usual, and so its messages of all levels have patterns")

#define LOG_PATTERN_COLUMNS(X)                                                                    \
	X(LOG_PATTERN_SOURCE, "source", TEXT, KEY, "", "text.id: as in log_row")                  \
	X(LOG_PATTERN_CONTAINER, "container", CONTAINER, KEY, "", "container.id: as in log_row")  \
	X(LOG_PATTERN_LEVEL, "level", TEXT, KEY, "", "text.id: as in log_row")                    \
	X(LOG_PATTERN_TEXT, "pattern", TEXT, KEY, "",                                             \
	  "text.id: the words that stay, * for those that change; ~other: of those past a limit") \
	X(LOG_PATTERN_SAMPLE, "sample", TEXT, GAUGE, "",                                          \
	  "text.id: the first message of this pattern, secrets masked, cut after 1000 bytes")     \
	X(LOG_PATTERN_MESSAGES, "messages", NUMBER, COUNTER, "", "messages")                      \
	X(LOG_PATTERN_FIRST, "first_us", NUMBER, GAUGE, "us",                                     \
	  "when the first of them was written, in us since 1970")                                 \
	X(LOG_PATTERN_LAST, "last_us", NUMBER, GAUGE, "us", "when the last one was")              \
	X(LOG_PATTERN_PROCESS, "process", PROCESS, GAUGE, "",                                     \
	  "process.id: who wrote the last one, where the journal says it; else 0")

#define LOG_SECOND_COLUMNS(X)                                                                   \
	X(LOG_SECOND_SOURCE, "source", TEXT, KEY, "", "text.id: as in log_row")                 \
	X(LOG_SECOND_CONTAINER, "container", CONTAINER, KEY, "", "container.id: as in log_row") \
	X(LOG_SECOND_LEVEL, "level", TEXT, KEY, "", "text.id: as in log_row")                   \
	X(LOG_SECOND_PATTERN, "pattern", TEXT, KEY, "",                                         \
	  "text.id: as in log_pattern_row; 0: all messages of this level")                      \
	X(LOG_SECOND_MESSAGES, "messages", NUMBER, COUNTER, "", "messages")

enum { LOG_COLUMNS(FACT_ID) LOG_N };
enum { LOG_PATTERN_COLUMNS(FACT_ID) LOG_PATTERN_N };
enum { LOG_SECOND_COLUMNS(FACT_ID) LOG_SECOND_N };

extern const struct fact LOG_FACT, LOG_PATTERN_FACT, LOG_SECOND_FACT;

#endif
