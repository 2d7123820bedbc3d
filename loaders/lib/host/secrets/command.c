/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/secrets/command.h"

#include <string.h>

#include "loaders/lib/host/secrets/programs.h"
#include "loaders/lib/host/secrets/text.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define DEPTH_MAX    6 /* programs that run one another: sudo env nice timeout mysql */
#define COMMANDS_MAX 24

struct command {
	struct hidden *h;
	const struct view *words;
	uint8_t *known;
	size_t n;
	const struct program *program;
	size_t positional; /* words so far that are no option, without the program */
};

static struct span text(struct view v)
{
	return (struct span){v.p, v.n};
}

/* -x or --long-name: the value before it is missing. */
static bool is_option(struct view v)
{
	if (v.n < 2 || v.p[0] != '-')
		return false;
	if (v.p[1] != '-')
		return v.n == 2 && isalpha((unsigned char)v.p[1]);
	for (size_t i = 2; i < v.n && v.p[i] != '='; i++)
		if (!islower((unsigned char)v.p[i]) && !isdigit((unsigned char)v.p[i]) &&
		    v.p[i] != '-' && v.p[i] != '_' && v.p[i] != '.')
			return false;
	return v.n > 2 && islower((unsigned char)v.p[2]);
}

static const void *last(char c, struct view v)
{
	return v.n ? memrchr(v.p, c, v.n) : NULL;
}

/* user/secret@database */
static void hide_slash(struct hidden *h, struct view v)
{
	const char *slash = v.n ? memchr(v.p, '/', v.n) : NULL, *end = last('@', v);

	if (slash && slash > v.p && (!end || end > slash))
		view_hide(h, v, (size_t)(slash - v.p) + 1, end ? (size_t)(end - v.p) : v.n);
}

/* user:secret, and a token as the user of an empty one */
static void hide_colon(struct hidden *h, struct view v)
{
	const char *colon = v.n ? memchr(v.p, ':', v.n) : NULL;

	if (!colon)
		return;
	if (colon + 1 == v.p + v.n || looks_random((struct span){v.p, (size_t)(colon - v.p)}))
		view_hide(h, v, 0, (size_t)(colon - v.p));
	text_hide_after(h, v, ':');
}

/* pass:secret, hexkey:secret */
static void hide_pass(struct hidden *h, struct view v)
{
	const char *colon = v.n ? memchr(v.p, ':', v.n) : NULL;

	if (colon && span_in((struct span){v.p, (size_t)(colon - v.p)},
			     "pass hexpass key hexkey secret hexsecret"))
		text_hide_after(h, v, ':');
}

static void hide_behind(struct hidden *h, struct view v, const char *what)
{
	const char *at = v.n ? memmem(v.p, v.n, what, strlen(what)) : NULL;

	if (at)
		view_hide(h, v, (size_t)(at - v.p) + strlen(what), v.n);
}

/* key=value, but not what only ends like base64 */
static bool is_pair(struct view v)
{
	const char *eq = v.n ? memchr(v.p, '=', v.n) : NULL;

	return eq && eq + 1 < v.p + v.n && eq[1] != '=';
}

static void hide_by(struct command *c, enum rule_kind kind, size_t k, struct view v)
{
	switch (kind) {
	case RULE_COLON:
		hide_colon(c->h, v);
		break;
	case RULE_PERCENT:
		text_hide_after(c->h, v, '%');
		break;
	case RULE_COMMA:
		text_hide_after(c->h, v, ',');
		break;
	case RULE_SLASH:
		hide_slash(c->h, v);
		break;
	case RULE_PAIR:
	case RULE_COOKIE:
		text_hide_after(c->h, v, '=');
		break;
	case RULE_PASS:
		hide_pass(c->h, v);
		break;
	case RULE_DATA:
		hide_behind(c->h, v, ",data=");
		break;
	case RULE_URL:
		hide_behind(c->h, v, "://");
		break;
	case RULE_NAMED:
		if (k && name_is_secret(text(c->words[k - 1])))
			view_hide(c->h, v, 0, v.n);
		break;
	case RULE_CODE:
		c->known[k] |= WORD_CODE;
		break;
	case RULE_OTHER:
	case RULE_FLAGS:
	case RULE_LAST:
		break;
	default:
		view_hide(c->h, v, 0, v.n);
	}
}

/* The value of an option in the next word, `k`. Returns how many words it took. */
static size_t next_word(struct command *c, enum rule_kind kind, size_t k)
{
	if (kind == RULE_LAST) {
		view_hide(c->h, c->words[c->n - 1], 0, c->words[c->n - 1].n);
		return 0;
	}
	if (k >= c->n || (kind != RULE_OTHER && kind != RULE_CODE && is_option(c->words[k])))
		return 0;
	c->known[k] |= WORD_KNOWN;
	hide_by(c, kind, k, c->words[k]);
	if (kind != RULE_TWO || k + 1 >= c->n)
		return 1;
	c->known[k + 1] |= WORD_KNOWN;
	hide_by(c, kind, k + 1, c->words[k + 1]);
	return 2;
}

/* ---- keys ---- */

struct key {
	struct span name;
	size_t n; /* +N, @N; 0: an option; SIZE_MAX: '*' */
	bool positional;
};

/* The next key of a rule. */
static bool key_next(const char **s, struct key *key)
{
	size_t n = strcspn(*s, " ");
	const char *plus, *digit;

	if (!n)
		return false;
	*key = (struct key){.name = {*s, n}};
	plus = memrchr(*s, '+', n);
	key->positional = **s == '@';
	digit = key->positional ? *s + 1 : plus && plus > *s ? plus + 1 : NULL;
	if (digit) {
		key->n = *digit == '*' ? SIZE_MAX : (size_t)(*digit - '0');
		key->name.n = key->positional ? 0 : (size_t)(plus - *s);
	}
	*s += n + ((*s)[n] == ' ');
	return true;
}

static bool same(struct span a, struct view v)
{
	return a.n == v.n && !memcmp(a.p, v.p, a.n);
}

static bool same_word(struct span a, struct view v)
{
	return a.n == v.n && !strncasecmp(a.p, v.p, a.n);
}

static bool applies(const struct command *c, const struct rule *rule, size_t k)
{
	if (!rule->after)
		return true;
	for (size_t i = 1; i < k; i++)
		if (same((struct span){rule->after, strlen(rule->after)}, c->words[i]))
			return true;
	return false;
}

/* An option's value that is attached to it: -pX, --password=X, /p:X. 0: it is not this one. */
static size_t attached(struct span key, struct view v, enum rule_kind kind)
{
	char end = key.p[key.n - 1];

	if (v.n <= key.n || kind == RULE_SEPARATE || kind == RULE_TWO || kind == RULE_LAST)
		return 0;
	if (end == ':' || end == '=')
		return span_begins(text(v), "") && !strncasecmp(v.p, key.p, key.n) ? key.n : 0;
	if (memcmp(v.p, key.p, key.n) != 0)
		return 0;
	if (key.n > 2 && (v.p[key.n] == '=' || (v.p[key.n] == ':' && key.p[0] == '/')))
		return key.n + 1;
	return (key.n == 2 && key.p[0] == '-') || kind == RULE_ATTACHED ? key.n : 0;
}

/* ---- options ---- */

static bool is_flag(const struct command *c, char letter)
{
	for (size_t r = 0; r < c->program->n; r++)
		if (c->program->rules[r]->kind == RULE_FLAGS &&
		    strchr(c->program->rules[r]->keys, letter))
			return true;
	return false;
}

/* The kind of a short option's value; RULE_FLAGS if no rule knows the option. */
static enum rule_kind letter_kind(const struct command *c, size_t k, char letter)
{
	struct key key;

	for (size_t r = 0; r < c->program->n; r++) {
		const struct rule *rule = c->program->rules[r];
		const char *s = rule->keys;

		if (rule->kind == RULE_FLAGS || !applies(c, rule, k))
			continue;
		while (key_next(&s, &key))
			if (!key.n && key.name.n == 2 && key.name.p[0] == '-' &&
			    key.name.p[1] == letter)
				return rule->kind;
	}
	return RULE_FLAGS;
}

/* A group of letters: -su X, -suX. Returns the words after it that it took, or SIZE_MAX if it is
 * none. */
static size_t group(struct command *c, size_t k)
{
	struct view v = c->words[k];

	if (v.n < 3 || v.p[0] != '-' || v.p[1] == '-')
		return SIZE_MAX;
	for (size_t i = 1; i < v.n; i++) {
		enum rule_kind kind = letter_kind(c, k, v.p[i]);

		if (kind != RULE_FLAGS) {
			if (kind == RULE_LAST || i + 1 == v.n || kind == RULE_CODE)
				return next_word(c, kind, k + 1);
			if (kind != RULE_SEPARATE && kind != RULE_TWO)
				hide_by(c, kind, k, view_part(v, i + 1, v.n));
			return 0;
		}
		if (!is_flag(c, v.p[i]))
			return SIZE_MAX;
	}
	return 0;
}

/* The word is an option that this rule has a key for. `named`: it is -password, not -p with
 * "assword" attached. Returns how many words after it belong to it, or SIZE_MAX if the rule has no
 * key for it. */
static size_t option_by(struct command *c, const struct rule *rule, size_t k, bool named)
{
	const char *s = rule->keys;
	struct view v = c->words[k];
	struct key key;

	while (key_next(&s, &key)) {
		size_t value;

		if (key.n || key.positional)
			continue;
		if (same(key.name, v) && rule->kind != RULE_ATTACHED)
			return next_word(c, rule->kind, k + 1);
		value = named ? 0 : attached(key.name, v, rule->kind);
		if (value) {
			if (v.n - value > 1 || v.p[value] != '-')
				hide_by(c, rule->kind, k, view_part(v, value, v.n));
			return 0;
		}
	}
	return SIZE_MAX;
}

/* Returns the words after it that the option took. */
static size_t option(struct command *c, size_t k)
{
	bool named = c->words[k].p[0] == '-' &&
		     span_in((struct span){c->words[k].p + 1, c->words[k].n - 1},
			     "password passwd passphrase pass token pwd");
	size_t took;

	/* whole keys first: -storepass is no -s of a group */
	for (size_t r = 0; r < c->program->n; r++) {
		const struct rule *rule = c->program->rules[r];

		if (rule->kind == RULE_FLAGS || !applies(c, rule, k))
			continue;
		took = option_by(c, rule, k, named);
		if (took != SIZE_MAX) {
			c->known[k] |= WORD_KNOWN;
			return took;
		}
	}
	took = named ? SIZE_MAX : group(c, k);
	return took == SIZE_MAX ? 0 : took;
}

/* ---- other words ---- */

/* Does the word at `k` lie as far behind the key's word as it says? Options between do not count.
 */
static bool behind(const struct command *c, const struct key *key, size_t k)
{
	size_t n = 0;

	if (key->positional)
		return key->n == SIZE_MAX || key->n == c->positional;
	for (size_t i = k; i > 0 && n < 8; i--) {
		if (i < k && same_word(key->name, c->words[i]))
			return key->n == SIZE_MAX ? true : n == key->n;
		if (i < k && key->n == SIZE_MAX && n > 6)
			return false;
		if (c->words[i].n && c->words[i].p[0] != '-' && !(c->known[i] & WORD_KNOWN))
			n++;
	}
	return false;
}

static void positional(struct command *c, size_t k)
{
	for (size_t r = 0; r < c->program->n; r++) {
		const struct rule *rule = c->program->rules[r];
		const char *s = rule->keys;
		struct key key;

		if (rule->kind == RULE_FLAGS || !applies(c, rule, k))
			continue;
		while (key_next(&s, &key))
			if ((key.n || key.positional) && behind(c, &key, k)) {
				hide_by(c, rule->kind, k, c->words[k]);
				break;
			}
	}
}

static void by_rules(struct command *c)
{
	for (size_t k = 1; k < c->n; k++) {
		struct view v = c->words[k];

		if (v.n && (v.p[0] == '-' || v.p[0] == '/' || is_pair(v))) {
			size_t took = option(c, k);

			if (v.p[0] == '-' || took || (c->known[k] & WORD_KNOWN)) {
				k += took;
				continue;
			}
		}
		c->positional++;
		positional(c, k);
	}
}

/* ---- programs that run others ---- */

struct walk {
	struct hidden *h;
	int left; /* so many commands in this one are still looked at: each costs its length */
};

static void scan(struct walk *w, const struct view *words, uint8_t *known, size_t n, bool code,
		 int depth);

/* Where the command begins that a carrier runs, n if nowhere. */
static size_t carried(const struct carrier *by, const struct view *words, size_t n)
{
	size_t k = 1, skip = by->skip;

	if (by->after) {
		while (k < n && !span_in(text(words[k]), by->after))
			k++;
		k++;
	}
	for (; k < n; k++) {
		struct view v = words[k];

		if (v.n > 1 && v.p[0] == '-') {
			if (v.n == 2 && v.p[1] == '-')
				return k + 1 + skip < n ? k + 1 + skip : n;
			if (v.p[1] == '-' ?
				    by->flags && !memchr(v.p, '=', v.n) &&
					    !span_in((struct span){v.p + 2, v.n - 2}, by->flags) :
				    v.p[v.n - 1] && strchr(by->values, v.p[v.n - 1]) != NULL)
				k++;
		} else if (skip) {
			skip--;
		} else {
			return k;
		}
	}
	return n;
}

static bool assignment(struct view v)
{
	size_t i = 0;

	while (i < v.n && (isalnum((unsigned char)v.p[i]) || v.p[i] == '_'))
		i++;
	return i && i < v.n &&
	       (v.p[i] == '=' || (v.p[i] == '+' && i + 1 < v.n && v.p[i + 1] == '='));
}

/* Past assignments and what only begins a command of a shell. */
static size_t first_word(const struct view *words, size_t n)
{
	size_t k = 0;

	while (k < n &&
	       (assignment(words[k]) ||
		span_in(text(words[k]), "if then elif else while until do ! { } time + $ # ++")))
		k++;
	return k;
}

/* mysql:8.0, registry/curl@sha256:... : the name of an image, as that of a program */
static struct view image_program(struct view v)
{
	const char *slash = last('/', v);
	size_t begin = slash ? (size_t)(slash - v.p) + 1 : 0, end = begin;

	while (end < v.n && v.p[end] != ':' && v.p[end] != '@')
		end++;
	return view_part(v, begin, end);
}

static void carry(struct walk *w, const struct carrier *by, const struct view *words,
		  uint8_t *known, size_t n, bool code, int depth)
{
	size_t k = carried(by, words, n);
	struct program p;

	if (k >= n)
		return;
	if (by->after && !by->skip &&
	    !span_begins((struct span){by->after, strlen(by->after)}, "record")) {
		struct view image = image_program(words[k]);

		if (program_find(text(image), &p) && !p.plain) {
			struct command c = {w->h, words + k, known + k, n - k, &p, 0};

			by_rules(&c);
		}
		k++;
	}
	scan(w, words + k, known + k, n - k, code, depth + 1);
}

/* An unknown program: it may run what follows a word that is the name of a known one. */
static void search(struct walk *w, const struct view *words, uint8_t *known, size_t n, int depth)
{
	struct program p;
	size_t found = 0, most = depth ? 1 : 4;

	for (size_t k = 1; k < n && found < most; k++)
		if (words[k].n > 1 && words[k].p[0] != '-' && program_find(text(words[k]), &p) &&
		    !p.plain && !p.verb) {
			scan(w, words + k, known + k, n - k, false, depth + 1);
			found++;
		}
}

/* ProxyCommand=sshpass -p X: the words of a command that is the value of an assignment. */
static void scan_assigned(struct walk *w, const struct view *words, uint8_t *known, size_t n,
			  int depth)
{
	cleanup_free struct view *own = mem_array(n, sizeof(*own));
	const char *eq = memchr(words[0].p, '=', words[0].n);

	memcpy(own, words, n * sizeof(*own));
	own[0] = view_part(words[0], (size_t)(eq - words[0].p) + 1, words[0].n);
	scan(w, own, known, n, true, depth + 1);
}

static void scan(struct walk *w, const struct view *words, uint8_t *known, size_t n, bool code,
		 int depth)
{
	size_t first = n ? first_word(words, n) : 0;
	struct program p;

	if (first >= n || depth > DEPTH_MAX || w->left-- <= 0)
		return;
	if (first && assignment(words[first - 1]) && words[first].n && words[first].p[0] == '-') {
		scan_assigned(w, words + first - 1, known + first - 1, n - first + 1, depth);
		return;
	}
	words += first;
	known += first;
	n -= first;
	for (size_t k = 1; k < n; k++)
		if (words[k].n == 2 && !memcmp(words[k].p, "--", 2)) {
			scan(w, words + k + 1, known + k + 1, n - k - 1, code, depth + 1);
			break;
		}
	if (!program_find(text(words[0]), &p) || (p.verb && !code)) {
		search(w, words, known, n, depth);
		return;
	}
	if (p.n) {
		struct command c = {w->h, words, known, n, &p, 0};

		by_rules(&c);
	}
	for (size_t i = 0; i < p.n_carriers; i++)
		carry(w, p.carriers[i], words, known, n, code, depth);
}

void command_scan(struct hidden *h, const struct view *words, uint8_t *known, size_t n, bool code)
{
	struct walk w = {h, COMMANDS_MAX};

	scan(&w, words, known, n, code, 0);
}

void command_named_options(struct hidden *h, const struct view *words, const uint8_t *known,
			   size_t n)
{
	for (size_t k = 0; k + 1 < n; k++) {
		struct span a = text(words[k]);

		if ((known[k] & WORD_KNOWN) || a.n < 3 || !strchr("-+", a.p[0]) ||
		    memchr(a.p, '=', a.n) || memchr(a.p, ' ', a.n) || is_option(words[k + 1]))
			continue;
		while (a.n && strchr("-+", a.p[0])) {
			a.p++;
			a.n--;
		}
		if (name_is_secret(a) && !name_is_flag(a) &&
		    !value_is_harmless(a, text(words[k + 1])))
			view_hide(h, words[k + 1], 0, words[k + 1].n);
	}
}

/* ---- what is piped ---- */

bool command_is_echo(const struct view *words, size_t n)
{
	size_t k = first_word(words, n);

	return k < n && span_in(text(words[k]), "echo printf /bin/echo /usr/bin/printf print yes");
}

/* curl -K -: its options, with names and passwords, come from its input. */
static bool reads_options(const struct view *words, size_t n)
{
	bool curl = false;

	for (size_t k = 0; k < n; k++) {
		struct span w = text(words[k]);

		curl |= span_is(w, "curl");
		if (curl &&
		    (span_is(w, "-K-") || span_is(w, "--config=-") ||
		     (k + 1 < n && span_in(w, "-K --config") && span_is(text(words[k + 1]), "-"))))
			return true;
	}
	return false;
}

/* docker secret create x -, vault login -, pass insert x: by the name of what they do. */
static bool takes_secret(const struct view *words, size_t n)
{
	size_t first = first_word(words, n);
	struct program p;

	if (first >= n || (program_find(text(words[first]), &p) && p.plain))
		return false;
	if (span_in(text(words[first]), "pass gopass"))
		return true;
	for (size_t k = first + 1; k < n; k++)
		if (span_in(text(words[k]), "secret secrets login"))
			return true;
	return false;
}

bool command_reads_secret(const struct view *words, size_t n)
{
	static const char readers[] =
		"chpasswd kinit passwd smbpasswd cryptsetup pdbedit chgpasswd ssh-add kpasswd adcli realm "
		"ntlm_auth ecryptfs-add-passphrase ecryptfs-unwrap-passphrase gocryptfs encfs htpasswd "
		"vncpasswd mkpasswd newusers pwscore cracklib-check grub-mkpasswd-pbkdf2 ansible-vault "
		"systemd-creds keepassxc-cli";
	bool sudo = false;

	if (reads_options(words, n) || takes_secret(words, n))
		return true;
	for (size_t k = 0; k < n; k++) {
		struct span w = text(words[k]);

		sudo |= span_is(w, "sudo") || span_is(w, "su");
		if ((sudo && (span_is(w, "su") || (w.n > 1 && w.p[0] == '-' && w.p[1] != '-' &&
						   memchr(w.p, 'S', w.n)))) ||
		    span_in(w, readers) ||
		    span_in(w,
			    "--password-stdin --with-token --stdin --passphrase-fd "
			    "--passphrase-fd=0 --pass-stdin --passwd-on-stdin stdin -stdin fd:0 password_stdin "
			    "--pinentry-mode --stdin-password --password-from-stdin"))
			return true;
	}
	return false;
}
