/* SPDX-License-Identifier: Apache-2.0 */
/* java: what family java stores besides its stacks (loaders/java): the columns of its table, in the
 * table's order. */
#ifndef SONDE_FACTS_JAVA_H
#define SONDE_FACTS_JAVA_H

#include "schema/facts/fact.h"

#define JAVA_WAIT_COLUMNS(X)                                                                   \
	X(JAVA_WAIT_PROCESS, "process", PROCESS, KEY, "", "process.id")                        \
	X(JAVA_WAIT_KIND, "kind", TEXT, KEY, "",                                               \
	  "text.id: monitor: for one that another thread had; park: of java.util.concurrent; " \
	  "wait: to be notified")                                                              \
	X(JAVA_WAIT_CLASS, "class", TEXT, KEY, "",                                             \
	  "text.id: class of the monitor, or of what it was parked on")                        \
	X(JAVA_WAIT_OWNER, "owner", TEXT, KEY, "",                                             \
	  "text.id: thread that had the monitor when the wait began; empty: not known")        \
	X(JAVA_WAIT_PLACE, "place", TEXT, KEY, "",                                             \
	  "text.id: function:line that waited, the innermost that is not of the Java library") \
	X(JAVA_WAIT_N, "n", NUMBER, COUNTER, "", "waits of 1 ms or longer that ended")         \
	X(JAVA_WAIT_NS, "ns", NUMBER, COUNTER, "ns", "how long they took, within the recording")

/* Waits for monitors and locks, one by one: they are found by thread and time. */
#define JAVA_WAIT_LOG_COLUMNS(X)                                                                 \
	X(JAVA_WAIT_LOG_PROCESS, "process", PROCESS, KEY, "", "process.id")                      \
	X(JAVA_WAIT_LOG_ID, "id", TAG, KEY, "", "its own")                                       \
	X(JAVA_WAIT_LOG_TID, "tid", NUMBER, GAUGE, "", "thread that waited")                     \
	X(JAVA_WAIT_LOG_AT, "at_us", NUMBER, GAUGE, "us", "when it began, since 1970")           \
	X(JAVA_WAIT_LOG_NS, "ns", NUMBER, GAUGE, "ns", "how long it took, within the recording") \
	X(JAVA_WAIT_LOG_KIND, "kind", TEXT, GAUGE, "", "text.id: as java_wait_row.kind")         \
	X(JAVA_WAIT_LOG_CLASS, "class", TEXT, GAUGE, "", "text.id: as java_wait_row.class")      \
	X(JAVA_WAIT_LOG_OWNER, "owner", TEXT, GAUGE, "", "text.id: as java_wait_row.owner")      \
	X(JAVA_WAIT_LOG_PLACE, "place", TEXT, GAUGE, "", "text.id: as java_wait_row.place")

enum java_wait_column { JAVA_WAIT_COLUMNS(FACT_ID) JAVA_WAIT_COLUMNS_N };

enum java_wait_log_column { JAVA_WAIT_LOG_COLUMNS(FACT_ID) JAVA_WAIT_LOG_COLUMNS_N };

extern const struct fact JAVA_WAIT_FACT, JAVA_WAIT_LOG_FACT;

#endif
