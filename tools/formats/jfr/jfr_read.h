/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_read: a recording of Java's flight recorder (schema/jfr) as a fold. Pure over bytes; bounded.
 *
 *  1. What is counted, by kind; of the events in one line the first that the file has:
 *       cpu        jdk.CPUTimeSample (its samplingPeriod), else jdk.ExecutionSample (the period of
 *                  jdk.ActiveSetting in force)
 *       wallclock  profiler.WallClockSample (its samples x period), jdk.NativeMethodSample; and
 *                  jdk.ExecutionSample where async-profiler took it by the clock
 *       alloc      jdk.ObjectAllocationSample (weight), else jdk.ObjectAllocationInNewTLAB
 * (tlabSize, or allocationSize) and jdk.ObjectAllocationOutsideTLAB (allocationSize) inuse
 * profiler.LiveObject (allocationSize) mutex      jdk.JavaMonitorEnter (duration) block
 * jdk.ThreadPark, jdk.JavaMonitorWait, jdk.ThreadSleep (duration) exception  jdk.JavaExceptionThrow
 *     fold_opts.event asks for one of these events alone. An event without a stack counts at the
 *     root.
 *  2. Without a kind or an event asked for it is the first of these kinds that the file has;
 *     fold.too says what else it has. What of a kind is not counted is in fold.losses.
 *  3. One process: jdk.JVMInformation has its pid, start and arguments. Threads have the names that
 *     Java gives them.
 *  4. A frame is "package.Class.method" of module "[java]"; of native code the method's name alone,
 *     and the class is the module.
 *  5. leaf.slice is the second that an event began in, counted from the first chunk's beginning.
 *  6. Without a period CPU samples are counted, and have no time.
 */
#ifndef SONDE_TOOLS_JFR_READ_H
#define SONDE_TOOLS_JFR_READ_H

#include <stddef.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

/* EXIT_USAGE with what is wrong, or what it holds instead. */
int jfr_import(const void *data, size_t len, const char *name, const struct fold_opts *o,
	       struct fold **out, struct err *e);

#endif
