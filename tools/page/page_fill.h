/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_fill: fills the page's template (tools/page/page.html) for a report. A report is a flame
 * graph (flame_html) or a difference (diff_html); both are one page with one script.
 */
#ifndef SONDE_TOOLS_PAGE_FILL_H
#define SONDE_TOOLS_PAGE_FILL_H

#include <stdio.h>

#include "schema/base/strbuf.h"

#define PAGE_TABLE_ROWS 20 /* rows of the plain table, for browsers without scripting */

struct page_parts { /* HTML; names in it went through page_add_text */
	const struct strbuf *title;
	const struct strbuf *brief; /* the facts in one line */
	const struct strbuf *facts, *columns, *rows;
	const struct strbuf *data; /* flame_pack */
	const struct strbuf *report,
		*report_below; /* HTML above and below the graphs; NULL: nothing */
};

/* Errors of the stream are left on the stream (ferror). */
void page_fill(const struct page_parts *p, FILE *out);
/* Adds text for HTML: & < > " ' escaped, invisible characters as strbuf_addshown shows them. */
void page_add_text(struct strbuf *s, const char *text);
/* Adds a column head: its class and sort key (tools/page/script/table.js), NULL: not sortable. */
void page_add_column(struct strbuf *s, const char *kind, const char *sort, const char *title);

#endif
