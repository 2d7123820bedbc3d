/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_html: the flame graph page: one file that opens from disk and makes no network requests. It
 * fills in the template and parts from tools/page: a description of the page in text, the top
 * functions as a plain table (for browsers without scripting), and the packed tree. Every name is
 * escaped; nothing from the profile is ever markup or script.
 */
#ifndef SONDE_TOOLS_FLAME_HTML_H
#define SONDE_TOOLS_FLAME_HTML_H

#include <stdio.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/fold/flame/flame_rows.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold.h"

#define FLAME_HTML_MAX_NODES 100000
#define FLAME_HTML_MAX_SLOTS 60
#define FLAME_HTML_MAX_ROWS  400000

/* A fold as the page shows it. */
struct flame_view {
	struct flame_tree tree;
	struct flame_rows rows;
};
/* The fold must outlive it, but for its leaves and nodes. */
void flame_view_init(struct flame_view *v, const struct fold *f);
void flame_view_release(struct flame_view *v);

struct flame_page {
	/* One per kind of value, not grouped (the page groups), with leaves and, for what adds up
	 * over time, slices. The head and the plain table show the first. */
	const struct fold *const *folds;
	size_t n_folds;
	struct flame_view *views; /* of each; NULL: they are made while it is written */
	const char *what;         /* "immich-ml"; "" for everything */
	const char *range;        /* for people */
	const char *filters;      /* "" if none */
	const char *group;        /* initial grouping: "container", "process", "thread", "none"; "":
				     container, then process */
	const char *source_url;   /* a template with {file} and {line}, NULL: none */
	const char *title;        /* the text before "of WHAT on HOST", NULL: the kind of value */
	const struct strbuf *report, *report_below; /* HTML above and below the graphs
						       (tools/page/report.h), NULL: none */
	bool self;                                  /* sonde's own processes are in the fold */
};

/* 0, or -errno with `e`; errors of the stream are left on the stream (ferror). */
int flame_html_write(const struct flame_page *p, FILE *out, struct err *e);
/* Add "CPU time of WHAT on HOST", as text for HTML. */
void flame_html_title(const struct flame_page *p, struct strbuf *s);

#endif
