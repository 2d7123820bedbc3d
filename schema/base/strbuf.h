/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strbuf: a growing string, always NUL-terminated. strbuf_init / strbuf_release pair up; a zeroed
 * struct is a valid empty one. Out of memory aborts the program: callers keep these strings small.
 */
#ifndef SONDE_BASE_STRBUF_H
#define SONDE_BASE_STRBUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf {
	char *buf;  /* NULL or NUL-terminated */
	size_t len; /* without the NUL */
	size_t cap;
};

#define STRBUF_INIT \
	{           \
		0   \
	}
#define cleanup_strbuf __attribute__((cleanup(strbuf_release)))

void strbuf_release(struct strbuf *s);
void strbuf_reset(struct strbuf *s); /* to "", keeps the memory */
void strbuf_add(struct strbuf *s, const void *data, size_t len);
void strbuf_addch(struct strbuf *s, char c);
void strbuf_addstr(struct strbuf *s, const char *str);
void strbuf_addu(struct strbuf *s,
		 uint64_t v); /* in decimal digits: like addf's "%u", but faster */
void strbuf_addf(struct strbuf *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *s, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Borrowed; "" when empty. */
const char *strbuf_str(const struct strbuf *s);
/* The buffer is the caller's (free it); `s` is empty again. Never NULL. */
char *strbuf_take(struct strbuf *s);
/* Add bytes as valid UTF-8: invalid sequences become U+FFFD, control bytes below 0x20 and 0x7f
 * become \xNN. */
void strbuf_addutf8(struct strbuf *s, const void *data, size_t len);
/*
 * The same for terminals, logs and assistants: control characters, those that reorder text and
 * invisible ones become visible and have no effect. In addition to the above, C1 controls, line
 * and paragraph separators, Unicode's Bidi_Control characters, spaces without a width and tags
 * become escapes such as \u009b and \U000e0041. Applying it twice changes nothing.
 */
void strbuf_addshown(struct strbuf *s, const void *data, size_t len);
void strbuf_addlines(struct strbuf *s,
		     const char *text); /* the same for text of several lines: keeps line ends */

#endif
