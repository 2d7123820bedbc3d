/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/secrets/names.h"

#include <string.h>
#include <strings.h>

#include "schema/base/array.h"

bool span_is(struct span s, const char *word)
{
	return s.n == strlen(word) && !strncasecmp(s.p, word, s.n);
}

bool span_begins(struct span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && !strncasecmp(s.p, word, n);
}

static bool span_ends(struct span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && !strncasecmp(s.p + s.n - n, word, n);
}

bool span_in(struct span s, const char *words)
{
	int first = s.n ? tolower((unsigned char)s.p[0]) : 0;

	for (const char *w = words; first && *w;) {
		size_t n = 0;

		while (w[n] && w[n] != ' ')
			n++;
		if (n == s.n && tolower((unsigned char)*w) == first && !strncasecmp(w, s.p, n))
			return true;
		w += n + (w[n] == ' ');
	}
	return false;
}

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

static const char secret_words[] =
	"pass passwd password passwords passphrase passcode pwd pw pswd psw pword passwort kennwort "
	"secret secrets token credential credentials creds auth authorization bearer cookie cookies "
	"signature requirepass masterauth proxyauth basicauth httpauth sessionid sessid phpsessid "
	"jsessionid jwt otp psk rootpw bindpw mnemonic passin passout passcommand";
static const char key_kinds[] =
	"api access secret private encryption signing auth account master license session shared app "
	"consumer storage unseal deploy subscription decryption activation registration hmac";
static const char harmless_last[] =
	"file path dir directory url uri endpoint type method mode ttl timeout length size plugin "
	"provider count limit expiry expires expiration interval socket sock header env fd stdin name "
	"names version arn ref store backend class host port policy required enabled prompt algorithm "
	"issuer audience format bits iterations lifetime rotation authentication prompts jar through "
	"max min len";
/* these end like the name of a secret */
static const char harmless_parts[] =
	"bypass compass trespass surpass overpass underpass encompass subpass multipass singlepass "
	"onepass twopass";

/* apikey, accesskey, privatekeys */
static bool is_compound_key(struct span part)
{
	size_t tail = span_ends(part, "keys") ? 4 : span_ends(part, "key") ? 3 : 0;

	return tail && part.n > tail && span_in((struct span){part.p, part.n - tail}, key_kinds);
}

/* written as one word: PGPASSWORD, mypassword, dbpasswd, githubtoken, clientsecret, storepass */
static bool is_compound(struct span part)
{
	if (span_ends(part, "file") || span_ends(part, "path")) /* --passwdfile */
		return false;
	if (part.n > 5)
		for (size_t i = 0; i + 5 <= part.n; i++)
			if (!strncasecmp(part.p + i, "passw", 5))
				return true;
	return (part.n > 5 && (span_ends(part, "token") || span_ends(part, "secret"))) ||
	       (part.n > 4 && span_ends(part, "pass") && !span_in(part, harmless_parts)) ||
	       (part.n > 4 && span_ends(part, "pwd") && !span_is(part, "oldpwd")) ||
	       is_compound_key(part);
}

/* What products call their secrets in the environment, as the last word of a variable's name. */
static const char variable_words[] =
	"claim key keys pat salt pepper license licence totp passkey nsec hmac serial";
static const char harmless_keys[] =
	"public primary foreign partition sort cache row group index routing shard host hot pub";

/* PLEX_CLAIM, SENDGRID_KEY, GITHUB_PAT: capitals, in more than one word. */
static bool is_secret_variable(struct span name)
{
	struct span part, last = {0}, before = {0};

	for (size_t i = 0; i < name.n; i++)
		if (!isupper((unsigned char)name.p[i]) && !isdigit((unsigned char)name.p[i]) &&
		    name.p[i] != '_')
			return false;
	for (size_t pos = 0; name_part(name, &pos, &part); last = part)
		before = last;
	return before.n && span_in(last, variable_words) && !span_in(before, harmless_keys);
}

bool name_is_secret(struct span name)
{
	struct span part, last = {0}, before = {0};
	bool secret = false, kind = false;

	for (size_t pos = 0; name_part(name, &pos, &part); before = last, last = part) {
		secret |= span_in(part, secret_words) || is_compound(part) ||
			  (kind && (span_is(part, "key") || span_is(part, "keys")));
		kind = span_in(part, key_kinds);
	}
	return (secret && !(last.n && span_in(last, harmless_last))) || is_secret_variable(name) ||
	       (span_is(last, "id") && span_in(before, "session sess")) ||
	       span_ends(name, "sonar.login");
}

bool name_is_flag(struct span name)
{
	struct span part;
	size_t pos = 0;

	return name_part(name, &pos, &part) &&
	       span_in(part, "no ask without disable skip prompt with force never always");
}

static bool says_where(struct span name)
{
	return span_ends(name, "credentials") || span_ends(name, "credential") ||
	       span_ends(name, "creds");
}

bool value_is_harmless(struct span name, struct span value)
{
	if (span_in(value, "yes no true false on off none null enabled disabled required optional "
			   "accept"))
		return true;
	return value.n > 1 &&
	       (says_where(name) || is_secret_variable(name) ||
		(name.n == 3 && !memcmp(name.p, "PWD", 3))) &&
	       (value.p[0] == '/' || !memcmp(value.p, "./", 2) || !memcmp(value.p, "~/", 2));
}

bool name_is_secret_parameter(struct span name)
{
	return name_is_secret(name) ||
	       span_in(name, "sig code key k sid sess session sessionid apikey appid hmac hash "
			     "x-amz-credential x-goog-credential ticket state_token webhook");
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
	/* code hosts and registries */
	{"ghp_", 20},
	{"gho_", 20},
	{"ghu_", 20},
	{"ghs_", 20},
	{"ghr_", 20},
	{"github_pat_", 24},
	{"glpat-", 20},
	{"glrt-", 20},
	{"gldt-", 20},
	{"glcbt-", 20},
	{"glptt-", 20},
	{"gloas-", 20},
	{"npm_", 24},
	{"pypi-", 24},
	{"rubygems_", 24},
	{"dckr_pat_", 20},
	{"ATATT3", 24},
	{"ATBB", 24},
	{"ATCTT3", 24},
	/* clouds */
	{"AKIA", 20},
	{"ASIA", 20},
	{"ABIA", 20},
	{"ACCA", 20},
	{"LTAI", 16},
	{"AIza", 30},
	{"ya29.", 20},
	{"1//0", 24},
	{"GOCSPX-", 20},
	{"dop_v1_", 20},
	{"doo_v1_", 20},
	{"dor_v1_", 20},
	{"dapi", 32},
	{"tskey-", 20},
	{"hvs.", 20},
	{"hvb.", 20},
	{"hvr.", 20},
	{"CFPAT-", 20},
	/* services */
	{"sk-", 24},
	{"sk_live_", 20},
	{"sk_test_", 20},
	{"rk_live_", 20},
	{"rk_test_", 20},
	{"whsec_", 20},
	{"hf_", 24},
	{"gsk_", 24},
	{"r8_", 24},
	{"pplx-", 24},
	{"xoxb-", 16},
	{"xoxp-", 16},
	{"xoxa-", 16},
	{"xoxs-", 16},
	{"xoxr-", 16},
	{"xoxe.", 16},
	{"xapp-", 16},
	{"SG.", 24},
	{"key-", 36},
	{"shpat_", 20},
	{"shpss_", 20},
	{"sq0atp-", 20},
	{"sq0csp-", 20},
	{"lin_api_", 20},
	{"ntn_", 24},
	{"figd_", 20},
	{"PMAK-", 24},
	{"NRAK-", 20},
	{"sntrys_", 20},
	{"sntryu_", 20},
	{"glsa_", 20},
	{"glc_", 24},
	{"SWMTKN-", 24},
	{"claim-", 20},
	{"FLWSECK", 20},
	/* keys and hashes */
	{"eyJ", 30},
	{"AGE-SECRET-KEY-", 24},
	{"$1$", 20},
	{"$5$", 20},
	{"$6$", 20},
	{"$2a$", 20},
	{"$2b$", 20},
	{"$2y$", 20},
	{"$y$", 20},
	{"$argon2", 30},
	{"$pbkdf2", 30},
};

/* A bot of Telegram: 123456789:ABC-DEF... */
static size_t telegram_at(const char *p, size_t n)
{
	size_t d = 0, k;

	while (d < n && d < 13 && isdigit((unsigned char)p[d]))
		d++;
	if (d < 8 || d > 12 || d >= n || p[d] != ':')
		return 0;
	for (k = d + 1; k < n && (isalnum((unsigned char)p[k]) || p[k] == '_' || p[k] == '-');)
		k++;
	return k - d - 1 >= 30 ? k : 0;
}

size_t token_at(const char *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		bool mixed = false;
		size_t k;

		if (*p != *shapes[i].prefix || n < shapes[i].min)
			continue;
		k = strlen(shapes[i].prefix);
		if (memcmp(p, shapes[i].prefix, k) != 0)
			continue;
		while (k < n && (token_char(p[k]) || (*p == '$' && (p[k] == '$' || p[k] == ',')))) {
			mixed |= !islower((unsigned char)p[k]) && p[k] != '-' && p[k] != '_' &&
				 p[k] != '.' && p[k] != '/';
			k++;
		}
		if (k >= shapes[i].min && mixed)
			return k;
	}
	return n && isdigit((unsigned char)*p) ? telegram_at(p, n) : 0;
}

bool looks_random(struct span s)
{
	size_t small = 0, large = 0, digits = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (islower(c))
			small++;
		else if (isupper(c))
			large++;
		else if (isdigit(c))
			digits++;
		else if (c != '_' && c != '-')
			return false;
	}
	return s.n >= 24 && small && large > 1 && digits > 1;
}
