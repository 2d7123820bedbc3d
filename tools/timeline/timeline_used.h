/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_used: `sonde timeline --of mem|io|net|pressure|disk|gpu|jvm|gc|requests|errors|latency`:
 * what families host, gpu and l7 measured over time, a strip for each container and for the host,
 * those with the highest peak first.
 *
 *   - mem: memory of containers without files not used lately; of the host what programs cannot get
 *   - io: bytes a second that containers and disks read and wrote
 *   - net: bytes a second that containers and the host's interfaces received and sent; if family
 *     host recorded none, those of the connections of containers, and of commands outside of them,
 *     as family net recorded them
 *   - pressure: share of the time in which some thread waited for a CPU, memory or a disk
 *   - disk: share of the time in which a disk was busy, as family host recorded it, else family
 * disk
 *   - gpu: share of the time in which a GPU was busy, and in which it ran kernels of containers,
 *     and of commands outside of them
 *   - jvm: heap in use of each Java virtual machine
 *   - gc: share of the time that these spent in collections
 *   - requests: requests a second to containers, and to commands outside of them ("NAME asks":
 *     from them)
 *   - errors: how many of those a second failed
 *   - latency: the time within which 95 % of them were answered, by bucket; a column shows the
 *     longest
 *
 * A column is a part of the range; a counter's bucket is shared by the columns that it touches, a
 * gauge holds until the next reading. A running thing has a reading at least every 70 seconds:
 * after that, or when its container's stop was recorded, a line ends at its last one. (Requests and
 * GPUs have no readings while nothing happens: they count as 0 then.)
 */
#ifndef SONDE_TOOLS_TIMELINE_USED_H
#define SONDE_TOOLS_TIMELINE_USED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

enum timeline_used_unit {
	TIMELINE_USED_BYTES,
	TIMELINE_USED_RATE,
	TIMELINE_USED_SHARE,
	TIMELINE_USED_COUNT,
	TIMELINE_USED_TIME
};

struct timeline_used_line {
	char *name;
	double *value;     /* by column; -1: not measured */
	double most, last; /* -1: never */
	int64_t most_ns;   /* when its highest column begins, UTC */
	int64_t ended_ns; /* UTC; it has no reading later than this, and was recorded; 0: it goes on
			   */
	/* while it is made */
	char *container;
	int64_t read_from_ns, read_ns; /* its newest reading */
	double read;
};

struct timeline_used {
	const struct selection *sel;
	const char *of;
	enum timeline_used_unit unit;
	size_t columns;
	bool *covered; /* by column: something was recorded */
	struct timeline_used_line *lines;
	size_t n; /* highest peak first */
};

/* EXIT_USAGE: no such thing, with those there are; EXIT_NOTHING: it was not recorded in the range.
 */
int timeline_used_make(const struct selection *sel, const char *of, size_t columns,
		       struct timeline_used *out, struct err *e);
void timeline_used_release(struct timeline_used *u);
int64_t timeline_used_time(const struct timeline_used *u, size_t column);

#endif
