/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "loaders/lib/host/secrets/prose.h"

#include <string.h>

#include "loaders/lib/host/secrets/names.h"

#define FAR     256 /* a rule looks so far ahead */
#define COLUMNS 16  /* of a key */

static char at(struct view v, size_t i)
{
	return i < v.n ? v.p[i] : 0;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static struct span span(struct view v, size_t from, size_t to)
{
	return (struct span){v.p + from, to - from};
}

static size_t skip_blanks(struct view v, size_t i)
{
	while (blank(at(v, i)))
		i++;
	return i;
}

static size_t skip_name(struct view v, size_t i)
{
	while (i < v.n && name_char(v.p[i]))
		i++;
	return i;
}

static size_t word_end(struct view v, size_t i)
{
	while (i < v.n && !blank(v.p[i]) && v.p[i] != '\n' && v.p[i] != '\r')
		i++;
	return i;
}

static size_t line_end(struct view v, size_t i)
{
	const char *newline = i < v.n ? memchr(v.p + i, '\n', v.n - i) : NULL;

	return newline ? (size_t)(newline - v.p) : v.n;
}

/* A string in quotes, with or without backslashes before them: is there one at `i`? Hides what is
 * in it. Returns where it ends, behind its quote; 0: no string begins there. */
static size_t hide_string(struct hidden *h, struct view v, size_t i, bool hide)
{
	size_t level = 0, run = 0, begin;
	char q;

	while (at(v, i + level) == '\\')
		level++;
	q = at(v, i + level);
	if (!quote(q))
		return 0;
	begin = i + level + 1;
	for (i = begin; i < v.n && !(v.p[i] == q && run <= level); i++)
		run = v.p[i] == '\\' ? run + 1 : 0;
	if (hide)
		view_hide(h, v, begin, i > begin + level && i < v.n ? i - level : i);
	return i < v.n ? i + 1 : v.n;
}

/* No word of a language. */
static bool is_no_word(struct span s)
{
	bool letter = false, number = false, mark = false, other = false;

	while (s.n && strchr(".,;:!?)]}\"'", s.p[s.n - 1]))
		s.n--;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		letter |= isalpha(c) != 0 || c >= 0x80;
		number |= isdigit(c) != 0;
		mark |= c && strchr("$!#^&*+=~?@<>|\\%", c) && i;
		other |= !isdigit(c);
	}
	return s.n >= 4 && ((letter && (number || mark)) || (number && !other));
}

/* ---- 1: terms ---- */

/* `end` is behind the name. Returns where the value ended, or 0. */
static size_t term(struct hidden *h, struct view v, size_t begin, size_t end)
{
	bool binary = begin > 2 && !memcmp(v.p + begin - 3, "<<\"", 3);
	size_t i = end;

	if (begin && v.p[begin - 1] == ':' && blank(at(v, end)))
		return hide_string(h, v, skip_blanks(v, end), true);
	if (binary && (v.n - i < 3 || memcmp(v.p + i, "\">>", 3) != 0))
		return 0;
	i += binary ? 3 : 0;
	if (at(v, i) != ',' || (!binary && (!begin || v.p[begin - 1] != '{')))
		return 0;
	i = skip_blanks(v, i + 1);
	i += at(v, i) == '<' && at(v, i + 1) == '<' ? 2 : 0;
	return hide_string(h, v, i, true);
}

/* ---- 2: percent-encoded ---- */

static size_t encoded(struct hidden *h, struct view v, size_t begin, size_t end)
{
	size_t i = end;

	/* "bob%26password": the two digits belong to what is before */
	if (begin && v.p[begin - 1] == '%' && end - begin > 2 &&
	    isxdigit((unsigned char)v.p[begin]) && isxdigit((unsigned char)v.p[begin + 1]))
		begin += 2;
	if (v.n - i < 4 || v.p[i] != '%' || v.p[i + 1] != '3' || (v.p[i + 2] | 0x20) != 'd' ||
	    !name_is_secret_parameter(span(v, begin, end)))
		return 0;
	i += 3;
	for (begin = i; i < v.n && !blank(v.p[i]) && !quote(v.p[i]) && v.p[i] != '&' &&
			v.p[i] != '\n' && !(v.n - i > 2 && !memcmp(v.p + i, "%26", 3));)
		i++;
	view_hide(h, v, begin, i);
	return i;
}

/* ---- 3: keys of PostgreSQL ---- */

/* "Key" ends at `end`. */
static size_t key(struct hidden *h, struct view v, size_t end)
{
	size_t i = end + 2, most = end + FAR < v.n ? end + FAR : v.n, begin;
	bool secret = false;

	if (at(v, end) != ' ' || at(v, end + 1) != '(')
		return 0;
	for (int n = 0; n < COLUMNS && i < most && v.p[i] != ')'; n++) {
		begin = i;
		while (i < most && v.p[i] != ',' && v.p[i] != ')')
			i++;
		while (begin < i && !name_char(v.p[begin]))
			begin++;
		secret |= name_is_secret(span(v, begin, skip_name(v, begin)));
		i += at(v, i) == ',';
	}
	if (!secret || v.n - i < 3 || memcmp(v.p + i, ")=(", 3) != 0)
		return 0;
	begin = i + 3;
	end = line_end(v, begin);
	for (i = end; i > begin && v.p[i - 1] != ')';) /* a value may have brackets */
		i--;
	end = i > begin ? i - 1 : end;
	view_hide(h, v, begin, end);
	return end;
}

/* MariaDB has it the other way round: "Duplicate entry 'X' for key 'token'". */
static size_t duplicate(struct hidden *h, struct view v, size_t end)
{
	static const char entry[] = " entry '", for_key[] = "' for key '";
	size_t begin = end + sizeof(entry) - 1, last = line_end(v, end), name, stop;
	const char *found;

	if (last < begin || memcmp(v.p + end, entry, sizeof(entry) - 1) != 0)
		return 0;
	found = memmem(v.p + begin, last - begin, for_key, sizeof(for_key) - 1);
	if (!found)
		return 0;
	stop = (size_t)(found - v.p);
	name = stop + sizeof(for_key) - 1;
	if (!name_is_secret(span(v, name, skip_name(v, name))))
		return 0;
	view_hide(h, v, begin, stop);
	return stop;
}

/* ---- 4: words in quotes ---- */

static size_t listed(struct hidden *h, struct view v, size_t begin, size_t end)
{
	bool all = span_in(span(v, begin, end), "auth setuser migrate");
	size_t i = end, last = line_end(v, end), next;

	if (!begin || !quote(v.p[begin - 1]) || (!all && !name_is_secret(span(v, begin, end))))
		return 0;
	while (at(v, i) == '\\')
		i++;
	if (at(v, i) != v.p[begin - 1] || !blank(at(v, i + 1)))
		return 0;
	next = hide_string(h, v, skip_blanks(v, i + 1), true);
	for (i = next; all && i && i < last; next = i ? i : next)
		i = hide_string(h, v, skip_blanks(v, i), true);
	return next;
}

/* ---- 5: protocols ---- */

static size_t hide_word(struct hidden *h, struct view v, size_t i, bool any)
{
	size_t end = word_end(v, i), stop = end;

	while (stop > i && quote(v.p[stop - 1]))
		stop--;
	if (stop == i || (!any && !is_no_word(span(v, i, stop))))
		return 0;
	view_hide(h, v, i, stop);
	return end;
}

static size_t protocol(struct hidden *h, struct view v, size_t begin, size_t end)
{
	struct span word = span(v, begin, end);
	size_t i = skip_blanks(v, end), stop = word_end(v, i);

	if (i == end || i >= v.n)
		return 0;
	if (word.n == 4 && !memcmp(word.p, "PASS", 4))
		return hide_word(h, v, i, false);
	if (word.n == 5 && !memcmp(word.p, "LOGIN", 5) && blank(at(v, stop)))
		return hide_word(h, v, skip_blanks(v, stop), false);
	if (word.n == 4 && !memcmp(word.p, "AUTH", 4) && blank(at(v, stop)) &&
	    span_in(span(v, i, stop), "plain login xoauth2 oauthbearer external cram-md5"))
		return hide_word(h, v, skip_blanks(v, stop), true);
	return 0;
}

/* ---- 6: sentences ---- */

static bool is_made(struct view v, size_t from, size_t to)
{
	for (size_t i = from; i < to;) {
		size_t end = skip_name(v, i);

		if (end > i &&
		    span_in(span(v, i, end), "generated temporary initial new default root"))
			return true;
		i = end > i ? end : i + 1;
	}
	return false;
}

/* "A temporary password is generated for root@localhost: X": the last word of the line, alone
 * behind its colon. */
static size_t made(struct hidden *h, struct view v, size_t begin, size_t end)
{
	size_t last = line_end(v, end), next = skip_blanks(v, end), i, line = begin;

	while (line && v.p[line - 1] != '\n' && begin - line < FAR)
		line--;
	while (last > end && (blank(v.p[last - 1]) || v.p[last - 1] == '\r'))
		last--;
	for (i = last; i > end && !blank(v.p[i - 1]);)
		i--;
	if (last - end > FAR || i <= end + 2 || v.p[i - 2] != ':' ||
	    !(is_made(v, line, i) || span_is(span(v, next, skip_name(v, next)), "for")))
		return 0;
	return is_no_word(span(v, i, last)) ? hide_word(h, v, i, false) : 0;
}

static size_t sentence(struct hidden *h, struct view v, size_t begin, size_t end)
{
	size_t i = skip_blanks(v, end), stop = skip_name(v, i), string;

	if (i == end)
		return 0;
	if (quote(at(v, i))) {
		string = hide_string(h, v, i, false);
		return string > i + 2 && is_no_word(span(v, i + 1, string - 1)) ?
			       hide_string(h, v, i, true) :
			       0;
	}
	if (span_in(span(v, i, stop), "is was")) {
		stop += at(v, stop) == ':';
		string = skip_blanks(v, stop);
		if (string > stop && is_no_word(span(v, string, word_end(v, string))))
			return hide_word(h, v, string, false);
	}
	/* "initialAdminPassword X" */
	stop = word_end(v, i);
	if (stop == line_end(v, i) && end - begin > 8 &&
	    span_is(span(v, end - 8, end), "password") && is_no_word(span(v, i, stop)))
		return hide_word(h, v, i, false);
	return made(h, v, begin, end);
}

/* ---- all of it ---- */

static size_t name(struct hidden *h, struct view v, size_t begin)
{
	size_t end = skip_name(v, begin), next;
	struct span s = span(v, begin, end);

	next = encoded(h, v, begin, end);
	if (!next)
		next = listed(h, v, begin, end);
	if (!next)
		next = protocol(h, v, begin, end);
	if (!next && s.n == 3 && !memcmp(s.p, "Key", 3))
		next = key(h, v, end);
	if (!next && s.n == 9 && !memcmp(s.p, "Duplicate", 9))
		next = duplicate(h, v, end);
	if (!next && name_is_secret(s)) {
		next = term(h, v, begin, end);
		if (!next)
			next = sentence(h, v, begin, end);
	}
	return next ? next : end;
}

void prose_scan(struct hidden *h, struct view v)
{
	for (size_t i = 0; i < v.n;)
		i = name_char(v.p[i]) ? name(h, v, i) : i + 1;
}
