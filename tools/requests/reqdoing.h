/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqdoing: what the threads that serve running requests did most since they were asked (at most
 * REQDOING_NS before): by samples of the CPU and waits, and at a recording's end by where they stood
 * (kind standing). A wait is recorded when it is over: of a thread that still waits it is said what
 * it did before, and of one that has waited ever since nothing. Nor of one that serves several of
 * the requests: its samples tell nothing of one.
 */
#ifndef SONDE_TOOLS_REQDOING_H
#define SONDE_TOOLS_REQDOING_H

#include "tools/requests/reqrunning.h"

#define REQDOING_NS   (600 * 1000000000ll)
#define REQDOING_ROWS 30

/* Fills in `doing` and `stack` of the first n rows, of REQDOING_ROWS at most. */
int reqdoing_read(const struct select_args *asked, const char *store, struct reqrunning *r,
		  size_t n, struct err *e);

#endif
