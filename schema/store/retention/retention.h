/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention: keeps a store within its budget by removing whole segments, oldest first, until all
 * three hold:
 *   budget   the folder's own bytes (segments, logs, images, all else in it) are at most `bytes`;
 *            images/ at most an eighth of it
 *   disk     at least `reserve_bytes` of the file system are free, whatever else fills it
 *   age      no segment's newest row is older than `age_ns`; but the newest `keep_days` UTC days
 *            that there is anything of stay however old they are: a host that was off for a month
 *            still shows how it was before
 * The newest segment stays, and so does each that a writer, living or killed, still needs for its
 * own account (tally.h): nothing is counted both as removed and as lost. A kept window of the
 * flight ring hides a part of its hour (archive/keep.h): it goes right after it, and of an hour
 * that stays only for the budget or the disk; what it hid counts again then. Each removal is
 * recorded (removed.h). Removing needs no free space. What is quarantined (NAME.bad) goes before
 * anything else.
 */
#ifndef SONDE_STORE_RETENTION_RETENTION_H
#define SONDE_STORE_RETENTION_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/files/usage.h"
#include "schema/store/retention/removed.h"

struct retention_limits {
	uint64_t bytes;
	uint64_t reserve_bytes;
	int64_t age_ns;
	uint32_t keep_days;
};

/* min(2 GiB, 5 % of the file system); min(512 MiB, 5 % of it); 14 days; 2 days. */
void retention_defaults(const char *dir, struct retention_limits *l);

struct retention_report {
	struct usage before, after; /* of a dry run, after: as it would be */
	uint64_t removed, bytes;    /* segments, and what all that was removed took */
	uint32_t unmet; /* bit 1 << enum removed_why: nothing is left that may go, and it still does
			   not hold */
};

/* A look without opening anything, at what was measured: is there work? (age: judged by the
 * segments' names) */
bool retention_is_due(const char *dir, const struct retention_limits *l, const struct usage *u);
/* `each` (may be NULL) hears of every removal, or, of a dry run, of every one that there would be.
 * Takes the folder's lock for each removal, not for the counting before it. EXIT_STORE,
 * EXIT_PERMISSION. */
int retention_run(const char *dir, const struct retention_limits *l, bool dry_run,
		  void (*each)(void *ctx, const struct removed_one *o), void *ctx,
		  struct retention_report *out, struct err *e);

#endif
