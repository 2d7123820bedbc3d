/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_text: see the header. */
#include "loaders/lib/protocols/clickhouse_text.h"

#include <strings.h>

#include "loaders/lib/protocols/sql.h"

static const char *const WORDS[] = {
	"SELECT",   "INSERT", "WITH",   "CREATE",  "ALTER",    "DROP",   "SHOW",   "DESCRIBE",
	"DESC",     "EXISTS", "SYSTEM", "SET",     "TRUNCATE", "RENAME", "USE",    "EXPLAIN",
	"OPTIMIZE", "KILL",   "GRANT",  "REVOKE",  "ATTACH",   "DETACH", "DELETE", "UPDATE",
	"EXCHANGE", "CHECK",  "BACKUP", "RESTORE", "UNDROP",   NULL};

/* Past a text or a name in quotes that begins at i. */
static size_t past_quotes(const uint8_t *p, size_t n, size_t i)
{
	const uint8_t q = p[i];

	for (i++; i < n && p[i] != q; i++)
		i += p[i] == '\\';
	return i < n ? i + 1 : n;
}

/* Past a comment that begins at i; i: none does. */
static size_t past_comment(const uint8_t *p, size_t n, size_t i)
{
	const bool line = bytes_begin(p + i, n - i, "--");
	const uint8_t *end;

	if (!line && !bytes_begin(p + i, n - i, "/*"))
		return i;
	end = line ? memchr(p + i, '\n', n - i) : memmem(p + i + 2, n - i - 2, "*/", 2);
	return end ? (size_t)(end - p) + (line ? 1 : 2) : n;
}

static bool word_is(const uint8_t *p, size_t n, const char *word)
{
	return n == strlen(word) && !strncasecmp((const char *)p, word, n);
}

static size_t word_end(const uint8_t *p, size_t n, size_t i)
{
	while (i < n && (byte_is_letter(p[i]) || byte_is_digit(p[i]) || p[i] == '_'))
		i++;
	return i;
}

/* INSERT ... FORMAT NAME is followed by data. */
static size_t without_data(const uint8_t *p, size_t n)
{
	bool insert = false, first = true;
	size_t i = 0, end;

	while (i < n) {
		if (p[i] == '\'' || p[i] == '"' || p[i] == '`') {
			i = past_quotes(p, n, i);
			continue;
		}
		end = past_comment(p, n, i);
		if (end > i) {
			i = end;
			continue;
		}
		end = word_end(p, n, i);
		if (end == i) {
			i++;
			continue;
		}
		if (first)
			insert = word_is(p + i, end - i, "INSERT");
		first = false;
		if (insert && word_is(p + i, end - i, "FORMAT")) {
			while (end < n && p[end] <= ' ')
				end++;
			return word_end(p, n, end);
		}
		i = end;
	}
	return n;
}

uint32_t clickhouse_operation(struct proto_conn *c, const uint8_t *p, size_t n, bool cut)
{
	const size_t look = n < PROTO_LOOK ? n : PROTO_LOOK, see = without_data(p, look);
	char sql[SQL_MAX];

	sql_operation(p, see, see == look && (cut || look < n), SQL_CLICKHOUSE, proto_payload(c),
		      sql);
	return proto_name(c, *sql ? sql : "(empty)", *sql ? strlen(sql) : 7);
}

bool clickhouse_is_statement(const uint8_t *p, size_t n)
{
	size_t i = 0, end;

	while (i < n && (p[i] <= ' ' || p[i] == '('))
		i++;
	if (bytes_begin(p + i, n - i, "--") || bytes_begin(p + i, n - i, "/*"))
		return true;
	end = word_end(p, n, i);
	for (const char *const *w = WORDS; *w; w++)
		if (word_is(p + i, end - i, *w))
			return true;
	return false;
}

bool clickhouse_is_target(const uint8_t *target, size_t n)
{
	return n && target[0] == '/' && (n == 1 || target[1] == '?');
}

static int hex(uint8_t c)
{
	const uint8_t low = c | 0x20;

	return byte_is_digit(c) ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static size_t decoded(const uint8_t *p, size_t n, uint8_t out[PROTO_LOOK], bool *cut)
{
	size_t len = 0, i = 0;

	for (; i < n && len < PROTO_LOOK; i++) {
		uint8_t b = p[i] == '+' ? ' ' : p[i];

		if (p[i] == '%' && i + 2 < n && hex(p[i + 1]) >= 0 && hex(p[i + 2]) >= 0) {
			b = (uint8_t)(hex(p[i + 1]) << 4 | hex(p[i + 2]));
			i += 2;
		}
		out[len++] = b;
	}
	*cut = i < n;
	return len;
}

size_t clickhouse_parameter(const uint8_t *target, size_t n, uint8_t out[PROTO_LOOK], bool *cut)
{
	const uint8_t *end = target + n, *p = memchr(target, '?', n), *next;

	*cut = false;
	for (p = p ? p + 1 : end; p < end; p = next + 1) {
		next = memchr(p, '&', (size_t)(end - p));
		next = next ? next : end;
		if (bytes_begin(p, (size_t)(next - p), "query="))
			return decoded(p + 6, (size_t)(next - p) - 6, out, cut);
	}
	return 0;
}

size_t clickhouse_chunk(const uint8_t *p, size_t n, size_t *at)
{
	size_t whole, line = bytes_line(p, n < 64 ? n : 64, &whole), size = 0, i;

	if (line == SIZE_MAX)
		return 0;
	for (i = 0; i < line && hex(p[i]) >= 0; i++) {
		if (size >> 32)
			return 0;
		size = size << 4 | (size_t)hex(p[i]);
	}
	*at = whole;
	return i ? size : 0;
}
