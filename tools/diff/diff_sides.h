/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_sides: which two profiles `sonde diff` compares.
 *
 * A side is a range and filters of a store, or a file (pprof, folded stacks;
 * tools/formats/import.h). The later one ("after") is what range and filters say, as for every
 * verb. The earlier one ("before") is the first of these that was given:
 *   1. --before FILE|STORE, or the first of two files or stores named: its newest recording unless
 *      there is a range
 *   2. --vs-RANGE: --vs-from, --vs-to, --vs-last, --vs-at, --vs-rec
 *   3. --baseline 1h: the same range, that much earlier
 *   4. --vs-FILTER only: the same range, with the other filter
 *   5. nothing: the window of equal length just before; of a recording: the recording of its family
 *      before it
 * With --request: what threads did while they served such requests, on both sides; with --slow the
 * slow ones against the others, of one range. A filter without its own form for "before"
 * (--vs-container, ...) is the same on both sides. Files have no filters.
 */
#ifndef SONDE_TOOLS_DIFF_SIDES_H
#define SONDE_TOOLS_DIFF_SIDES_H

#include "schema/base/err.h"
#include "tools/diff/diff.h"
#include "tools/fold/fold.h"
#include "tools/requests/reqtags.h"
#include "tools/select/select.h"

struct diff_side_args {
	const char *store; /* of "after", and of "before" unless it is named */
	const struct select_args *select;
	struct select_args vs;
	int64_t baseline_ns;
	const char *before, *after; /* files or stores, NULL */
	char *const *words;         /* a word to search for, files and stores */
	size_t n_words;
	const char *type;      /* --type, NULL */
	struct fold_opts opts; /* but for the kind of value */
	bool no_tree; /* of two stores sums of functions and who calls whom are enough: no nodes */
	const char *request, *slower; /* tools/requests/reqtags.h; NULL */
	bool slow;
};

struct diff_sides {
	struct fold *fold[2];
	struct selection *sel[2]; /* NULL for a file */
	struct reqtags tags[2];
	char *label[2]; /* "14:00:00 to 14:10:00 (10 min)", or the file's name; filters behind */
};

/* EXIT_USAGE, EXIT_STORE, EXIT_NOTHING: the error says which of the two it is about. */
int diff_sides_make(const struct diff_side_args *a, struct diff_sides *out, struct err *e);
void diff_sides_release(struct diff_sides *s);

#endif
