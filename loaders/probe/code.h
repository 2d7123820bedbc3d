/* SPDX-License-Identifier: Apache-2.0 */
/* code: where a function or a USDT probe is in its file, as sonde-index reads it in its sandbox. */
#ifndef SONDE_PROBE_CODE_H
#define SONDE_PROBE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"

struct asked_hook;
struct asked_probe;
struct plan_notes;
struct probespec_where;
struct strbuf;

/* Where `w`, one of its hooks, is: fills *k, *notes of a USDT probe, the sites of a function's
 * calls in p, and *price_ns. EXIT_USAGE: it is not there, or several are; EXIT_PREREQUISITE. */
int code_find(struct asked_probe *p, const struct probespec_where *w, struct asked_hook *k,
	      struct plan_notes *notes, uint64_t *price_ns, struct err *e);
/* What sonde-index says of `path`: its lines (loaders/index/places.h), added to *out. `how`:
 * "--places", "--place", "--place-at"; `calls`: with the sites of its calls. */
int code_places(const char *path, const char *how, const char *word, bool calls, struct strbuf *out,
		struct err *e);

#endif
