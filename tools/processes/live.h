/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live: what `sonde top` shows: what ran in a window of time, which follows the clock or was moved
 * through stored time, as rows that are sorted and filtered, and the stacks of one of them. Each
 * time everything is read from the store as `ps` does it, so the numbers are those of `ps` for the
 * same window. No terminal here.
 *
 * The window ends at a whole second and is as long as --last (30 s), or as what --at, --from or
 * --rec say. It follows the clock while something records here; else it starts at the end of the
 * last recording.
 */
#ifndef SONDE_TOOLS_LIVE_H
#define SONDE_TOOLS_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/processes/process_rows.h"
#include "tools/requests/reqrunning.h"
#include "tools/select/select.h"

#define LIVE_WINDOW_S 30
#define LIVE_FILTER   64

/* A window as select takes it: as text. */
struct live_window {
	struct select_args args;
	char from[32], to[32], pid[16];
	const char *pids[1];
};

struct live {
	const char *store;
	const struct select_args *asked; /* range and filters as typed */
	char *const *words;
	size_t n_words;
	int64_t window_ns, to_ns;
	bool follows;
	bool waits;               /* not moved by hand: it follows as soon as something records */
	const char *sort;         /* of process_rows_sort */
	char filter[LIVE_FILTER]; /* UTF-8; rows have it somewhere in command, container, unit,
				     command line or pid */

	struct selection *sel; /* of the window; NULL: see `why` */
	struct fold *f;
	struct procs_more more;    /* what else was recorded of them */
	struct process_usage used; /* the same of memory and disks */
	struct reqrunning running; /* requests without an answer at its end */
	struct process_rows rows;  /* sorted, and only those that the filter lets in */
	size_t n_all;              /* before the filter */
	struct err why;            /* why there is nothing to show */
};

/* Finds the window. Errors are those of select_new: no store, wrong words. */
int live_init(struct live *l, struct err *e);
void live_release(struct live *l);
/* Reads the window again; one that follows the clock moves to now. `why` has the error. */
void live_read(struct live *l);
/* Sorts and filters what was read. */
void live_arrange(struct live *l);
/* Moves by that many windows, across times without a recording, but not beyond the first and the
 * last. False: it is there already. Forward to now, the window follows the clock again. */
bool live_step(struct live *l, int windows);
void live_follow(struct live *l);
/* Fills in what selects this window and the filters asked for. pid: of this process only; 0: all.
 */
const struct select_args *live_select(const struct live *l, uint32_t pid, struct live_window *w);
/* The stacks of one process in the window, as lines of text; the caller's (free). NULL with `e`. */
char *live_stacks(const struct live *l, uint32_t pid, unsigned width, bool unicode, struct err *e);

#endif
