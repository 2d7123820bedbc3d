/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples: the counts of CPU samples of one segment, whichever way they are stored: as rows of
 * table `sample`, or as an archive's columns (packed/sample_scan.h). Not for other rooms.
 */
#ifndef SONDE_STORE_READ_SAMPLES_H
#define SONDE_STORE_READ_SAMPLES_H

#include "schema/store/packed/read.h"
#include "schema/store/packed/sample_scan.h"
#include "schema/store/read/reading.h"

#define SAMPLES_CHUNK 1024

struct samples {
	struct store_segment *s;
	struct sqlite3_stmt *st; /* NULL: they are columns */
	struct packedread packed;
	struct sample_scan scan;
	int64_t first, last;
	int ended; /* what sqlite3_step said behind the last row, or sample_scan_next; 0: nothing
		      yet */
	size_t n;  /* rows that are there now */
	struct sample_row rows[SAMPLES_CHUNK]; /* series is in range of the segment's (1 .. n_series
						  - 1), n is not 0 */
};

/* Do not move `c` until it is closed. Those with first <= ts <= last (relative to t0), in
 * order of time. After store_segment_dict. */
int samples_open(struct samples *c, struct store_segment *s, int64_t first, int64_t last,
		 struct err *e);
/* The next chunk: SQLITE_ROW with n > 0, SQLITE_DONE, or an error of SQLite's. */
int samples_next(struct samples *c);
/* Finishes; `rc` as samples_next said last (SQLITE_ROW: enough). 0 or -errno with `e` filled. */
int samples_close(struct samples *c, int rc, struct err *e);

#endif
