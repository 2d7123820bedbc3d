/* SPDX-License-Identifier: Apache-2.0 */
/*
 * javaprocs: the Java programs that were chosen: found, recorded, read while they run, and stopped.
 *
 * A program that is some seconds old is asked to record itself (jhelper.h). One whose machine
 * writes its open chunk to disk (JCMD_LIVE_SINCE) is read through its own descriptor, without a
 * further word; an older one is asked for a dump each time. One that makes more than
 * EXCEPTIONS_MOST exceptions a second is recorded again without them: before 25 no
 * machine limits them.
 */
#ifndef SONDE_JAVA_JAVAPROCS_H
#define SONDE_JAVA_JAVAPROCS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/java/jfrread.h"
#include "loaders/java/jhelper.h"
#include "loaders/lib/bpf/family.h"

struct javaprocs;

struct javaprocs_opts {
	const struct jhelper *helper; /* borrowed, as all here */
	const struct subreader *reader;
	const struct jhelper *tls; /* leads agents (javatls.h); NULL: none */
	bool tls_only;             /* and nothing is recorded */
	const char *choose;        /* rules (rules.h); NULL: the capture's target chooses */
	int64_t interval_ns;
};

struct javaprocs *javaprocs_new(const struct javaprocs_opts *o);
void javaprocs_free(struct javaprocs *js);
void javaprocs_poll(struct javaprocs *js, struct family_host *h, int64_t now_ns);
/* Stops all recordings, and reads what they have to the end. */
void javaprocs_finish(struct javaprocs *js, struct family_host *h, int64_t until_ns);
/* Of the processes that read, so far. */
uint64_t javaprocs_read_ns(const struct javaprocs *js);

#endif
