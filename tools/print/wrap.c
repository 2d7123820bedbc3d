/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: breaking sentences between words. */
#include "tools/print/wrap.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/print/term.h"

/* Columns of one word; ESC [ ... m takes none. */
static size_t word_columns(const char *word, size_t len)
{
	struct strbuf bare cleanup_strbuf = STRBUF_INIT;
	size_t i = 0;

	while (i < len) {
		if (word[i] == '\033') {
			while (i < len && word[i] != 'm')
				i++;
			i++;
		} else {
			strbuf_addch(&bare, word[i++]);
		}
	}
	return term_columns(strbuf_str(&bare));
}

void wrap_add(struct strbuf *out, const char *text, unsigned width, unsigned indent)
{
	size_t used = 0, spaces, len, columns;

	while (*text) {
		spaces = strspn(text, " ");
		len = strcspn(text + spaces, " ");
		columns = word_columns(text + spaces, len);
		if (width && used && used + spaces + columns > width) {
			strbuf_addf(out, "\n%*s", (int)indent, "");
			used = indent;
			text += spaces;
			spaces = 0;
		}
		strbuf_add(out, text, spaces + len);
		used += spaces + columns;
		text += spaces + len;
	}
}

void wrap_print(FILE *out, const char *text, unsigned indent)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	wrap_add(&s, text, term_is_tty(out) ? term_width(out) : 0, indent);
	fprintf(out, "%s\n", strbuf_str(&s));
}
