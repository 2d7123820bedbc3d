/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks: which of a flow's connections are told by their marks (record_mark), so that two hosts'
 * rows of them can be joined later. Both hosts choose the same ones, and neither knows of the
 * other: of all that a flow has in a minute the least mark, and on the way to it each that is less
 * than those before, which are as many as the logarithm of the connections. What was told is not
 * told again in that hour.
 */
#ifndef SONDE_NET_MARKS_H
#define SONDE_NET_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/idmap.h"

#define MARKS_FLOWS 65536 /* more of them in a minute, and more marks in an hour, have none */

struct marks {
	struct idmap least; /* flow -> the least mark of this minute */
	struct idmap told;  /* marks of this hour */
	int64_t minute, hour;
};

/* What was told counts no more: the store began another file. */
void marks_again(struct marks *m);
void marks_release(struct marks *m);
/* Is it to be told? `flow`: a hash of it; `ts`: UTC seconds. */
bool marks_take(struct marks *m, uint64_t flow, uint64_t mark, int64_t ts);

#endif
