/* SPDX-License-Identifier: Apache-2.0 */
/* probe: what family probe stores (loaders/probe): the columns of its tables, in the tables' order.
 */
#ifndef SONDE_FACTS_PROBE_H
#define SONDE_FACTS_PROBE_H

#include "schema/facts/fact.h"

#define PROBE_STEPS 32 /* of a histogram */

#define PROBE_COLUMNS(X)                                                                                                \
	X(PROBE_NAME, "probe", TEXT, KEY, "", "text.id: its name")                                                      \
	X(PROBE_SPEC, "spec", TEXT, GAUGE, "", "text.id: as it was written, without its name")                          \
	X(PROBE_SHAPE, "args", TEXT, GAUGE, "",                                                                         \
	  "text.id: its arguments and their types, with commas: path str,flags int32; of system calls ret and ns, too") \
	X(PROBE_HITS, "hits", NUMBER, COUNTER, "", "hits for which its conditions hold")                                \
	X(PROBE_EVENTS, "events", NUMBER, COUNTER, "",                                                                  \
	  "of them, those with a row in probe_event_row")                                                               \
	X(PROBE_RUNS, "runs", NUMBER, COUNTER, "",                                                                      \
	  "hits of any process, whatever the conditions: what its cost grows with")                                     \
	X(PROBE_LOST, "lost", NUMBER, COUNTER, "",                                                                      \
	  "hits that are in no sum, and events that found no room")                                                     \
	X(PROBE_UNPAIRED, "unpaired", NUMBER, COUNTER, "",                                                              \
	  "system calls of which only the begin or the end was seen: they count as no hit")                             \
	X(PROBE_OFF, "off_us", NUMBER, COUNTER, "us",                                                                   \
	  "time in which it was taken away, as it cost too much: what happened then is in no number")

#define PROBE_SLOT(X, n, text) X(PROBE_SUM_T##n, "slot_" #n, NUMBER, TALLY, "", text)
#define PROBE_SUM_COLUMNS(X)                                                                            \
	X(PROBE_SUM_NAME, "probe", TEXT, KEY, "", "text.id: as in probe_row")                           \
	X(PROBE_SUM_KEY, "key", TEXT, KEY, "",                                                          \
	  "text.id: the arguments that it is summed by, with a blank; ~other: of those past the limit") \
	X(PROBE_SUM_PROCESS, "process", PROCESS, KEY, "",                                               \
	  "process.id: who hit it; 0: of those past the limit")                                         \
	X(PROBE_SUM_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")        \
	X(PROBE_SUM_HITS, "hits", NUMBER, COUNTER, "", "hits")                                          \
	X(PROBE_SUM_ERRORS, "errors", NUMBER, COUNTER, "", "of them, system calls that failed")         \
	X(PROBE_SUM_NS, "ns", NUMBER, COUNTER, "ns", "how long system calls took, summed")              \
	X(PROBE_SUM_SUM, "sum", NUMBER, COUNTER, "",                                                    \
	  "the argument of sum, summed; NULL if that is below 0")                                       \
	PROBE_SLOT(X, 0, "of the argument of hist, else of ns: 0 and 1")                                \
	PROBE_SLOT(X, 1, "2 to 3")                                                                      \
	PROBE_SLOT(X, 2, "4 to 7")                                                                      \
	PROBE_SLOT(X, 3, "8 to 15")                                                                     \
	PROBE_SLOT(X, 4, "16 to 31")                                                                    \
	PROBE_SLOT(X, 5, "32 to 63")                                                                    \
	PROBE_SLOT(X, 6, "64 to 127")                                                                   \
	PROBE_SLOT(X, 7, "128 to 255")                                                                  \
	PROBE_SLOT(X, 8, "256 to 511")                                                                  \
	PROBE_SLOT(X, 9, "512 to 1023")                                                                 \
	PROBE_SLOT(X, 10, "1024 to 2047")                                                               \
	PROBE_SLOT(X, 11, "2048 to 4095")                                                               \
	PROBE_SLOT(X, 12, "4096 to 8191")                                                               \
	PROBE_SLOT(X, 13, "8192 to 16383")                                                              \
	PROBE_SLOT(X, 14, "16384 to 32767")                                                             \
	PROBE_SLOT(X, 15, "32768 to 65535")                                                             \
	PROBE_SLOT(X, 16, "65536 to 131071")                                                            \
	PROBE_SLOT(X, 17, "131072 to 262143")                                                           \
	PROBE_SLOT(X, 18, "262144 to 524287")                                                           \
	PROBE_SLOT(X, 19, "524288 to 1048575")                                                          \
	PROBE_SLOT(X, 20, "1048576 to 2097151")                                                         \
	PROBE_SLOT(X, 21, "2097152 to 4194303")                                                         \
	PROBE_SLOT(X, 22, "4194304 to 8388607")                                                         \
	PROBE_SLOT(X, 23, "8388608 to 16777215")                                                        \
	PROBE_SLOT(X, 24, "16777216 to 33554431")                                                       \
	PROBE_SLOT(X, 25, "33554432 to 67108863")                                                       \
	PROBE_SLOT(X, 26, "67108864 to 134217727")                                                      \
	PROBE_SLOT(X, 27, "134217728 to 268435455")                                                     \
	PROBE_SLOT(X, 28, "268435456 to 536870911")                                                     \
	PROBE_SLOT(X, 29, "536870912 to 1073741823")                                                    \
	PROBE_SLOT(X, 30, "1073741824 to 2147483647")                                                   \
	PROBE_SLOT(X, 31, "2147483648 or more")

#define PROBE_EVENT_COLUMNS(X)                                                                                           \
	X(PROBE_EVENT_NAME, "probe", TEXT, KEY, "", "text.id: as in probe_row")                                          \
	X(PROBE_EVENT_PROCESS, "process", PROCESS, KEY, "", "process.id: who hit it")                                    \
	X(PROBE_EVENT_TID, "tid", TAG, KEY, "", "the thread")                                                            \
	X(PROBE_EVENT_IN, "in_ns", TAG, KEY, "",                                                                         \
	  "when, in ns from the start of the bucket on; of a system call when it ended")                                 \
	X(PROBE_EVENT_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")                       \
	X(PROBE_EVENT_THREAD, "thread", TEXT, GAUGE, "", "text.id: name of the thread")                                  \
	X(PROBE_EVENT_ARGS, "args", TEXT, GAUGE, "",                                                                     \
	  "text.id: its arguments as a JSON object; null: it could not be read. Secrets are masked as in command lines") \
	X(PROBE_EVENT_NS, "ns", NUMBER, GAUGE, "ns", "how long a system call took")                                      \
	X(PROBE_EVENT_WEIGHT, "weight", NUMBER, GAUGE, "",                                                               \
	  "how many hits it represents: more than 1 where only some have a row")

enum probe_column { PROBE_COLUMNS(FACT_ID) PROBES_N };
enum probe_sum_column { PROBE_SUM_COLUMNS(FACT_ID) PROBE_SUMS_N };
enum probe_event_column { PROBE_EVENT_COLUMNS(FACT_ID) PROBE_EVENTS_N };

extern const struct fact PROBE_FACT, PROBE_SUM_FACT, PROBE_EVENT_FACT;

#endif
