/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: which names are those of secrets, and which words are secrets by their shape. Pure.
 */
#ifndef SONDE_HOST_SECRETS_NAMES_H
#define SONDE_HOST_SECRETS_NAMES_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

struct span {
	const char *p;
	size_t n;
};

/* In any case of letters. */
bool span_is(struct span s, const char *word);
bool span_begins(struct span s, const char *word);
/* Is it one of the words, which single spaces separate? */
bool span_in(struct span s, const char *words);

/* A byte of a name: of an option, a variable, a key. */
static inline bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Must a value with this name be hidden? By its parts, which -, _, . and changes of case separate:
 * dbPassword, API_KEY, auth-token, PGPASSWORD. Not if the last part says that the value is only
 * about a secret: password-file, token-ttl. */
bool name_is_secret(struct span name);

/* --no-password, --ask-pass: an option without a value, though its name has such a word. */
bool name_is_flag(struct span name);

/* Is this value surely none of a secret: yes, none, credentials=/path? */
bool value_is_harmless(struct span name, struct span value);

/* name_is_secret for the parameter of a URL's query, where shorter names are usual: sig, code, key.
 */
bool name_is_secret_parameter(struct span name);

/* Length of the token that begins here and is known by its shape (ghp_..., AKIA..., a JWT, a hash
 * of a password), 0 if none does. */
size_t token_at(const char *p, size_t n);

/* Letters and digits as only a generator writes them: 24 or more, small, large and digits. */
bool looks_random(struct span s);

#endif
