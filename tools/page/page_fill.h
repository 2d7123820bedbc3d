/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_fill: the page's template (tools/page/page.html) with what a report has of its own put in. A
 * report is a flame graph (flame_html) or a difference (diff_html); both are one page with one
 * script.
 */
#ifndef SONDE_TOOLS_PAGE_FILL_H
#define SONDE_TOOLS_PAGE_FILL_H

#include <stdio.h>

#include "schema/base/strbuf.h"

#define PAGE_TABLE_ROWS 20 /* of the plain table, for those without scripting */

struct page_parts { /* HTML; names in it went through page_add_text */
	const struct strbuf *title;
	const struct strbuf *brief; /* the facts in one line */
	const struct strbuf *facts, *columns, *rows;
	const struct strbuf *data; /* flame_pack */
	const struct strbuf *report,
		*report_below; /* what stands above and below the graphs; NULL: nothing */
};

/* Errors of the stream are left on the stream (ferror). */
void page_fill(const struct page_parts *p, FILE *out);
/* Add text for HTML: & < > " ' escaped, what is not seen as strbuf_addshown shows it. */
void page_add_text(struct strbuf *s, const char *text);
/* Add a head of the table: its class, and what it is sorted by (tools/page/script/table.js), NULL
 * for what is not sorted by. */
void page_add_column(struct strbuf *s, const char *kind, const char *sort, const char *title);

#endif
