/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/protocols/grpcweb.h"

#include <string.h>
#include <strings.h>

#include "loaders/lib/protocols/bytes.h"
#include "schema/base/array.h"

#define TYPE       "application/grpc-web"
#define STATUS     "grpc-status:"
#define TRAILERS   0x80
#define FRAME_HEAD 5
#define TRIES      16 /* places that may begin the trailers: more only who wants to keep us busy has */

enum grpcweb_form grpcweb_form(const uint8_t *type, size_t n)
{
	const size_t m = strlen(TYPE);

	if (n < m || strncasecmp((const char *)type, TYPE, m))
		return GRPCWEB_NOT;
	if (n >= m + 5 && !strncasecmp((const char *)type + m, "-text", 5))
		return GRPCWEB_TEXT;
	return n == m || type[m] == '+' || type[m] == ';' ? GRPCWEB_BINARY : GRPCWEB_NOT;
}

void grpcweb_keep(struct grpcweb_tail *t, const uint8_t *p, size_t n)
{
	t->cut |= t->n + n > GRPCWEB_TAIL;
	if (n >= GRPCWEB_TAIL) {
		memcpy(t->bytes, p + n - GRPCWEB_TAIL, GRPCWEB_TAIL);
		t->n = GRPCWEB_TAIL;
		return;
	}
	if (t->n + n > sizeof(t->bytes)) {
		memmove(t->bytes, t->bytes + t->n - GRPCWEB_TAIL, GRPCWEB_TAIL);
		t->n = GRPCWEB_TAIL;
	}
	memcpy(t->bytes + t->n, p, n);
	t->n += n;
}

/* The status among lines of trailers. */
static int status_of(const uint8_t *p, size_t n)
{
	const size_t m = strlen(STATUS);

	for (size_t at = 0, end; at < n; at = end + 1) {
		const uint8_t *lf = memchr(p + at, '\n', n - at);
		size_t i = at + m;
		int code = 0;

		end = lf ? (size_t)(lf - p) : n;
		if (end - at <= m || strncasecmp((const char *)p + at, STATUS, m))
			continue;
		while (i < end && p[i] == ' ')
			i++;
		if (i == end || !byte_is_digit(p[i]))
			return GRPCWEB_NONE;
		for (; i < end && byte_is_digit(p[i]) && code < 1000; i++)
			code = code * 10 + (p[i] - '0');
		return code;
	}
	return GRPCWEB_NONE;
}

static int binary_status(const uint8_t *p, size_t n)
{
	int tries = TRIES;

	if (n > GRPCWEB_TAIL + FRAME_HEAD) {
		p += n - GRPCWEB_TAIL - FRAME_HEAD;
		n = GRPCWEB_TAIL + FRAME_HEAD;
	}
	for (size_t i = n < FRAME_HEAD ? 0 : n - FRAME_HEAD + 1; i-- && tries;)
		if (p[i] == TRAILERS && be32(p + i + 1) == n - i - FRAME_HEAD) {
			const int code = status_of(p + i + FRAME_HEAD, n - i - FRAME_HEAD);

			if (code != GRPCWEB_NONE)
				return code;
			tries--;
		}
	return GRPCWEB_NONE;
}

/* The value of a character of base64; 64: '='; -1: another character. */
static int sextet(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' :
	       c >= 'a' && c <= 'z' ? c - 'a' + 26 :
	       byte_is_digit(c)     ? c - '0' + 52 :
	       c == '+'             ? 62 :
	       c == '/'             ? 63 :
	       c == '='             ? 64 :
				      -1;
}

/* Four characters as up to three bytes; 0: they are not base64. */
static size_t quad(const uint8_t *p, uint8_t out[3])
{
	uint32_t v = 0;
	size_t pads = 0;

	for (int i = 0; i < 4; i++) {
		const int s = sextet(p[i]);

		if (s < 0 || (pads && s < 64))
			return 0;
		pads += s == 64;
		v = v << 6 | (uint32_t)(s & 63);
	}
	out[0] = (uint8_t)(v >> 16);
	out[1] = (uint8_t)(v >> 8);
	out[2] = (uint8_t)v;
	return pads < 3 ? 3 - pads : 0;
}

static int text_status(const uint8_t *p, size_t n)
{
	uint8_t plain[GRPCWEB_TAIL / 4 * 3 + 3];
	size_t len = 0, at;

	while (n && (p[n - 1] == '\r' || p[n - 1] == '\n'))
		n--;
	at = n > GRPCWEB_TAIL ? n - GRPCWEB_TAIL : 0;
	for (at += (n - at) % 4; at + 4 <= n; at += 4) {
		const size_t k = quad(p + at, plain + len);

		if (!k) /* the begin of the tail lies within a part that another one ends */
			len = 0;
		len += k;
	}
	return binary_status(plain, len);
}

int grpcweb_status(enum grpcweb_form form, const uint8_t *p, size_t n)
{
	return form == GRPCWEB_BINARY ? binary_status(p, n) :
	       form == GRPCWEB_TEXT   ? text_status(p, n) :
					GRPCWEB_NONE;
}

const char *grpc_code_name(int code)
{
	static const char *const names[] = {"OK",
					    "CANCELLED",
					    "UNKNOWN",
					    "INVALID_ARGUMENT",
					    "DEADLINE_EXCEEDED",
					    "NOT_FOUND",
					    "ALREADY_EXISTS",
					    "PERMISSION_DENIED",
					    "RESOURCE_EXHAUSTED",
					    "FAILED_PRECONDITION",
					    "ABORTED",
					    "OUT_OF_RANGE",
					    "UNIMPLEMENTED",
					    "INTERNAL",
					    "UNAVAILABLE",
					    "DATA_LOSS",
					    "UNAUTHENTICATED"};

	return code >= 0 && code < (int)ARRAY_SIZE(names) ? names[code] : names[GRPC_CODE_UNKNOWN];
}
