/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statetext: totals as the text of a file. Pure.
 *
 * Lines of text:
 *   sonde-metrics 1
 *   begun TS        missed SECONDS        folded ROWS        settled SOURCE TS
 *   s METRIC PART TS SETTLED SHOWN LABELS
 * Sources and metrics that this version does not know are left out. A file that is damaged from
 * some line on is as if it were not there.
 */
#ifndef SONDE_EXPORT_STATETEXT_H
#define SONDE_EXPORT_STATETEXT_H

#include <stddef.h>

#include "export/totals.h"
#include "schema/base/strbuf.h"

/* Reads the text of a file into `t`, which is new. -EBADMSG: not such a file, or damaged; `t` is
 * unchanged. */
int state_parse(struct totals *t, const char *text, size_t len);
void state_print(struct totals *t, struct strbuf *out);

#endif
