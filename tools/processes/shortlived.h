/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortlived: processes that lived between two readings of family host, by container and command,
 * and the CPU time that is attributed to no process: for the host the difference to what the kernel
 * sampled (/proc/stat, with interrupts), for a container to its cgroup's counter, which is exact.
 */
#ifndef SONDE_TOOLS_SHORTLIVED_H
#define SONDE_TOOLS_SHORTLIVED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

struct shortlived_row {
	char *container, *comm; /* "": of none; many different ones */
	uint64_t n, cpu_us, read_bytes, write_bytes, lived_us, rss_max;
};

/* Of a container: the CPU time of all its processes, those of `rows` included. */
struct shortlived_told {
	char *container;
	uint64_t n, cpu_us; /* n: of those in `rows` */
};

struct shortlived {
	struct shortlived_row *rows;
	size_t n; /* most CPU time first */
	struct shortlived_told *told;
	size_t n_told;
	bool charged_known; /* the selection is not narrowed, and the host was recorded */
	uint64_t charged_us, told_us;
	uint64_t stolen_us, whole_us; /* of the host: by a hypervisor, and all that its CPUs had */
};

/* None of it is no error. Release in any case. */
int shortlived_read(const struct selection *sel, struct shortlived *out, struct err *e);
void shortlived_release(struct shortlived *s);
/* NULL: nothing was recorded of it. */
const struct shortlived_told *shortlived_of(const struct shortlived *s, const char *container);
uint64_t shortlived_rest(uint64_t charged_us, uint64_t told_us);
/* Keys of the envelope: ended, and of the host cpu_charged_ns, cpu_unattributed_ns. */
void shortlived_json(const struct shortlived *s, json_t *envelope, size_t most);

#endif
