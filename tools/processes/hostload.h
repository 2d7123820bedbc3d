/* SPDX-License-Identifier: Apache-2.0 */
/* hostload: how much of a host was used in a selection's range, and for how long threads waited for
 * it, from what family host recorded. */
#ifndef SONDE_TOOLS_HOSTLOAD_H
#define SONDE_TOOLS_HOSTLOAD_H

#include "schema/base/err.h"
#include "tools/select/select.h"

struct hostload {                                 /* -1: not known */
	double cores, cpus;                       /* CPUs used, and how many there are */
	double load;                              /* average of one minute, at the end */
	double waited_cpu, waited_mem, waited_io; /* share of the time, 0 to 1 (PSI, "some") */
	double mem_used, mem_total, swapped;      /* bytes; pages each second */
	char disk[64];                            /* "": none */
	double disk_busy;                         /* share of the time */
};

/* disk NULL: the busiest one, else that one. EXIT_STORE. */
int hostload_read(const struct selection *sel, const char *disk, struct hostload *out,
		  struct err *e);

#endif
