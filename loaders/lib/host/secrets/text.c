/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/secrets/text.h"

#include <string.h>

#include "loaders/lib/host/secrets/names.h"
#include "loaders/lib/host/secrets/shapes.h"

enum sql { SQL_NONE, SQL_STATEMENT, SQL_IDENTIFIED, SQL_VALUE, SQL_INSERT, SQL_VALUES };

struct scan {
	struct hidden *h;
	struct view v;
	enum text_kind kind;
	enum sql sql;
	bool pragma, columns; /* PRAGMA was seen; an INSERT names a column of secrets */
	size_t no_at;         /* no '@' before here */
	size_t path_end;      /* the path of a URL was looked at up to here */
	size_t named;         /* up to here a "value" is that of a secret, as a "name" said */
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static char at(struct view v, size_t i)
{
	return i < v.n ? v.p[i] : 0;
}

static struct span span(struct view v, size_t from, size_t to)
{
	return (struct span){v.p + from, to - from};
}

static size_t skip_blanks(struct view v, size_t i)
{
	while (i < v.n && blank(v.p[i]))
		i++;
	return i;
}

static size_t skip_name(struct view v, size_t i)
{
	while (i < v.n && name_char(v.p[i]))
		i++;
	return i;
}

bool text_hide_after(struct hidden *h, struct view v, char separator)
{
	const char *s = memchr(v.p, separator, v.n);

	if (!s)
		return false;
	view_hide(h, v, (size_t)(s - v.p) + 1, v.n);
	return true;
}

/* ---- values ---- */

/* Backslashes from `i` on. */
static size_t backslashes(struct view v, size_t i)
{
	size_t k = 0;

	while (at(v, i + k) == '\\')
		k++;
	return k;
}

/* Hide a string in quotes, whose opening quote at `i` has `level` backslashes before it: it ends at
 * the same quote with as many, where those of quotes inside are doubled. Returns the end: the
 * position of the closing backslashes. */
static size_t hide_quoted(struct scan *s, size_t i, size_t level)
{
	struct view v = s->v;
	char q = v.p[i];
	size_t begin = i + 1, run = 0;

	for (i++; i < v.n; i++) {
		if (v.p[i] == '\\') {
			run++;
			continue;
		}
		if (v.p[i] == q && (run <= level || (run - level) % (2 * (level + 1)) == 0)) {
			size_t end = i - (run < level ? run : level);

			if (!level && !run && i > begin && at(v, i + 1) == q) { /* 'it''s' */
				i++;
				continue;
			}
			view_hide(s->h, v, begin, end);
			return end;
		}
		run = 0;
	}
	view_hide(s->h, v, begin, v.n);
	return v.n;
}

/* (...), [...], {...}: hide what is inside. Returns the position of the closing one. */
static size_t hide_group(struct scan *s, size_t i)
{
	struct view v = s->v;
	size_t begin = i + 1, depth = 0, run = 0, level = 0;
	char string = 0; /* the quote of the string that this is in */

	for (; i < v.n; i++) {
		char c = v.p[i];

		if (c == '\\') {
			run++;
			continue;
		}
		if (string ? c == string && run == level : c == '"' || c == '\'') {
			string = string ? 0 : c;
			level = run;
		} else if (!string && c && strchr("([{", c)) {
			depth++;
		} else if (!string && c && strchr(")]}", c) && !--depth) {
			break;
		}
		run = 0;
	}
	view_hide(s->h, v, begin, i);
	return i;
}

/* Does a value in one word end at this delimiter? Only if another name or nothing comes after. */
static bool delimiter_ends(struct view v, size_t i)
{
	size_t j = i + 1, begin;

	for (size_t k = 0; k < 8 && j < v.n && strchr(" \t}])\"'\\,;", v.p[j]) && v.p[j]; k++)
		j++;
	if (j >= v.n)
		return true;
	begin = j;
	while (j < v.n && j < begin + 64 && name_char(v.p[j]))
		j++;
	if (j == begin)
		return false;
	j += backslashes(v, j) < 8 ? backslashes(v, j) : 0;
	if (quote(at(v, j)))
		j++;
	return at(v, j) == '=' || at(v, j) == ':' || at(v, j) == '[';
}

static size_t bare_end(struct scan *s, size_t i)
{
	struct view v = s->v;

	for (; i < v.n; i++) {
		char c = v.p[i];

		if (c == '\\' && i + 1 < v.n && !blank(v.p[i + 1])) {
			if (quote(v.p[i + 1]))
				return i;
			i++;
		} else if (c && strchr(" \t\n\r\"'`,;&}])|#<", c) &&
			   (s->kind != TEXT_WORD || delimiter_ends(v, i))) {
			return i;
		}
	}
	return i;
}

static const char schemes[] = "bearer basic token digest negotiate apikey ntlm";

/* "Basic X": where X begins; else `i` */
static size_t after_scheme(struct view v, size_t i)
{
	size_t end = i;

	while (end < v.n && name_char(v.p[end]))
		end++;
	if (span_in(span(v, i, end), schemes) && at(v, end) == ' ')
		return skip_blanks(v, end);
	return i;
}

/* Hide the value that begins at `i`: a string in quotes, a group, or up to a delimiter; `whole`: to
 * the end. Returns where it ended. */
static size_t hide_value(struct scan *s, size_t i, bool whole)
{
	struct view v = s->v;
	size_t level = backslashes(v, i), end;

	if (v.n - i > 3 && !memcmp(v.p + i, "<<\"", 3)) /* Erlang: <<"x">> */
		return hide_quoted(s, i + 2, 0);
	if (quote(at(v, i + level)))
		return hide_quoted(s, i + level, level);
	if (whole && s->kind == TEXT_WORD) {
		view_hide(s->h, v, i, v.n);
		return v.n;
	}
	if (at(v, i) == '(' || at(v, i) == '[' || at(v, i) == '{')
		return hide_group(s, i);
	end = bare_end(s, after_scheme(v, i));
	/* PASSWORD('x'), N'x', r"x" */
	if (end < v.n && end > i && quote(v.p[end]) &&
	    (v.p[end - 1] == '(' || (end - i <= 2 && isalpha((unsigned char)v.p[i]))))
		end = hide_quoted(s, end, 0);
	view_hide(s->h, v, i, end);
	return end;
}

/* A header's value goes to the end of the string in quotes, of the line or of the text: it may hold
 * several words. `name` is where its name begins. */
static size_t hide_header(struct scan *s, size_t name, size_t i)
{
	struct view v = s->v;
	char q = name && quote(v.p[name - 1]) ? v.p[name - 1] : 0;
	bool whole = !q && s->kind == TEXT_WORD;
	size_t begin = i;

	for (; i < v.n && v.p[i] != '\n'; i++) {
		if (q ? v.p[i] == q : !whole && quote(v.p[i]))
			break;
		if (v.p[i] == '\\' && q && at(v, i + 1) == q)
			break;
	}
	view_hide(s->h, v, begin, i);
	return i;
}

/* ---- names with values ---- */

/* After a name that ends at `i`: past its quote, blanks, and '=', ':', '=>'. The position of the
 * value, or 0. */
static size_t value_after(struct view v, size_t i, char *by)
{
	size_t k = backslashes(v, i), j;

	if (quote(at(v, i + k)))
		i += k + 1;
	if (at(v, i) == ']')
		i++;
	j = skip_blanks(v, i);
	if (at(v, j) == '+' && at(v, j + 1) == '=')
		j++;
	if (at(v, j) != '=' && at(v, j) != ':')
		return 0;
	*by = v.p[j++];
	if (*by == ':' && (at(v, j) == ':' || (at(v, j) == '/' && at(v, j + 1) == '/')))
		return 0;
	while (at(v, j) == '=' || (*by == '=' && at(v, j) == '>'))
		j++;
	return skip_blanks(v, j);
}

/* ["--password", "x"]: after the option that ends at `i`, the position of the string after it, or
 * 0.
 */
static size_t next_element(struct view v, size_t i)
{
	i += backslashes(v, i);
	if (!quote(at(v, i)) || at(v, i + 1) != ',')
		return 0;
	i = skip_blanks(v, i + 2);
	return quote(at(v, i + backslashes(v, i))) ? i : 0;
}

/* Does -x or --long-name begin here, so that the value before it is missing? */
static bool option_at(struct view v, size_t i)
{
	if (at(v, i) != '-')
		return false;
	if (isalpha((unsigned char)at(v, i + 1)))
		return !at(v, i + 2) || blank(at(v, i + 2));
	if (at(v, i + 1) != '-' || !islower((unsigned char)at(v, i + 2)))
		return false;
	for (i += 2; i < v.n && v.p[i] != '=' && !blank(v.p[i]); i++)
		if (!islower((unsigned char)v.p[i]) && !isdigit((unsigned char)v.p[i]) &&
		    v.p[i] != '-' && v.p[i] != '_' && v.p[i] != '.')
			return false;
	return true;
}

/* Is the value surely no secret: auth=no, credentials=/path? */
static bool harmless(struct scan *s, struct span name, size_t value)
{
	struct view v = s->v;
	size_t end = value;

	while (end < v.n && !blank(v.p[end]) && !quote(v.p[end]) && v.p[end] &&
	       !strchr(",;&)]}", v.p[end]))
		end++;
	return value_is_harmless(name, span(v, value, end));
}

/* Hide strings in quotes inside of f(...), without the first `skip` arguments; `alone`: a string
 * there, too, if there is no other. */
static void hide_call(struct scan *s, size_t i, size_t skip, bool alone)
{
	struct view v = s->v;
	size_t most = i + 256 < v.n ? i + 256 : v.n, depth = 0;

	while (i < most && (depth || v.p[i] != ')')) {
		size_t level = backslashes(v, i);

		if (i + level < v.n && quote(v.p[i + level])) {
			size_t begin = i + level, end = begin + 1;

			while (skip && end < v.n && v.p[end] != v.p[begin])
				end++;
			if (skip && (depth || !alone || at(v, skip_blanks(v, end + 1)) != ')')) {
				alone = false; /* the comma behind it ends the argument */
				i = end + 1;
			} else {
				i = hide_quoted(s, begin, level) + level + 1;
			}
		} else {
			depth += v.p[i] == '(';
			depth -= v.p[i] == ')';
			skip -= skip && !depth && v.p[i] == ','; /* a variable, a column, a call */
			i += level ? level : 1;
		}
	}
}

/* The content of the element of XML that `begin` to `end` name, with or without attributes and a
 * name space; 0: no element. */
static size_t xml_content(struct view v, size_t begin, size_t end)
{
	size_t tag = begin, most = end + 256 < v.n ? end + 256 : v.n, next = skip_blanks(v, end);

	if (tag && v.p[tag - 1] == ':')
		for (tag--; tag && begin - tag < 32 && name_char(v.p[tag - 1]);)
			tag--;
	if (!tag || v.p[tag - 1] != '<')
		return 0;
	if (at(v, end) != '>' && (next == end || at(v, skip_name(v, next)) != '='))
		return 0; /* <token >file */
	for (size_t i = end; i < most && v.p[i] != '<'; i++)
		if (v.p[i] == '>')
			return i + 1;
	return 0;
}

/* Hide it. Returns where it ended. */
static size_t hide_content(struct scan *s, size_t i)
{
	static const char cdata[] = "<![CDATA[";
	struct view v = s->v;
	char end = '<';
	size_t begin;

	if (v.n - i >= sizeof(cdata) && !memcmp(v.p + i, cdata, sizeof(cdata) - 1)) {
		i += sizeof(cdata) - 1;
		end = ']';
	}
	for (begin = i; i < v.n && v.p[i] != end;)
		i++;
	view_hide(s->h, v, begin, i);
	return i;
}

#define NAMED_FAR 160 /* so far away its value is not searched for */

/* {"name": "DB_PASSWORD", "value": "x"}, ParameterKey=X,ParameterValue=x, <name>X</name>
 * <value>x</value>, <entry key="X">x</entry>: does it say that a secret follows? Returns the end of
 * what it hid, or 0. */
static size_t note_name(struct scan *s, size_t begin, size_t end)
{
	struct view v = s->v;
	size_t value, stop;
	char by = 0;

	if (!span_in(span(v, begin, end), "name key parameterkey"))
		return 0;
	value = xml_content(v, begin, end);
	if (!value)
		value = value_after(v, end, &by);
	if (!value)
		return 0;
	value += backslashes(v, value);
	value += quote(at(v, value));
	stop = skip_name(v, value);
	s->named = stop > value && name_is_secret(span(v, value, stop)) ? stop + NAMED_FAR : 0;
	if (!s->named)
		return 0;
	stop += backslashes(v, stop);
	return by == '=' && quote(at(v, stop)) && at(v, stop + 1) == '>' ?
		       hide_content(s, stop + 2) :
		       0;
}

static const char login_calls[] =
	"login authenticate mysqli mysql_connect mysqli_connect pg_connect changeuserpassword "
	"basicauth httpbasicauth httpdigestauth set_password setpassword auth pgp_sym_encrypt "
	"pgp_sym_decrypt aes_encrypt aes_decrypt pscredential pdo newinstance mysql postgresql s3";

/* The method of object.method */
static struct span last_part(struct span name)
{
	const char *dot = name.n ? memrchr(name.p, '.', name.n) : NULL;

	return dot ? (struct span){dot + 1, (size_t)(name.p + name.n - dot - 1)} : name;
}

/* A name begins at `begin` and ends at `end`; if it names a secret, hides what follows it. Returns
 * where that ended, or 0. */
static size_t assignment(struct scan *s, size_t begin, size_t end)
{
	struct view v = s->v;
	size_t name = begin, value;
	bool option, secret, parameter;
	char by = 0;

	while (name < end && v.p[name] == '-')
		name++;
	option = name > begin;
	if (option && name == begin + 1 && strchr("HDJPe", at(v, name)) && name + 1 < end &&
	    isupper((unsigned char)v.p[name + 1]))
		name++; /* curl -HCookie: x, java -DAPI_KEY=x */
	parameter = begin && (v.p[begin - 1] == '?' || v.p[begin - 1] == '&');
	secret = parameter ? name_is_secret_parameter(span(v, name, end)) :
			     name_is_secret(span(v, name, end));
	if (at(v, end) == '(') {
		struct span method = last_part(span(v, name, end));

		bool perl = begin > 4 && !memcmp(v.p + begin - 5, "DBI->", 5);

		if (secret || span_in(method, login_calls) || (perl && span_is(method, "connect")))
			hide_call(s, end + 1, !secret || span_is(method, "auth"),
				  span_is(method, "auth"));
	}
	if (s->pragma && span_in(span(v, name, end), "key rekey hexkey"))
		secret = true;
	if (begin < s->named && span_in(span(v, name, end), "value parametervalue"))
		secret = true;
	if (!secret)
		return note_name(s, name, end);
	value = xml_content(v, begin, end);
	if (value)
		return hide_content(s, value);
	value = value_after(v, end, &by);
	if (value && harmless(s, span(v, name, end), value))
		return 0;
	if (value) {
		if (by == ':' && !quote(at(v, end)) && at(v, end) != '\\' &&
		    at(v, value - 1) == ' ' && s->kind != TEXT_LINE)
			return hide_header(s, option ? 0 : begin, value);
		if (by == ':' && (span_in(span(v, name, end), "authorization proxy-authorization "
							      "cookie set-cookie") &&
				  !quote(at(v, end)) && at(v, end) != '\\'))
			return hide_header(s, begin, value);
		return hide_value(s, value, !begin);
	}
	value = option ? next_element(v, end) : 0;
	if (value)
		return hide_value(s, value, false);
	/* inside of an argument: `--password x` */
	if (option && blank(at(v, end)) && !name_is_flag(span(v, name, end))) {
		value = skip_blanks(v, end);
		if (value < v.n && !option_at(v, value) && !harmless(s, span(v, name, end), value))
			return hide_value(s, value, false);
	}
	return 0;
}

/* ---- SQL ---- */

static const char sql_statements[] =
	"alter create grant identified set connect login role user encrypted with credential";

/* The word at `begin`: what it means to the statement. Returns the end of what was hidden after it,
 * or 0. */
static size_t sql_word(struct scan *s, size_t begin, size_t end)
{
	struct span w = span(s->v, begin, end);
	size_t next = skip_blanks(s->v, end);

	if (span_is(w, "pragma"))
		s->pragma = true;
	if (span_is(w, "identified"))
		s->sql = SQL_IDENTIFIED;
	else if (span_is(w, "insert") || span_is(w, "replace"))
		s->sql = SQL_INSERT;
	else if (s->sql == SQL_NONE && span_in(w, sql_statements))
		s->sql = SQL_STATEMENT;
	else if (s->sql == SQL_IDENTIFIED && span_in(w, "by as using"))
		s->sql = SQL_VALUE;
	else if (s->sql == SQL_INSERT && span_is(w, "values") && s->columns)
		s->sql = SQL_VALUES;
	else if (s->sql == SQL_INSERT && name_is_secret(w))
		s->columns = true;
	if (next == end || next >= s->v.n)
		return 0;
	if (w.n == 4 && !memcmp(w.p, "AUTH", 4) && s->kind != TEXT_LINE) { /* redis: [user] X */
		next = hide_value(s, next, false);
		end = skip_blanks(s->v, next);
		return end > next && end < s->v.n ? hide_value(s, end, false) : next;
	}
	if (s->sql == SQL_VALUE && !span_in(span(s->v, next, skip_name(s->v, next)),
					    "password values random externally")) {
		s->sql = SQL_STATEMENT;
		return hide_value(s, next, false);
	}
	if (s->sql != SQL_NONE && name_is_secret(w)) {
		size_t level = backslashes(s->v, next);

		if (isalpha((unsigned char)s->v.p[next]) && at(s->v, next + 1) == '\'')
			next++;
		if (at(s->v, next) == '$' && at(s->v, next + 1) == '$')
			return hide_value(s, next, false);
		if (quote(at(s->v, next + level)))
			return hide_value(s, next, false);
	}
	return 0;
}

/* ---- URLs ---- */

static bool url_end(char c)
{
	return blank(c) || quote(c) || c == '<' || c == '>';
}

static bool all_digits(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)p[i]))
			return false;
	return true;
}

/* user:secret@ from `i` on: the position of the '@', and of the first colon before it, or 0. */
static size_t userinfo_at(struct scan *s, size_t i, size_t *colon)
{
	struct view v = s->v;
	size_t found = 0;

	*colon = 0;
	if (i < s->no_at)
		return 0;
	for (; i < v.n && !blank(v.p[i]) && !quote(v.p[i]); i++) {
		if (v.p[i] == '@')
			found = i; /* the last one: a password may hold '@' */
		else if (v.p[i] == ':' && !*colon && !found)
			*colon = i;
		else if ((v.p[i] == '/' || v.p[i] == '?' || v.p[i] == '#') &&
			 (found || !*colon || all_digits(v.p + *colon + 1, i - *colon - 1)))
			return found; /* the path; a password with a bare one is hidden, too */
	}
	if (!found)
		s->no_at = i;
	return found;
}

static const char plain_users[] =
	"git root admin user anonymous guest hg svn ftp nobody test oauth2 www-data";

/* The scheme before "//" at `slashes`. */
static struct span scheme_before(struct view v, size_t slashes)
{
	size_t begin = slashes;

	if (!slashes || v.p[slashes - 1] != ':')
		return (struct span){v.p, 0};
	begin = slashes - 1;
	while (begin && slashes - begin < 24 &&
	       (isalnum((unsigned char)v.p[begin - 1]) || v.p[begin - 1] == '+'))
		begin--;
	return span(v, begin, slashes - 1);
}

/* Hide the secret of the user. Returns the position of the host. */
static size_t hide_userinfo(struct scan *s, size_t i, struct span scheme)
{
	struct view v = s->v;
	size_t colon, host = userinfo_at(s, i, &colon);
	bool web = scheme.n >= 4 && memmem(scheme.p, scheme.n, "http", 4);

	if (!host)
		return i;
	if (colon && colon + 1 < host) {
		struct span secret = span(v, colon + 1, host);

		view_hide(s->h, v, colon + 1, host);
		if (span_in(secret, "x-oauth-basic x oauth") || looks_random(span(v, i, colon)))
			view_hide(s->h, v, i, colon);
	} else if (web && !span_in(span(v, i, colon ? colon : host), plain_users)) {
		view_hide(s->h, v, i, colon ? colon : host);
	}
	return host;
}

static bool has(struct span s, const char *word)
{
	return s.n && memmem(s.p, s.n, word, strlen(word));
}

static const char hook_parts[] =
	"hook hooks webhook webhooks webhookb2 webhook-test incoming_webhooks push-hook workflows";

/* Hides the parts of a path that only those who hold the secret know. */
static void hide_path(struct scan *s, size_t i, struct span scheme, struct span host)
{
	struct view v = s->v;
	bool stream = span_begins(scheme, "rtmp") || span_is(scheme, "srt");
	bool hooks = span_begins(host, "hooks.") || span_begins(host, "hook.") ||
		     has(host, ".webhook.") || span_begins(host, "webhook.") ||
		     span_begins(host, "events.pagerduty.");
	bool code = span_in(host, "github.com gitlab.com bitbucket.org");
	bool all = false, next = false;

	for (size_t n = 0; i < v.n && v.p[i] == '/'; n++) {
		size_t begin = ++i;
		struct span part;

		while (i < v.n && v.p[i] != '/' && v.p[i] != '?' && v.p[i] != '#' &&
		       !url_end(v.p[i]))
			i++;
		part = span(v, begin, i);
		if (all || next || looks_random(part) || span_is(host, "hc-ping.com") ||
		    (n && (hooks || stream)))
			view_hide(s->h, v, begin, i);
		next = span_is(part, "key") || (n && span_is(part, "push")) ||
		       (!n && span_is(part, "t") && has(host, "conda"));
		all |= span_in(part, hook_parts) && !code;
		if (span_begins(part, "bot") && part.n > 12 && memchr(part.p, ':', part.n))
			text_hide_after(s->h, view_part(v, begin, i), ':');
	}
}

/* "//" is at `slashes`. Returns where to go on. */
static size_t url(struct scan *s, size_t slashes)
{
	struct view v = s->v;
	struct span scheme = scheme_before(v, slashes);
	size_t host = hide_userinfo(s, slashes + 2, scheme), end, path;

	end = host + (at(v, host) == '@');
	for (path = end; path < v.n && !strchr("/?#", v.p[path]) && !url_end(v.p[path]);)
		path++;
	if (scheme.n && slashes >= s->path_end && at(v, path) == '/') {
		struct span name = span(v, end, path);
		const char *port = memchr(name.p, ':', name.n);

		if (port)
			name.n = (size_t)(port - name.p);
		hide_path(s, path, scheme, name);
		for (s->path_end = path; s->path_end < v.n && !url_end(v.p[s->path_end]);)
			s->path_end++;
	}
	return host > slashes + 2 ? host : slashes + 2;
}

/* user:secret@tcp(host), user:secret@host as the whole of a value. Returns where to go on, or 0. */
static size_t dsn(struct scan *s, size_t begin, size_t end)
{
	struct view v = s->v;
	size_t colon, host;

	bool cvs = begin > 8 && !memcmp(v.p + begin - 9, ":pserver:", 9);

	if (begin && !cvs && !strchr("= \t\"'", v.p[begin - 1]))
		return 0;
	if (at(v, end) != ':' || at(v, end + 1) == '/' || at(v, end + 1) == '\\' ||
	    blank(at(v, end + 1)))
		return 0;
	host = userinfo_at(s, begin, &colon);
	if (!host || colon != end || host - colon < 2 ||
	    span_begins(span(v, host + 1, v.n), "sha256:") ||
	    span_begins(span(v, host + 1, v.n), "sha512:") ||
	    (s->kind == TEXT_LINE && all_digits(v.p + colon + 1, host - colon - 1)))
		return 0;
	view_hide(s->h, v, colon + 1, host);
	return host;
}

/* ---- private keys ---- */

/* "-----BEGIN X PRIVATE KEY-----": hide what follows. Returns the end, or 0. */
static size_t pem(struct scan *s, size_t i)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ";
	struct view v = s->v;
	size_t most, body = i + sizeof(begin) - 1;
	const char *stop;

	if (v.n - i < sizeof(begin) + 8 || memcmp(v.p + i, begin, sizeof(begin) - 1) != 0)
		return 0;
	most = body + 40 < v.n ? body + 40 : v.n;
	if (!memmem(v.p + body, most - body, "PRIVATE KEY", 11))
		return 0;
	stop = memmem(v.p + body, most - body, "-----", 5);
	if (!stop)
		return 0;
	body = (size_t)(stop - v.p) + 5;
	stop = memmem(v.p + body, v.n - body, end, sizeof(end) - 1);
	most = stop ? (size_t)(stop - v.p) : v.n;
	view_hide(s->h, v, body, most);
	return most;
}

/* ---- all of it ---- */

/* "Bearer X" without a header's name */
static size_t bearer(struct scan *s, size_t begin, size_t end)
{
	struct view v = s->v;
	size_t next = skip_blanks(v, end), stop;
	bool digit = false;

	if (next == end || !span_in(span(v, begin, end), "bearer basic"))
		return 0;
	stop = bare_end(s, next);
	for (size_t i = next; i < stop; i++)
		digit |= isdigit((unsigned char)v.p[i]) || v.p[i] == '=';
	if (stop - next < 6 || !digit)
		return 0;
	view_hide(s->h, v, next, stop);
	return stop;
}

/* A name from `begin` on. Returns where to go on. */
static size_t name(struct scan *s, size_t begin)
{
	size_t end = skip_name(s->v, begin), next;

	next = assignment(s, begin, end);
	if (!next)
		next = bearer(s, begin, end);
	if (!next)
		next = sql_word(s, begin, end);
	if (!next)
		next = dsn(s, begin, end);
	return next ? next : end;
}

void text_scan(struct hidden *h, struct view v, enum text_kind kind)
{
	struct scan s = {.h = h, .v = v, .kind = kind};

	for (size_t i = 0; i < v.n;) {
		bool fresh = !i || !name_char(v.p[i - 1]);
		size_t next = fresh ? token_at(v.p + i, v.n - i) : 0;

		if (fresh && !next && kind == TEXT_LINE && name_char(v.p[i]))
			next = shape_at(v.p + i, v.n - i);
		if (next) {
			view_hide(h, v, i, i + next);
			i += next;
		} else if (v.p[i] == '-' && (next = pem(&s, i))) {
			i = next;
		} else if (v.p[i] == '/' && at(v, i + 1) == '/') {
			i = url(&s, i);
		} else if (s.sql == SQL_VALUES && v.p[i] == '\'') {
			i = hide_quoted(&s, i, 0) + 1;
		} else if (fresh && name_char(v.p[i])) {
			i = name(&s, i);
		} else {
			s.sql = v.p[i] == ';' ? SQL_NONE : s.sql;
			i++;
		}
	}
}
