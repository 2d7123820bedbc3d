/* SPDX-License-Identifier: Apache-2.0 */
/*
 * removed: the account of what retention took away: how much, why, and since when the history is
 * whole. It is the one thing that outlives the segments, and it must be written when the disk is
 * full.
 *
 * STORE/removed, REMOVED_FILE_BYTES, its blocks allocated when it is made and never given back:
 *   1. Two pages of 4096 bytes, each a struct removed_page. The valid one (magic, version, check)
 *      with the larger `sequence` holds; the other is the next to be written. A torn write costs
 *      nothing.
 *   2. To remove a segment: write it as `pending`, with what is in it; unlink; write the page
 *      again with pending empty and the sums raised. A program that finds a pending one checks its
 *      file: if the file exists, nothing was removed; else the removal counts.
 *   3. Only with the folder's lock held.
 */
#ifndef SONDE_STORE_RETENTION_REMOVED_H
#define SONDE_STORE_RETENTION_REMOVED_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/files/folder.h"
#include "schema/store/retention/segcount.h"

#define REMOVED_LAST       16
#define REMOVED_FILE_BYTES 8192

enum removed_why { REMOVED_NONE = 0, REMOVED_BUDGET = 1, REMOVED_RESERVE = 2, REMOVED_AGE = 3 };
const char *removed_why_name(uint32_t why); /* "budget", "disk", "age" */

struct removed_one {
	char segment[SEGMENT_NAME_MAX]; /* "": none */
	int64_t at_ns;                  /* when, UTC */
	int64_t from_ns, to_ns; /* what it spanned; of one that was not counted: it ended before
				   to_ns; 0: nothing */
	uint64_t bytes;         /* on disk */
	uint64_t rows, events, lost; /* all families */
	uint32_t why;                /* enum removed_why */
	uint32_t counted;            /* 0: it was damaged, so rows, events and lost are not known */
};

struct removed_page {
	char magic[8];    /* "sonderem" */
	uint32_t version; /* 1 */
	uint32_t n_families;
	uint64_t sequence;
	uint64_t segments, uncounted, bytes;
	int64_t history_ns; /* data from here on is complete; 0: nothing was removed at all */
	struct segcount_family family[SEGCOUNT_FAMILIES]; /* sums over all removals */
	struct removed_one last[REMOVED_LAST]; /* removal i (from 0) is at i % REMOVED_LAST */
	struct removed_one pending;
	struct segcount_family pending_family[SEGCOUNT_FAMILIES];
	uint32_t pending_families, pad;
	uint64_t check; /* hash of all before */
};
_Static_assert(sizeof(struct removed_page) <= REMOVED_FILE_BYTES / 2, "one page");

/* What is on record; all 0 where there is no file, or none that can be read. -errno only if it is
 * there and unreadable. */
int removed_read(const char *dir, struct removed_page *out);
/* Lock held. Make the file if need be, settle a removal that a crash cut short. *fd is the
 * caller's. */
int removed_open(const char *dir, int *fd, struct removed_page *page, struct err *e);
/* Lock held. Rule 2, for the segment o->segment. `counts` NULL: it could not be counted. */
int removed_remove(const char *dir, int fd, struct removed_page *page, const struct removed_one *o,
		   const struct segcount *counts, struct err *e);

#endif
