/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/tables/alike.h"

#include <string.h>

struct word {
	const char *s;
	size_t len;
};

/* "": there are no more. */
static struct word next(const char **at)
{
	struct word w = {*at, strcspn(*at, " ")};

	*at += w.len;
	*at += **at == ' ';
	return w;
}

static bool is_star(struct word w)
{
	return w.len == 1 && *w.s == '*';
}

static bool same(struct word a, struct word b)
{
	return a.len == b.len && !memcmp(a.s, b.s, a.len);
}

bool alike(const char *a, const char *b, size_t most, char *general, size_t size)
{
	size_t equal = 0, other = 0, len = 0;

	while (*a && *b) {
		struct word x = next(&a), y = next(&b),
			    out = same(x, y) ? x : (struct word){"*", 1};

		if (!is_star(x) && !is_star(y)) {
			equal += same(x, y) ? 1 : 0;
			other += same(x, y) ? 0 : 1;
		}
		if (other > most)
			return false;
		if (!general)
			continue;
		if (len + out.len + 2 > size)
			return false;
		if (len)
			general[len++] = ' ';
		memcpy(general + len, out.s, out.len);
		len += out.len;
		general[len] = 0;
	}
	return !*a && !*b && equal >= 2 && equal >= 2 * other;
}
