/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/scrape/http_head.h"

#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1.x NNN" */
static bool status_line(const char *s, size_t len, unsigned int *status)
{
	if (len < 12 || memcmp(s, "HTTP/1.", 7) || !is_digit(s[7]) || s[8] != ' ')
		return false;
	for (int i = 9; i < 12; i++)
		if (!is_digit(s[i]))
			return false;
	*status = (unsigned int)((s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0'));
	return *status >= 100;
}

static bool begins(const char *line, size_t len, const char *head)
{
	size_t n = strlen(head);

	return len >= n && !strncasecmp(line, head, n);
}

static uint64_t number(const char *s, size_t len)
{
	uint64_t v = 0;

	while (len && (*s == ' ' || *s == '\t'))
		s++, len--;
	for (; len && is_digit(*s) && v < UINT64_MAX / 16; s++, len--)
		v = v * 10 + (uint64_t)(*s - '0');
	return v;
}

/* The length of a line without its end; *next: where the next one begins. */
static bool line_at(const char *bytes, size_t len, size_t at, size_t *n, size_t *next)
{
	const char *nl = memchr(bytes + at, '\n', len - at);

	if (!nl)
		return false;
	*next = (size_t)(nl - bytes) + 1;
	*n = *next - 1 - at;
	if (*n && bytes[at + *n - 1] == '\r')
		(*n)--;
	return true;
}

enum http_head_state http_head_head(const char *bytes, size_t len, struct http_head *out)
{
	static const char length[] = "Content-Length:", coding[] = "Transfer-Encoding:";
	struct http_head a = {.length = UINT64_MAX};
	size_t at, n, next;
	bool coded = false;

	if (len >= 5 && memcmp(bytes, "HTTP/", 5))
		return ANSWER_NO_HTTP;
	if (!line_at(bytes, len, 0, &n, &at))
		return len > HTTP_HEAD_MAX ? ANSWER_NO_HTTP : ANSWER_MORE;
	if (!status_line(bytes, n, &a.status))
		return ANSWER_NO_HTTP;
	for (;; at = next) {
		if (at > HTTP_HEAD_MAX)
			return ANSWER_NO_HTTP;
		if (!line_at(bytes, len, at, &n, &next))
			return len - at > HTTP_HEAD_MAX ? ANSWER_NO_HTTP : ANSWER_MORE;
		if (!n)
			break;
		if (begins(bytes + at, n, length))
			a.length =
				number(bytes + at + sizeof(length) - 1, n - (sizeof(length) - 1));
		coded |= begins(bytes + at, n, coding);
	}
	a.body = next;
	a.tls = a.status == 400 &&
		memmem(bytes + next, len - next, "HTTP request to an HTTPS server", 31);
	*out = a;
	return coded ? ANSWER_CHUNKED : ANSWER_OK;
}

/* The number nearest before `end`, of a row of the page. */
static bool number_before(const char *page, const char *end, uint64_t *v)
{
	const char *p = end, *from = end - page > 200 ? end - 200 : page;
	const char *first;

	/* back over the link to its beginning, then to the cell before it */
	while (p > from && !(*p == '<' && (p[1] == 'a' || p[1] == 'A')))
		p--;
	while (p > from && !is_digit(p[-1]))
		p--;
	if (p == from)
		return false;
	for (first = p; first > from && is_digit(first[-1]); first--)
		;
	*v = number(first, (size_t)(p - first));
	return true;
}

bool http_head_index(const char *page, size_t len, uint64_t *goroutines)
{
	static const char link[] = "goroutine?debug=1";
	const char *at = memmem(page, len, link, sizeof(link) - 1);

	return at && memmem(page, len, "/debug/pprof/", 13) && number_before(page, at, goroutines);
}
