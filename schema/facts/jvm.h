/* SPDX-License-Identifier: Apache-2.0 */
/* jvm: what family host stores of Java's virtual machines (loaders/host/jvms.h): the columns of its
 * table, in the table's order. */
#ifndef SONDE_FACTS_JVM_H
#define SONDE_FACTS_JVM_H

#include "schema/facts/fact.h"

#define JVM_COLUMNS(X)                                                                           \
	X(JVM_PROCESS, "process", PROCESS, KEY, "", "process.id")                                \
	X(JVM_COLLECTOR, "collector", TEXT, GAUGE, "",                                           \
	  "text.id: its garbage collector, of the young and of all generations")                 \
	X(JVM_VERSION, "version", TEXT, GAUGE, "", "text.id: of Java")                           \
	X(JVM_YOUNG_GCS, "young_gcs", NUMBER, TALLY, "", "collections of the young generation")  \
	X(JVM_YOUNG_GC_US, "young_gc_us", NUMBER, COUNTER, "us", "they took")                    \
	X(JVM_FULL_GCS, "full_gcs", NUMBER, TALLY, "", "collections of all generations")         \
	X(JVM_FULL_GC_US, "full_gc_us", NUMBER, COUNTER, "us", "they took")                      \
	X(JVM_CONCURRENT_GCS, "concurrent_gcs", NUMBER, TALLY, "",                               \
	  "pauses and cycles of a concurrent collector")                                         \
	X(JVM_CONCURRENT_GC_US, "concurrent_gc_us", NUMBER, COUNTER, "us", "they took")          \
	X(JVM_SAFEPOINTS, "safepoints", NUMBER, TALLY, "",                                       \
	  "times that all its threads were stopped")                                             \
	X(JVM_SAFEPOINT_US, "safepoint_us", NUMBER, COUNTER, "us", "they were stopped")          \
	X(JVM_SAFEPOINT_SYNC_US, "safepoint_sync_us", NUMBER, COUNTER, "us",                     \
	  "of it until the last one had stopped")                                                \
	X(JVM_YOUNG_USED, "young_used", NUMBER, GAUGE, "bytes",                                  \
	  "young generation: in use, as of its last collection or later")                        \
	X(JVM_YOUNG_COMMITTED, "young_committed", NUMBER, GAUGE, "bytes", "had from the system") \
	X(JVM_YOUNG_MAX, "young_max", NUMBER, GAUGE, "bytes", "what it may have")                \
	X(JVM_OLD_USED, "old_used", NUMBER, GAUGE, "bytes",                                      \
	  "old generation, or the whole heap if it has no generations: in use, as above")        \
	X(JVM_OLD_COMMITTED, "old_committed", NUMBER, GAUGE, "bytes", "had from the system")     \
	X(JVM_OLD_MAX, "old_max", NUMBER, GAUGE, "bytes", "what it may have")                    \
	X(JVM_META_USED, "metaspace_used", NUMBER, GAUGE, "bytes", "classes' own data: in use")  \
	X(JVM_META_COMMITTED, "metaspace_committed", NUMBER, GAUGE, "bytes",                     \
	  "had from the system")                                                                 \
	X(JVM_THREADS, "threads", NUMBER, GAUGE, "", "Java threads")                             \
	X(JVM_DAEMONS, "daemon_threads", NUMBER, GAUGE, "", "of them daemons")                   \
	X(JVM_CLASSES, "classes", NUMBER, GAUGE, "", "classes loaded now")                       \
	X(JVM_LOADED, "classes_loaded", NUMBER, TALLY, "", "classes loaded")                     \
	X(JVM_UNLOADED, "classes_unloaded", NUMBER, TALLY, "", "classes unloaded")

enum jvm_column { JVM_COLUMNS(FACT_ID) JVM_N };

extern const struct fact JVM_FACT;

#endif
