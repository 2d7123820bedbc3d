/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: the formats in which a fold leaves sonde, chosen by file name. `flame -o` and `export`
 * share it.
 */
#ifndef SONDE_TOOLS_OUTPUT_H
#define SONDE_TOOLS_OUTPUT_H

#include <stdio.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/fold/fold.h"
#include "tools/select/select.h"

enum output_form {
	OUTPUT_HTML,
	OUTPUT_SVG,
	OUTPUT_FOLDED,
	OUTPUT_PPROF,
	OUTPUT_JSON,
	OUTPUT_SPEEDSCOPE,
	OUTPUT_PERFSCRIPT
};

struct output_look {            /* appearance; all zero: defaults */
	const char *source_url; /* the page's template for links to lines, NULL: none */
	const char *group; /* initial grouping of the page, from output_group_of, NULL: container,
			      then process */
	unsigned width;    /* width of an .svg, in pixels (svg_width_of) */
	size_t nodes;      /* for JSON: at most this many frames, the largest; 0: all */
	struct strbuf *lacks; /* gets what the answer lacks, a line each (tools/fold/shortfall.h);
				 NULL: nothing does */
};

/* Chooses by suffix: .html .htm, .svg, .folded .collapsed, .pb.gz .pprof, .perf, .speedscope.json,
 * .json. EXIT_USAGE with the list. */
int output_form_of(const char *path, enum output_form *form, struct err *e);
/* "none", "container", "process", "thread"; NULL: no group. EXIT_USAGE. */
int output_group_of(const char *name, enum fold_group *group, struct err *e);
/* Folds the selection and prints it. pprof takes no groups (it has labels) and stores lines
 * separately: EXIT_USAGE. */
int output_write(enum output_form form, const struct selection *sel, const struct fold_opts *opts,
		 const struct output_look *look, FILE *out, struct err *e);

#endif
