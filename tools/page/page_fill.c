/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/page_fill.h"

#include <string.h>

#include "schema/base/array.h"
#include "tools/page/hash.h"
#include "tools/page/page_blob.h"

void page_add_text(struct strbuf *s, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "&<>\"'");

		strbuf_addshown(s, text, n);
		text += n;
		if (!*text)
			return;
		strbuf_addf(s, "&#%d;", *text++);
	}
}

void page_add_column(struct strbuf *s, const char *kind, const char *sort, const char *title)
{
	strbuf_addf(s, "<th scope=\"col\" class=\"%s\">", kind);
	if (sort)
		strbuf_addf(s, "<span class=\"head\" data-sort=\"%s\">%s</span></th>\n", sort,
			    title);
	else
		strbuf_addf(s, "%s</th>\n", title);
}

struct part {
	const char *name;
	const char *text;
	size_t len;
};

/* The template with each @@NAME@@ replaced by its part. Replaced text is not searched again. */
static void template_fill(const struct part *parts, size_t n_parts, FILE *out)
{
	const char *at = page_html_begin, *end = page_html_end;

	while (at < end) {
		const char *mark = memmem(at, (size_t)(end - at), "@@", 2), *close;

		if (!mark) {
			fwrite(at, 1, (size_t)(end - at), out);
			return;
		}
		fwrite(at, 1, (size_t)(mark - at), out);
		mark += 2;
		close = memmem(mark, (size_t)(end - mark), "@@", 2);
		if (!close)
			return;
		for (size_t i = 0; i < n_parts; i++)
			if (strlen(parts[i].name) == (size_t)(close - mark) &&
			    !memcmp(parts[i].name, mark, (size_t)(close - mark)))
				fwrite(parts[i].text, 1, parts[i].len, out);
		at = close + 2;
	}
}

void page_fill(const struct page_parts *p, FILE *out)
{
	const struct part parts[] = {
		{"TITLE", p->title->buf, p->title->len},
		{"BRIEF", p->brief->buf, p->brief->len},
		{"FACTS", p->facts->buf, p->facts->len},
		{"COLUMNS", p->columns->buf, p->columns->len},
		{"ROWS", p->rows->buf, p->rows->len},
		{"DATA", p->data->buf, p->data->len},
		{"REPORT", p->report ? p->report->buf : "", p->report ? p->report->len : 0},
		{"REPORT_BELOW", p->report_below ? p->report_below->buf : "",
		 p->report_below ? p->report_below->len : 0},
		{"STYLE", page_css_begin, (size_t)(page_css_end - page_css_begin)},
		{"LOADER", page_loader_begin, (size_t)(page_loader_end - page_loader_begin)},
		{"SCRIPT", page_script_begin, (size_t)(page_script_end - page_script_begin)},
		{"STYLE_HASH", PAGE_STYLE_HASH, strlen(PAGE_STYLE_HASH)},
		{"LOADER_HASH", PAGE_LOADER_HASH, strlen(PAGE_LOADER_HASH)},
		{"SCRIPT_HASH", PAGE_SCRIPT_HASH, strlen(PAGE_SCRIPT_HASH)},
	};

	template_fill(parts, ARRAY_SIZE(parts), out);
}
