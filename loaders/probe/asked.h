/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked: the probes that were asked for, and where this host has them: the numbers of tracepoints,
 * places in files. Nothing is loaded or attached here.
 */
#ifndef SONDE_PROBE_ASKED_H
#define SONDE_PROBE_ASKED_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "probes/probe/plan.h"
#include "schema/base/cli/options.h"
#include "schema/base/err.h"
#include "schema/probespec/spec.h"

#define ASKED_MOST  16
#define ASKED_SITES PROBE_SITES

/* ns of a hit: estimates, measured on one virtual machine; of code: insn.h */
#define PRICE_TRACEPOINT 250
#define PRICE_CALL       600 /* of both ends */
#define PRICE_PAIR       400 /* what the program of a pair does more, at each end */

struct asked_hook {          /* where a program is attached */
	uint64_t tracepoint; /* its number */
	char path[PATH_MAX]; /* of code: the file, as this process sees it; "": a tracepoint */
	uint64_t offset[ASKED_SITES], semaphore;
	size_t n_sites; /* of code: a USDT probe may lie in several places */
	/* Of code: which file it was when they were found. In another one under that path they may
	 * lie within instructions. ino 0: not known. */
	uint64_t dev, ino, size;
	int64_t written_ns;
};

struct asked_probe {
	struct probespec spec;
	struct probe_plan plan;
	struct asked_hook at; /* of a system call its end, of latency the second hook; of calls of a
				 function both their begin and their end */
	struct asked_hook from;               /* of a system call and of latency */
	struct probe_site sites[PROBE_SITES]; /* of a function: of each of at.offset */
	size_t n_frames;                      /* how many of them; 0: it needs none */
	/* A USDT probe may have its arguments elsewhere in each of its places: one program for all
	 * places with one layout. Which one this is, and how many the file has (0: no USDT). */
	uint32_t layout, layouts;
	uint64_t price_ns; /* what a hit takes from who runs into it: an estimate by its kind */
};

struct asked {
	struct asked_probe *v; /* own */
	size_t n;
};

/* Each of `specs`: text as in probespec/spec.h, one or several. EXIT_USAGE, EXIT_PREREQUISITE;
 * asked_release in any case. */
int asked_find(struct asked *a, const struct option_list *specs, struct err *e);
void asked_release(struct asked *a);

#endif
