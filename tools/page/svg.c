/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/svg.h"

#include <errno.h>
#include <inttypes.h>

#include "tools/page/page_fill.h"
#include "tools/print/term.h"

#define GLYPH 6.7 /* of a monospaced font of 11 points */

int svg_width_of(uint64_t asked, bool picture, unsigned *width, struct err *e)
{
	*width = asked ? (unsigned)asked : SVG_WIDTH;
	if (!asked || (picture && asked >= SVG_WIDTH_MIN && asked <= SVG_WIDTH_MAX))
		return 0;
	if (!picture)
		err_set(e, -EINVAL, EXIT_USAGE, "--width applies only to .svg");
	else
		err_set(e, -EINVAL, EXIT_USAGE,
			"an .svg must be %d to %d pixels wide, not %" PRIu64, SVG_WIDTH_MIN,
			SVG_WIDTH_MAX, asked);
	err_fix(e, "-o x.svg --width 1920");
	return -EINVAL;
}

void svg_frame(struct strbuf *s, double x, unsigned y, double width, const char *colour,
	       const char *title, const char *label)
{
	strbuf_addf(
		s,
		"<g><title>%s</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>",
		title, x, y, width > 1 ? width - 0.5 : width, SVG_ROW - 1, colour);
	if (width > 3 * GLYPH + 6) {
		struct strbuf name cleanup_strbuf = STRBUF_INIT;

		term_add_middle(&name, label, (size_t)((width - 6) / GLYPH));
		strbuf_addf(s, "<text x=\"%.2f\" y=\"%u\">", x + 3, y + 13);
		page_add_text(s, strbuf_str(&name));
		strbuf_addstr(s, "</text>");
	}
	strbuf_addstr(s, "</g>\n");
}

void svg_text(struct strbuf *s, unsigned x, unsigned y, unsigned size, const char *text)
{
	strbuf_addf(s, "<text x=\"%u\" y=\"%u\"", x, y);
	if (size)
		strbuf_addf(s, " font-size=\"%u\"", size);
	strbuf_addstr(s, ">");
	page_add_text(s, text);
	strbuf_addstr(s, "</text>\n");
}

void svg_write(unsigned width, unsigned height, const struct strbuf *head,
	       const struct strbuf *body, FILE *out)
{
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\" font-family=\"monospace\" font-size=\"11\" fill=\"#161616\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n%s%s</svg>\n",
		width, height, width, height, strbuf_str(head), strbuf_str(body));
}
