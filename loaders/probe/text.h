/* SPDX-License-Identifier: Apache-2.0 */
/* text: arguments of hits as text: a JSON object of a single hit, the key of a sum, and what a
 * probe has. Secrets are masked. Pure. */
#ifndef SONDE_PROBE_TEXT_H
#define SONDE_PROBE_TEXT_H

#include <stddef.h>

#include <linux/types.h>

#include "probes/probe/plan.h"
#include "schema/probespec/spec.h"

struct strbuf;

/* {"path":"/etc/x","flags":0,"ret":-2,"error":"ENOENT"}; null: it could not be read. */
void text_args(const struct probespec *s, const struct probe_event *ev, struct strbuf *out);
/* "openat ENOENT"; of ret "ok" or the name of the error. "": it has no `by`. */
void text_key(const struct probespec *s, const struct probe_key *key, struct strbuf *out);
/* "path str,flags int32,ret int64,ns uint64" */
void text_shape(const struct probespec *s, struct strbuf *out);

#endif
