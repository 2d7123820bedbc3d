/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqdoing: what the threads that serve running requests did last, by samples of the CPU and by
 * waits of the seconds before (REQDOING_NS), and at a recording's end by where they stood (kind
 * standing). A thread that has several of the requests, or waits for longer than that, has none: a
 * wait is recorded when it is over.
 */
#ifndef SONDE_TOOLS_REQDOING_H
#define SONDE_TOOLS_REQDOING_H

#include "tools/requests/reqrunning.h"

#define REQDOING_NS (30 * 1000000000ll)

/* Fills in `doing` and `stack` of the first n rows. */
int reqdoing_read(const struct select_args *asked, const char *store, struct reqrunning *r,
		  size_t n, struct err *e);

#endif
