/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args: masks the secrets in a command line before it is stored: whatever looks like a password
 * becomes "***". Pure, over untrusted bytes.
 *
 * It masks the value, never the name, of (loaders/lib/host/secrets has the rules in full)
 *   1. an option, assignment, key, header or parameter of a URL whose name says that it is a
 * secret, in any case and notation: --password=x, --db-pass x, API_KEY=x, {"clientSecret": "x"},
 *      "X-Api-Key: x", ?access_token=x; names.h. Not if the name's last part says that the value is
 *      only about a secret (--password-file, token-ttl);
 *   2. what a known program takes as a secret: mysql -pX, curl -u a:X, docker login -p X, htpasswd
 * -b f u X, and some 400 more programs; programs.h. Also behind programs that run it (sudo, env,
 *      docker exec, unknown ones) and in shell code (sh -c "...", ssh host '...'), at any quoting;
 *   3. the secrets of URLs (user:X@host, paths of webhooks) and of DSNs, and of SQL; text.h;
 *   4. tokens by their shape (ghp_..., AKIA..., JWTs, hashes of passwords), and private keys in
 * PEM.
 *
 * What it cannot know: the secret of a program that is not in the table, in an option whose name
 * does not say so (app -p X, app --key X, app X); what is encoded (base64), encrypted, put together
 * or read by the program itself; what an interpreter's own code hides. Where that matters:
 * ARGS_NONE. On the other hand, it masks too much rather than too little: a value of a harmless
 * option with such a name is masked, too.
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
 * ARGS_NONE adds only the program's name (argv[0], masked). Other bytes are unchanged, except that
 * NULs and line ends become spaces. */
void args_format(const char *data, size_t len, enum args_policy policy, struct strbuf *out);

/* One line of text, such as of a log, masked by the same rules, but for values without quotes,
 * which end at the first blank; NULs and line ends in it become spaces. Mask before cutting: a
 * secret that was cut in the middle may not be recognised. */
void args_mask_line(const char *line, size_t len, struct strbuf *out);

#endif
