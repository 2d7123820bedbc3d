/* SPDX-License-Identifier: Apache-2.0 */
/* suggest: restricted Damerau-Levenshtein distance over three rows; names longer than 63 bytes are
 * not compared. */
#include "schema/base/cli/suggest.h"
#include "schema/base/array.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define NEAR_MAX 64

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

size_t suggest_distance(const char *a, const char *b, size_t limit)
{
	size_t la = strlen(a), lb = strlen(b), i, j;
	size_t rows[3][NEAR_MAX];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	if (la >= NEAR_MAX || lb >= NEAR_MAX || (la > lb ? la - lb : lb - la) > limit)
		return limit + 1;
	memset(rows, 0, sizeof(rows));
	for (j = 0; j <= lb; j++)
		last[j] = j;
	for (i = 1; i <= la; i++) {
		size_t *spare = before;

		row[0] = i;
		for (j = 1; j <= lb; j++) {
			size_t swap;

			row[j] = min3(last[j] + 1, row[j - 1] + 1,
				      last[j - 1] + !same(a[i - 1], b[j - 1]));
			swap = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
			       same(a[i - 2], b[j - 1]);
			if (swap && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[lb] > limit ? limit + 1 : last[lb];
}

void suggest_init(struct suggest *n, const char *typed)
{
	size_t len = strlen(typed);

	memset(n, 0, sizeof(*n));
	n->typed = typed;
	n->limit = len <= 4 ? 1 : len <= 8 ? 2 : 3;
}

/* What begins with, or holds, what was typed is near too, whatever its length. */
static size_t near_measure(const struct suggest *n, const char *candidate)
{
	if (strlen(n->typed) >= 3 && strcasestr(candidate, n->typed))
		return 1;
	return suggest_distance(n->typed, candidate, n->limit);
}

void suggest_add(struct suggest *n, const char *candidate)
{
	size_t d = near_measure(n, candidate), i, room = ARRAY_SIZE(n->best);

	if (!candidate[0] || d > n->limit || d >= strlen(candidate))
		return;
	for (i = 0; i < n->n; i++)
		if (!strcmp(n->best[i], candidate))
			return;
	for (i = 0; i < n->n && n->best_distance[i] <= d; i++)
		;
	if (i == room)
		return;
	if (n->n < room)
		n->n++;
	memmove(&n->best[i + 1], &n->best[i], (n->n - i - 1) * sizeof(n->best[0]));
	memmove(&n->best_distance[i + 1], &n->best_distance[i],
		(n->n - i - 1) * sizeof(n->best_distance[0]));
	n->best[i] = candidate;
	n->best_distance[i] = d;
}

void suggest_say(const struct suggest *n, struct strbuf *out, const char *prefix)
{
	size_t i;

	if (!n->n)
		return;
	strbuf_addstr(out, "; did you mean ");
	for (i = 0; i < n->n; i++) {
		strbuf_addf(out, "%s'%s", i ? ", " : "", prefix);
		strbuf_addshown(out, n->best[i], strlen(n->best[i]));
		strbuf_addch(out, '\'');
	}
	strbuf_addch(out, '?');
}
