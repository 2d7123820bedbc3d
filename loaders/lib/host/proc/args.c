/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args: two passes over each argument. The first looks at it as a whole, with the argument before
 * it (an option that takes a secret, a program's short option). If that does not mask all of it,
 * the second pass walks through it and masks each NAME=VALUE, URL and token shape where it occurs.
 * When in doubt it masks too much.
 */
#include "loaders/lib/host/proc/args.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"

#define MASK "***"

struct span {
	const char *p;
	size_t n;
};

int args_policy_parse(const char *s, enum args_policy *out)
{
	static const char *const names[] = {"masked", "full", "none"};

	if (!s)
		s = names[ARGS_MASKED];
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(s, names[i])) {
			*out = (enum args_policy)i;
			return 0;
		}
	}
	return -EINVAL;
}

static bool span_is(struct span s, const char *word)
{
	return s.n == strlen(word) && !strncasecmp(s.p, word, s.n);
}

static bool span_begins(struct span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && !strncasecmp(s.p, word, n);
}

static bool span_in(struct span s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (span_is(s, words[i]))
			return true;
	return false;
}
#define SPAN_IN(s, words) span_in(s, words, ARRAY_SIZE(words))

/* ---- names ---- */

/* The next part of a name: "dbPass-word_x" is db, Pass, word, x; digits belong to the part before.
 */
static bool name_part(struct span name, size_t *pos, struct span *part)
{
	size_t i = *pos, begin;

	while (i < name.n && !isalnum((unsigned char)name.p[i]))
		i++;
	begin = i;
	while (i < name.n && isalnum((unsigned char)name.p[i]) &&
	       !(i > begin && isupper((unsigned char)name.p[i]) &&
		 islower((unsigned char)name.p[i - 1])))
		i++;
	*pos = i;
	*part = (struct span){name.p + begin, i - begin};
	return i > begin;
}

static const char *const secret_words[] = {
	"pass",      "passwd",      "password",      "passphrase",   "passcode",   "pwd",
	"pw",        "secret",      "secrets",       "token",        "apikey",     "apitoken",
	"authtoken", "accesskey",   "secretkey",     "privatekey",   "credential", "credentials",
	"creds",     "auth",        "authorization", "bearer",       "cookie",     "cookies",
	"signature", "requirepass", "masterauth",    "rootpassword", "userpass",   "pgpassword",
	"sshpass",   "jwt",         "otp",           "psk",          "rootpw",     "bindpw",
	"storepass", "keypass"};
static const char *const key_kinds[] = {"api",        "access",  "secret",  "private",
					"encryption", "signing", "auth",    "account",
					"master",     "license", "session", "shared"};
static const char *const harmless_last[] = {
	"file",   "path",   "dir",     "directory", "url",  "uri",    "endpoint", "type",  "method",
	"mode",   "ttl",    "timeout", "length",    "size", "plugin", "provider", "count", "limit",
	"expiry", "socket", "sock",    "header",    "env",  "fd",     "stdin"};

/* Must a value with this name be hidden? */
static bool name_is_secret(struct span name)
{
	struct span part, last = {0};
	bool secret = false, kind = false;

	for (size_t pos = 0; name_part(name, &pos, &part); last = part) {
		secret |= SPAN_IN(part, secret_words) ||
			  (kind && (span_is(part, "key") || span_is(part, "keys")));
		/* written as one word: PGPASSWORD, mypassword, dbpasswd, githubtoken */
		secret |= part.n > 5 && (memmem(part.p, part.n, "passw", 5) ||
					 memmem(part.p, part.n, "PASSW", 5) ||
					 memmem(part.p, part.n, "Passw", 5));
		secret |= part.n > 5 &&
			  (!strncasecmp(part.p + part.n - 5, "token", 5) ||
			   (part.n > 6 && !strncasecmp(part.p + part.n - 6, "secret", 6)));
		kind = SPAN_IN(part, key_kinds);
	}
	return secret && !(last.n && SPAN_IN(last, harmless_last));
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* ---- tokens by their shape ---- */

static bool token_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == '/' ||
	       c == '+' || c == '=';
}

struct shape {
	const char *prefix;
	size_t min; /* this long it is a token, shorter it is a word */
};

static const struct shape shapes[] = {
	{"ghp_", 20},        {"gho_", 20},   {"ghu_", 20}, {"ghs_", 20},     {"ghr_", 20},
	{"github_pat_", 24}, {"glpat-", 20}, {"sk-", 24},  {"sk_live_", 20}, {"sk_test_", 20},
	{"rk_live_", 20},    {"AKIA", 20},   {"ASIA", 20}, {"xoxb-", 16},    {"xoxp-", 16},
	{"xoxa-", 16},       {"xoxs-", 16},  {"eyJ", 30},  {"hvs.", 20},     {"npm_", 24},
	{"dop_v1_", 20},     {"AIza", 30},   {"ya29.", 20}};

/* Length of the token that begins here, 0 if none does. */
static size_t token_at(const char *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		size_t k = strlen(shapes[i].prefix);

		if (n < shapes[i].min || memcmp(p, shapes[i].prefix, k))
			continue;
		while (k < n && token_char(p[k]))
			k++;
		if (k >= shapes[i].min)
			return k;
	}
	return 0;
}

/* ---- inside one argument ---- */

static bool ends_value(char c, char quote)
{
	if (quote)
		return c == quote;
	return c == ' ' || c == '\t' || c == '\n' || c == '"' || c == '\'' || c == '`' ||
	       c == ';' || c == '&' || c == ',' || c == '}' || c == ')';
}

/* Mask the value that begins at `pos`: one quoted string, or up to a delimiter. Returns where it
 * ended. */
static size_t mask_value(struct span a, size_t pos, struct strbuf *out)
{
	char quote = 0;

	if (pos < a.n && (a.p[pos] == '"' || a.p[pos] == '\'')) {
		quote = a.p[pos++];
		strbuf_addch(out, quote);
	}
	if (pos < a.n && !ends_value(a.p[pos], quote))
		strbuf_addstr(out, MASK);
	while (pos < a.n && !ends_value(a.p[pos], quote))
		pos++;
	return pos;
}

static bool all_digits(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)p[i]))
			return false;
	return true;
}

/* "//user:secret@host", after a "//" or at the start of a DSN; hides the password. Returns the
 * position of '@', having added everything up to it, or 0 if there is none. */
static size_t mask_userinfo(struct span a, size_t pos, struct strbuf *out)
{
	size_t colon = 0, i, at = 0;

	for (i = pos; i < a.n && !isspace((unsigned char)a.p[i]) && a.p[i] != '"' && a.p[i] != '\'';
	     i++) {
		if (a.p[i] == '@')
			at = i; /* the last one: a password may hold '@' */
		else if (a.p[i] == ':' && !colon)
			colon = i;
		else if (a.p[i] == '/' &&
			 (at || !colon || all_digits(a.p + colon + 1, i - colon - 1)))
			break; /* the path; a password with a bare '/' in it is hidden as well */
		else if (a.p[i] == '?' || a.p[i] == '#')
			break;
	}
	if (!at || !colon || colon > at || at - colon < 2)
		return 0;
	strbuf_add(out, a.p + pos, colon + 1 - pos);
	strbuf_addstr(out, MASK);
	return at;
}

/* After a name: skips blanks and quotes, then '=' or ':'; the position of the value, or 0. */
static size_t value_after(struct span a, size_t pos)
{
	if (pos < a.n && (a.p[pos] == '"' || a.p[pos] == '\''))
		pos++;
	if (pos < a.n && a.p[pos] == '\\' && a.n - pos > 1 && a.p[pos + 1] == '"')
		pos += 2;
	while (pos < a.n && a.p[pos] == ' ' && a.n - pos > 1 &&
	       (a.p[pos + 1] == '=' || a.p[pos + 1] == ':' || a.p[pos + 1] == ' '))
		pos++;
	if (pos >= a.n || (a.p[pos] != '=' && a.p[pos] != ':'))
		return 0;
	pos++;
	while (pos < a.n && a.p[pos] == ' ')
		pos++;
	return pos;
}

static const char *const header_names[] = {"authorization", "proxy-authorization", "cookie",
					   "set-cookie",    "x-api-key",           "x-auth-token",
					   "x-csrf-token",  "private-token"};

/* A header's value goes to the end of the quoted string, the line or the argument: it may hold
 * several words. */
static size_t mask_header(struct span a, size_t pos, struct strbuf *out)
{
	strbuf_addstr(out, MASK);
	while (pos < a.n && a.p[pos] != '"' && a.p[pos] != '\'' && a.p[pos] != '\n')
		pos++;
	return pos;
}

/* A name ends at `end`; if it names a secret, adds what follows it, masked. Returns the new
 * position, or 0. */
static size_t mask_assignment(struct span a, size_t begin, size_t end, struct strbuf *out)
{
	struct span name = {a.p + begin, end - begin};
	size_t value = value_after(a, end);
	bool header, option;

	while (name.n && name.p[0] == '-') {
		name.p++;
		name.n--;
	}
	/* inside a shell's argument: `--password x` */
	option = name.p > a.p + begin && end < a.n && a.p[end] == ' ';
	header = SPAN_IN(name, header_names) ||
		 (name.n && name.p > a.p + begin && name.p[0] == 'H' &&
		  SPAN_IN(((struct span){name.p + 1, name.n - 1}), header_names));
	if (!value && option && !header && name_is_secret(name))
		value = end + 1;
	if (!value || (!header && !name_is_secret(name)))
		return 0;
	strbuf_add(out, a.p + end, value - end);
	if (header && a.p[end] == ':')
		return mask_header(a, value, out);
	return mask_value(a, value, out);
}

static void mask_inside(struct span a, struct strbuf *out)
{
	size_t i = 0, next;

	next = mask_userinfo(a, 0, out); /* a DSN: user:secret@tcp(host) */
	if (next && memchr(a.p, '/', next) == NULL)
		i = next;
	else if (next)
		strbuf_reset(out);
	while (i < a.n) {
		bool fresh = !i || !name_char(a.p[i - 1]);

		next = fresh ? token_at(a.p + i, a.n - i) : 0;
		if (next) {
			strbuf_addstr(out, MASK);
			i += next;
		} else if (a.n - i > 2 && a.p[i] == '/' && a.p[i + 1] == '/') {
			strbuf_addstr(out, "//");
			i += 2;
			next = mask_userinfo(a, i, out);
			i = next ? next : i;
		} else if (fresh && name_char(a.p[i])) {
			size_t end = i;

			while (end < a.n && name_char(a.p[end]))
				end++;
			strbuf_add(out, a.p + i, end - i);
			next = mask_assignment(a, i, end, out);
			i = next ? next : end;
		} else {
			strbuf_addch(out, a.p[i++]);
		}
	}
}

/* ---- arguments in a row ---- */

static const char *const mysql_like[] = {
	"mysql",          "mysqldump",   "mysqladmin",   "mysqlimport",  "mysqlshow",
	"mysqlcheck",     "mysqlbinlog", "mariadb",      "mariadb-dump", "mariadb-admin",
	"mariadb-backup", "mariabackup", "xtrabackup",   "sshpass",      "mongo",
	"mongosh",        "mongodump",   "mongorestore", "mysqlslap",    "mycli",
	"smbclient"};
static const char *const ldap_like[] = {"ldapsearch", "ldapadd",    "ldapmodify",
					"ldapdelete", "ldappasswd", "ldapwhoami"};
static const char *const user_like[] = {"curl", "wget", "http", "https", "httpie"};

static struct span base_name(struct span a)
{
	const char *slash = memrchr(a.p, '/', a.n);

	if (slash)
		return (struct span){slash + 1, a.n - (size_t)(slash + 1 - a.p)};
	return a;
}

/* The letter of this program's short option for a password, 0: none. 'u' takes user:password. */
static char secret_option(struct span prog)
{
	if (SPAN_IN(prog, mysql_like))
		return 'p';
	if (span_is(prog, "redis-cli") || span_is(prog, "valkey-cli"))
		return 'a';
	if (SPAN_IN(prog, ldap_like))
		return 'w';
	return SPAN_IN(prog, user_like) ? 'u' : 0;
}

/* "user:secret"; without a colon it is treated like any other argument */
static void mask_user(struct span a, struct strbuf *out)
{
	const char *colon = memchr(a.p, ':', a.n);
	struct strbuf inside cleanup_strbuf = STRBUF_INIT;

	if (colon) {
		strbuf_add(out, a.p, (size_t)(colon - a.p) + 1);
		strbuf_addstr(out, MASK);
		return;
	}
	mask_inside(a, &inside);
	strbuf_add(out, strbuf_str(&inside), inside.len);
}

enum follow { FOLLOW_NONE, FOLLOW_SECRET, FOLLOW_USER };

/* A short option of a program that takes a password there: "-pX", "-p". True: it has added the
 * argument. */
static bool mask_short(struct span a, char letter, struct strbuf *out, enum follow *follow)
{
	if (!letter || a.n < 2 || a.p[0] != '-' || a.p[1] != letter)
		return false;
	if (a.n == 2) {
		strbuf_add(out, a.p, a.n);
		*follow = letter == 'u' ? FOLLOW_USER : FOLLOW_SECRET;
		return true;
	}
	strbuf_add(out, a.p, 2);
	if (letter == 'u')
		mask_user((struct span){a.p + 2, a.n - 2}, out);
	else
		strbuf_addstr(out, MASK);
	return true;
}

/* An option whose value is the next argument: "--password", "-password", "--auth-token". */
static bool option_wants_secret(struct span a)
{
	if (a.n < 3 || a.p[0] != '-' || memchr(a.p, '=', a.n) || memchr(a.p, ' ', a.n))
		return false;
	while (a.n && a.p[0] == '-') {
		a.p++;
		a.n--;
	}
	return name_is_secret(a);
}

static void mask_argument(struct span a, char letter, enum follow *follow, struct strbuf *out)
{
	enum follow was = *follow;

	*follow = FOLLOW_NONE;
	if (was == FOLLOW_SECRET && !(a.n > 2 && a.p[0] == '-' && a.p[1] == '-')) {
		strbuf_addstr(out, a.n ? MASK : "");
	} else if (was == FOLLOW_USER) {
		mask_user(a, out);
	} else if (!mask_short(a, letter, out, follow)) {
		if (option_wants_secret(a))
			*follow = FOLLOW_SECRET;
		else if (span_is(a, "--user") && letter == 'u')
			*follow = FOLLOW_USER;
		if (span_begins(a, "--user=") && letter == 'u') {
			strbuf_add(out, a.p, 7);
			mask_user((struct span){a.p + 7, a.n - 7}, out);
			return;
		}
		mask_inside(a, out);
	}
}

static void add_plain(struct strbuf *out, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_addch(out, p[i] == '\n' || p[i] == '\r' || !p[i] ? ' ' : p[i]);
}

void args_mask_line(const char *line, size_t len, struct strbuf *out)
{
	struct strbuf masked cleanup_strbuf = STRBUF_INIT;

	mask_inside((struct span){line, len}, &masked);
	add_plain(out, strbuf_str(&masked), masked.len);
}

void args_format(const char *data, size_t len, enum args_policy policy, struct strbuf *out)
{
	struct strbuf masked cleanup_strbuf = STRBUF_INIT;
	enum follow follow = FOLLOW_NONE;
	char letter = 0;
	bool first = true;

	for (size_t pos = 0; pos < len;) {
		const char *p = data + pos, *nul = memchr(p, 0, len - pos);
		struct span a = {p, nul ? (size_t)(nul - p) : len - pos};

		pos += a.n + 1;
		if (!first)
			strbuf_addch(out, ' ');
		if (policy == ARGS_MASKED) {
			strbuf_reset(&masked);
			mask_argument(a, letter, &follow, &masked);
			add_plain(out, strbuf_str(&masked), masked.len);
		} else {
			add_plain(out, a.p, a.n);
		}
		/* the program's name; once more after programs like sudo, env and sh, whose options
		 * end at the first word */
		if (policy == ARGS_MASKED && (a.n && a.p[0] != '-') && secret_option(base_name(a)))
			letter = secret_option(base_name(a));
		first = false;
		if (policy == ARGS_NONE)
			return;
	}
}
