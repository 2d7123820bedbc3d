/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update: brings totals up to date with a store.
 *
 *  1. At the first run, counting begins a minute before the newest file.
 *  2. Each source is read from its settled_ts on. Once its newest bucket is UPDATE_AHEAD_S beyond
 * that, all that is older than UPDATE_BEHIND_S before it settles: writers put rows of all their
 * programs into the store every few seconds. A source that has nothing new follows the others at a
 * distance of UPDATE_IDLE_S.
 *  3. Only files that may hold something behind the oldest settled_ts are opened: those that were
 * begun later, and the one before.
 *  4. What retention removed before it was read is lost to the counters; its time is added to
 * missed_s.
 */
#ifndef SONDE_EXPORT_UPDATE_H
#define SONDE_EXPORT_UPDATE_H

#include <stdint.h>

#include "export/totals.h"
#include "schema/base/err.h"

#define UPDATE_BEHIND_S 40
#define UPDATE_AHEAD_S  70
#define UPDATE_IDLE_S   600

/* Facts about the store itself. */
struct update_store {
	uint64_t bytes; /* of its files, with their logs */
	uint64_t segments;
	int64_t oldest_ts,
		newest_ts; /* the first file's begin; the newest bucket that was read; 0: none */
};

/* `store`: a folder or one .db file. -ENOENT with EXIT_NOTHING where it holds nothing. */
int update_totals(struct totals *t, const char *store, int64_t now_ts, struct update_store *about,
		  struct err *e);

#endif
