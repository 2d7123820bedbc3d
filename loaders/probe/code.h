/* SPDX-License-Identifier: Apache-2.0 */
/* code: where a function or a USDT probe is in its file, as sonde-index reads it in its sandbox. */
#ifndef SONDE_PROBE_CODE_H
#define SONDE_PROBE_CODE_H

#include <stdbool.h>

#include "schema/base/err.h"

struct asked_probe;
struct strbuf;

/* Fills its path, sites, semaphore, price and plan. EXIT_USAGE: it is not there, or several are;
 * EXIT_PREREQUISITE. */
int code_find(struct asked_probe *p, struct err *e);
/* What sonde-index says of `path`: its lines (loaders/index/places.h), added to *out. `how`:
 * "--places", "--place", "--place-at". */
int code_places(const char *path, const char *how, const char *word, struct strbuf *out,
		struct err *e);

#endif
