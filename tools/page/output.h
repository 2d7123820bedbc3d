/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: the forms in which a fold leaves sonde, and which one a file name asks for. `flame -o`
 * and `export` share it.
 */
#ifndef SONDE_TOOLS_OUTPUT_H
#define SONDE_TOOLS_OUTPUT_H

#include <stdio.h>

#include "schema/base/err.h"
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

struct output_look {            /* how it looks; all zero: as usual */
	const char *source_url; /* the page's template for links to lines, NULL: none */
	const char *group; /* what the page begins with, as output_group_of has it, NULL: container,
			      then process */
	unsigned width;    /* of a picture (.svg), in pixels (svg_width_of) */
	size_t nodes;      /* of JSON: so many frames at most, the largest; 0: all */
};

/* By the end of the name: .html .htm, .svg, .folded .collapsed, .pb.gz .pprof, .perf,
 * .speedscope.json, .json. EXIT_USAGE with the list. */
int output_form_of(const char *path, enum output_form *form, struct err *e);
/* "none", "container", "process", "thread"; NULL is none. EXIT_USAGE. */
int output_group_of(const char *name, enum fold_group *group, struct err *e);
/* Fold the selection and print it. pprof takes no groups (it has labels) and has its lines apart
 * from names: EXIT_USAGE. */
int output_write(enum output_form form, const struct selection *sel, const struct fold_opts *opts,
		 const struct output_look *look, FILE *out, struct err *e);

#endif
