/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain: the text of a CREATE statement without comments and without the white space that means
 * nothing, so that a reworded comment makes no other schema. Used by flatten.c at build time, and
 * where the schema of a file is compared with ours.
 */
#ifndef SONDE_SQL_PLAIN_H
#define SONDE_SQL_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool plain_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline bool plain_joins(char c)
{
	return c == '(' || c == ')' || c == ',' || !c;
}

/* Behind white space and comments. */
static inline const char *plain_skip(const char *p)
{
	for (;;) {
		while (plain_is_space(*p))
			p++;
		if (p[0] != '-' || p[1] != '-')
			return p;
		p += strcspn(p, "\n");
	}
}

/* The end of the quoted text that begins at p. */
static inline const char *plain_quoted(const char *p)
{
	const char *end = strchr(p + 1, *p);

	return end ? end + 1 : p + strlen(p);
}

/* `out` has room for strlen(sql) + 1. */
static inline void plain_sql(const char *sql, char *out)
{
	const char *p = plain_skip(sql);
	char last = '\0';

	while (*p) {
		const char *end = *p == '\'' || *p == '"' ? plain_quoted(p) : p + 1, *next;

		memcpy(out, p, (size_t)(end - p));
		out += end - p;
		last = end[-1];
		next = plain_skip(end);
		if (next != end && !plain_joins(last) && !plain_joins(*next))
			*out++ = ' ';
		p = next;
	}
	*out = '\0';
}

#endif
