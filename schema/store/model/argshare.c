/* SPDX-License-Identifier: Apache-2.0 */
/* argshare: the longest prefix, then the longest suffix, cut at characters; the stem that occurs
 * most often. */
#include "schema/store/model/argshare.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define STEMS  8 /* how many file names are distinguished */
#define SUFFIX 4 /* letters behind the dot, at most */

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t characters(const char *s, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += !continues(s[i]);
	return n;
}

struct argshare argshare_of(const char *base, const char *args)
{
	size_t base_len = strlen(base), len = strlen(args), prefix = 0, suffix = 0;
	size_t most = base_len < len ? base_len : len;

	while (prefix < most && base[prefix] == args[prefix])
		prefix++;
	while (prefix && (continues(args[prefix]) || continues(base[prefix])))
		prefix--;
	while (suffix < most - prefix && base[base_len - suffix - 1] == args[len - suffix - 1])
		suffix++;
	while (suffix && continues(args[len - suffix]))
		suffix--;
	return (struct argshare){
		.keep = characters(args, prefix),
		.end = characters(args + len - suffix, suffix),
		.middle = args + prefix,
		.middle_bytes = len - prefix - suffix,
	};
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* Behind the dot of `args`: a short suffix, and no more of that name. */
static bool is_suffix(const char *p)
{
	size_t n = 0;

	while (in_name(p[n]) && n <= SUFFIX)
		n++;
	return n && n <= SUFFIX && p[n] != '.' && p[n] != '/';
}

struct stem {
	const char *s;
	size_t len, n;
};

static void stem_count(struct stem *stems, size_t *n_stems, const char *s, size_t len)
{
	size_t i = 0;

	while (i < *n_stems && (stems[i].len != len || memcmp(stems[i].s, s, len) != 0))
		i++;
	if (i == STEMS)
		return;
	if (i == *n_stems)
		stems[(*n_stems)++] = (struct stem){.s = s, .len = len};
	stems[i].n++;
}

size_t argshare_stem(const char *args, const char **stem)
{
	struct stem stems[STEMS], best = {.n = 1};
	size_t n_stems = 0, len;

	for (const char *p = args; *p; p += len ? len : 1) {
		for (len = 0; in_name(p[len]);)
			len++;
		if (len && p[len] == '.' && is_suffix(p + len + 1) && (p == args || p[-1] != '.'))
			stem_count(stems, &n_stems, p, len);
	}
	for (size_t i = 0; i < n_stems; i++)
		if (stems[i].n > best.n ||
		    (stems[i].n == best.n && best.s && stems[i].len > best.len))
			best = stems[i];
	if (best.s)
		*stem = best.s;
	return best.len;
}

void argshare_form(const char *args, const char *stem, size_t len, struct strbuf *out)
{
	size_t n;

	for (const char *p = args; *p; p += n) {
		for (n = 0; in_name(p[n]);)
			n++;
		if (n == len && memcmp(p, stem, len) == 0)
			strbuf_addch(out, ARGSHARE_MARK);
		else
			strbuf_add(out, p, n ? n : 1);
		n += !n;
	}
}

static size_t bytes_of_first(const char *s, size_t characters)
{
	size_t i = 0;

	for (size_t n = 0; s[i]; i++)
		if (!continues(s[i]) && n++ == characters)
			break;
	return i;
}

static size_t bytes_of_last(const char *s, size_t len, size_t characters)
{
	size_t i = len;

	for (size_t n = 0; i && n < characters; i--)
		n += !continues(s[i - 1]);
	return len - i;
}

/* Puts the stem back at its marks. */
static void add_unmarked(struct strbuf *out, const char *s, size_t len, const char *stem,
			 size_t stem_len)
{
	const char *mark;

	for (; stem_len && (mark = memchr(s, ARGSHARE_MARK, len));
	     len -= (size_t)(mark + 1 - s), s = mark + 1) {
		strbuf_add(out, s, (size_t)(mark - s));
		strbuf_add(out, stem, stem_len);
	}
	strbuf_add(out, s, len);
}

void argshare_whole(const char *base, size_t keep, const char *own, size_t end, struct strbuf *out)
{
	const char *second = *own == ARGSHARE_MARK ? strchr(own + 1, ARGSHARE_MARK) : NULL;
	const char *stem = own + 1, *middle = second ? second + 1 : own;
	size_t stem_len = second ? (size_t)(second - stem) : 0, base_len = strlen(base);
	size_t last = bytes_of_last(base, base_len, end);

	add_unmarked(out, base, bytes_of_first(base, keep), stem, stem_len);
	add_unmarked(out, middle, strlen(middle), stem, stem_len);
	add_unmarked(out, base + base_len - last, last, stem, stem_len);
}
