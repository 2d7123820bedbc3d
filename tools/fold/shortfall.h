/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortfall: what an answer lacks, in sentences: what was lost, and what sonded made its families
 * do less (schema/store/files/shedlog.h): since when, why, and what that costs the answer.
 */
#ifndef SONDE_TOOLS_SHORTFALL_H
#define SONDE_TOOLS_SHORTFALL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/strbuf.h"
#include "schema/store/read/reader.h"

struct fold;
struct selection;

typedef void shortfall_take(void *ctx, const char *sentence);

/* Why something was lost, in words; "" where the reason is the word. Static. */
const char *shortfall_reason(const char *reason);
/* What was lost: `unit`, or of a reason that is about something else, that. */
const char *shortfall_unit(const char *reason, const char *unit);
/* "12 samples were lost: ring (more came at once than the loader could read), 14:10:03 to
 * 14:10:04". */
void shortfall_losses(const struct fold *f, shortfall_take *take, void *ctx);
/* "family offcpu recorded nothing since 14:10:03: sonded stopped it, because sonde used more CPU
 * time than its limit", one sentence for each family and state: of spans that touch
 * [from_ns, to_ns), the parts in it. */
void shortfall_sheds(const struct shedlog_span *v, size_t n, int64_t from_ns, int64_t to_ns,
		     shortfall_take *take, void *ctx);
/* The same of what is folded. */
void shortfall_shed(const struct fold *f, shortfall_take *take, void *ctx);
/* Both; before them whether the numbers are estimates, behind them runtimes whose functions are not
 * shown (unread.h). */
void shortfall_each(const struct fold *f, shortfall_take *take, void *ctx);
/* The same, a line each: "note: ..." */
void shortfall_add(const struct fold *f, struct strbuf *out);
void shortfall_print(const struct fold *f, FILE *out);

/* When sonded made this family do less in the range of the selection, of all its stores. The array
 * is the caller's (free). */
void shortfall_read(const struct selection *sel, const char *family, struct shedlog_span **out,
		    size_t *n);

#endif
