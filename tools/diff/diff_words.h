/* SPDX-License-Identifier: Apache-2.0 */
/* diff_words: what of a difference is said in words and figures for people, the same in the
 * terminal and on the page. */
#ifndef SONDE_TOOLS_DIFF_WORDS_H
#define SONDE_TOOLS_DIFF_WORDS_H

#include "schema/base/strbuf.h"
#include "tools/diff/diff.h"

/* Values are shares of all, written as points of a hundred. */
bool diff_in_shares(const struct diff *d);
/* "/s" where an amount is one per second; cores are not written so. */
const char *diff_per_second(const struct diff *d);
/* "0.41 cores", "12 KiB/s" of a value that is no share. */
void diff_add_amount(struct strbuf *s, const struct diff *d, double v);
/* "+0.412" cores, "-3.20" points; of a host that is all but idle a digit more. */
void diff_add_change(struct strbuf *s, const struct diff *d, double change);
/* "+12.0 %", "new", "gone", "x 12" */
void diff_add_percent(struct strbuf *s, const struct diff_value *v);
/* New and gone callers, since when; of what is noise, how much would have shown. */
void diff_add_why(struct strbuf *s, const struct diff *d, const struct diff_function *f);

#endif
