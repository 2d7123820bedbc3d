/* SPDX-License-Identifier: Apache-2.0 */
/* javastore: what a reading of a Java program's recording says, named and added to the store. */
#ifndef SONDE_JAVA_JAVASTORE_H
#define SONDE_JAVA_JAVASTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/java/jfrblock.h"
#include "loaders/lib/bpf/family.h"
#include "schema/base/idmap.h"

/*
 * A sample of an allocation says how many bytes its thread has allocated since its last sample. The
 * first one of a thread that ran before the recording began says that of the thread's whole life,
 * so it is dropped; of one whose start was recorded it counts. Samples of virtual threads (which
 * have no number of the system) are of their carriers: those of the first second are dropped.
 */
struct java_samples {
	struct idmap threads; /* number of the system -> 1: it has had one, or began meanwhile */
	int64_t begun_ns;     /* when the recording began, UTC */
	uint64_t dropped;
	int64_t log_s; /* the second of the single waits at hand, and how many it has */
	uint32_t log_n;
	uint64_t log_left_out; /* single waits that were too many */
};

struct java_target {
	struct family_host *h;
	struct hostmaps_process *process;
	struct java_samples *samples;
	struct idmap *tids;  /* number in its own namespace -> here */
	uint32_t row;        /* of the process, out */
	uint64_t exceptions; /* out */
};

/* Adds all events. */
void javastore_block(struct java_target *t, const struct jfrblock *b);

struct java_state {
	const char *state, *reason, *version, *mode; /* never NULL */
	uint64_t left_out, waits_left_out;           /* events; single waits */
};
/* Notes about a process, with a row of it. */
void javastore_state(struct family_host *h, struct hostmaps_process *p, const struct java_state *s);

#endif
