/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args: masks the secrets in a command line before it is stored: whatever looks like a password
 * becomes "***". Pure, over untrusted bytes.
 *
 * It masks the value, never the name, of
 *   1. an option or assignment whose name contains one of the words below, in any case:
 *      --password=x, --db-pass x, -password x, API_KEY=x, --auth-token x, {"password": "x"}. The
 *      words, as whole parts of a name (parts are split at -, _, . and changes of case): pass,
 *      passwd, password, passphrase, pwd, secret, token, apikey, api+key, access+key, private+key,
 *      credential(s), auth, authorization, bearer, cookie, signature. Not a name that ends in file,
 *      path, dir or url (the value is where the secret is, not the secret);
 *   2. -pX and -p X of mysql, mysqldump, mysqladmin, mariadb..., sshpass; -a X of redis-cli; -u a:X
 *      of curl and wget; -P and -w X of ldap programs;
 *   3. the password of a URL: scheme://user:X@host; and of DSNs (user:X@tcp(...));
 *   4. headers: "Authorization: X", "Proxy-Authorization: X", "Cookie: X", "X-Api-Key: X", as a
 *      separate argument or after -H or --header=;
 *   5. inside one argument (sh -c "..."; DSN "host=h password=x"): the same forms, up to the next
 *      space, quote, ';' or '&';
 *   6. well-known tokens by their shape: ghp_..., gho_..., glpat-..., sk-..., AKIA..., xox?-...,
 *      eyJ....eyJ.... (JWT).
 */
#ifndef SONDE_HOST_ARGS_H
#define SONDE_HOST_ARGS_H

#include <stddef.h>

struct strbuf;

enum args_policy { ARGS_MASKED = 0, ARGS_FULL, ARGS_NONE };

/* "full", "masked", "none" (NULL: masked). 0, or -EINVAL. */
int args_policy_parse(const char *s, enum args_policy *out);

/* `data` holds the arguments, each ended by NUL as in /proc/PID/cmdline (the last NUL may be
 * missing if it was cut). Adds them to `out`, separated by one space, masked by the policy.
 * ARGS_NONE adds only the program's name (argv[0]). Other bytes are unchanged, except that NULs and
 * line ends become spaces. */
void args_format(const char *data, size_t len, enum args_policy policy, struct strbuf *out);

/* One line of text, masked by rules 1 and 3 to 6; NULs and line ends in it become spaces. Mask
 * before cutting: a secret that was cut in the middle may not be recognised. */
void args_mask_line(const char *line, size_t len, struct strbuf *out);

#endif
