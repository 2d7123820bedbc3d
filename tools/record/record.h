/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: a recording in the foreground, as the two files of its verb see it: verb_record.c begins
 * it and shows its progress, record_tell.c says how it ended.
 */
#ifndef SONDE_TOOLS_RECORD_H
#define SONDE_TOOLS_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/cli/verb.h"
#include "tools/record/loaderset.h"
#include "tools/record/mapshare.h"

struct record {
	const struct verb_call *call;
	struct loaderset loaders;
	struct mapshare maps; /* of several loaders */
	uint64_t token;       /* what their runs have in common, 0: there is one alone */
	bool tty;
	int64_t said_ns;        /* when the last plain line was printed */
	int64_t finish_said_ns; /* the same, of what is waited for at the end */
	double asked_s;         /* 0: endless */
	int64_t rec;            /* number of the recording, 0: not known */
	bool newest;            /* none began later */
	int64_t from_ns, to_ns;
	uint64_t kills;     /* memlimit_kills at the start */
	int command_status; /* as of wait(2), -1: no command, or it has not ended */
};

double record_num(const json_t *o, const char *key);
/* A number of all loaders together; `which` 'p': as of their last progress, 'd': of what they have
 * done. */
double record_sum(const struct record *r, char which, const char *key);
double record_most(const struct record *r, const char *key); /* of `done` */
/* Adds "1 204 samples", or for each family "cpu 1 204 samples, offcpu 31 events". */
void record_counts(const struct record *r, char which, struct strbuf *out);
/* All loaders have ended: what was recorded, what failed, and the exit status. */
int record_tell(struct record *r, struct err *e);

#endif
