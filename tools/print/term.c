/* SPDX-License-Identifier: Apache-2.0 */
/* term: what a stream can show. */
#include "tools/print/term.h"
#include "schema/base/array.h"
#include "schema/base/cli/escapes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_mode;

int term_set_color(const char *mode)
{
	if (!mode || !strcmp(mode, "auto"))
		color_mode = COLOR_AUTO;
	else if (!strcmp(mode, "always"))
		color_mode = COLOR_ALWAYS;
	else if (!strcmp(mode, "never"))
		color_mode = COLOR_NEVER;
	else
		return -EINVAL;
	return 0;
}

/* The stream whose terminal is behind a pager, and how wide that is. */
static FILE *kept;
static unsigned kept_width;

bool term_is_tty(FILE *f)
{
	return f == kept || isatty(fileno(f));
}

void term_keep(FILE *f)
{
	kept_width = term_width(f);
	kept = f;
}

static bool env_set(const char *name)
{
	const char *v = getenv(name);

	return v && v[0];
}

bool term_has_color(FILE *f)
{
	if (color_mode != COLOR_AUTO)
		return color_mode == COLOR_ALWAYS;
	if (env_set("NO_COLOR"))
		return false;
	if (env_set("CLICOLOR_FORCE") && strcmp(getenv("CLICOLOR_FORCE"), "0"))
		return true;
	return term_is_tty(f) && escapes_known();
}

const char *term_on(FILE *f, enum term_color c)
{
	static const char *const codes[] = {
		[TERM_PLAIN] = "",        [TERM_BOLD] = "\033[1m",   [TERM_DIM] = "\033[2m",
		[TERM_RED] = "\033[31m",  [TERM_GREEN] = "\033[32m", [TERM_YELLOW] = "\033[33m",
		[TERM_CYAN] = "\033[36m",
	};

	return term_has_color(f) ? codes[c] : "";
}

const char *term_off(FILE *f)
{
	return term_has_color(f) ? "\033[0m" : "";
}

unsigned term_width(FILE *f)
{
	const char *columns = getenv("COLUMNS");
	struct winsize w;
	long n;

	if (f == kept && kept_width)
		return kept_width;
	if (term_is_tty(f) && !ioctl(fileno(f), TIOCGWINSZ, &w) && w.ws_col)
		return w.ws_col;
	n = columns ? strtol(columns, NULL, 10) : 0;
	return n >= 20 && n <= 2000 ? (unsigned)n : 100;
}

/* One character of valid UTF-8: its bytes, and its columns. */
static size_t utf8_next(const char *s, size_t *columns)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4, i;
	uint32_t c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));
	int w;

	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			len = i;
			break;
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	w = wcwidth((wchar_t)c);
	*columns = w < 0 ? 1 : (size_t)w;
	return len;
}

size_t term_columns(const char *s)
{
	size_t total = 0, w;

	while (*s) {
		s += utf8_next(s, &w);
		total += w;
	}
	return total;
}

/* Longest head of `s` in at most `columns`. */
static size_t head_bytes(const char *s, size_t columns)
{
	size_t used = 0, pos = 0, w, n;

	while (s[pos]) {
		n = utf8_next(s + pos, &w);
		if (used + w > columns)
			break;
		used += w;
		pos += n;
	}
	return pos;
}

/* Where the longest tail in at most `columns` begins. */
static size_t tail_start(const char *s, size_t columns)
{
	size_t total = term_columns(s), pos = 0, w;

	while (s[pos] && total > columns) {
		pos += utf8_next(s + pos, &w);
		total -= w;
	}
	return pos;
}

void term_add_middle(struct strbuf *out, const char *s, size_t columns)
{
	struct strbuf clean cleanup_strbuf = STRBUF_INIT;
	const char *text;
	size_t head;

	strbuf_addshown(&clean, s, strlen(s));
	text = strbuf_str(&clean);
	if (term_columns(text) <= columns || columns < 3) {
		strbuf_add(out, text, columns < 3 ? head_bytes(text, columns) : clean.len);
		return;
	}
	head = (columns - 1) / 2;
	strbuf_add(out, text, head_bytes(text, head));
	strbuf_addstr(out, "…");
	strbuf_addstr(out, text + tail_start(text, columns - 1 - head));
}

void term_printf(FILE *f, const char *fmt, ...)
{
	struct strbuf raw cleanup_strbuf = STRBUF_INIT, shown cleanup_strbuf = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&raw, fmt, ap);
	va_end(ap);
	strbuf_addlines(&shown, strbuf_str(&raw));
	fputs(strbuf_str(&shown), f);
}
