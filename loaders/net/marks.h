/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks: which of a flow's connections are stored by their marks (record_mark), so that the rows of
 * two hosts can be joined later. Both hosts choose the same ones without communicating: the lowest
 * mark of a flow in a minute, and each mark that was the lowest when it came; their number grows
 * with the logarithm of the connections. A stored mark is not stored again in that hour.
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

/* The store began another file: all marks count as not stored. */
void marks_again(struct marks *m);
void marks_release(struct marks *m);
/* Must this one be stored? `flow`: a hash of it; `ts`: UTC seconds. */
bool marks_take(struct marks *m, uint64_t flow, uint64_t mark, int64_t ts);

#endif
