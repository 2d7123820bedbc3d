/* SPDX-License-Identifier: Apache-2.0 */
/* json_in: a profile in JSON that is being read. Private to json_read.c and gecko_read.c. */
#ifndef SONDE_TOOLS_JSON_IN_H
#define SONDE_TOOLS_JSON_IN_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/fold/fold_build.h"

#define JSON_NODES_MAX (4u << 20)
#define JSON_SUM_MAX   4e18

struct json_reading {
	struct fold_build *b;
	const struct fold_opts *o;
	const char *why;
	uint32_t process;
	const char *thread;
	uint32_t tid;
	double sum;       /* about: for its limit */
	double fractions; /* of weights: what one loses by rounding the next one gains, */
	int64_t told;     /* and how much of that they have got */
	/* speedscope */
	uint32_t *frames;
	size_t n_frames;
	double scale;    /* of a weight, to ns, bytes or parts of a sample */
	int64_t span_ns; /* the longest profile */
};

void json_wrong(struct json_reading *r, const char *why);
const char *json_text_at(struct json_reading *r, const json_t *v); /* "" if it is no text */
/* Of that name, with no place; it borrows `name`, which is the fold's. */
struct fold_frame json_frame(struct json_reading *r, const char *name);
uint32_t json_line(const json_t *v);
/* A weight that was scaled already, to the process and thread at hand. */
void json_add(struct json_reading *r, uint32_t node, double value);
uint32_t json_process(struct json_reading *r, uint32_t pid, const char *comm);

/* The Firefox Profiler's (gecko_read.c). */
void gecko_read(struct json_reading *r, const json_t *root);

#endif
