/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prose: how lines of logs show secrets where no `NAME=VALUE` does (text.h has those). Pure and
 * linear: each rule looks a bounded way ahead, or to the end of its line once.
 *   1. Terms of Erlang and Clojure: {password,<<"X">>}, {<<"password">>,"X"}, :password "X".
 *   2. NAME%3DX inside of what is percent-encoded, up to %26 or the end of the word.
 *   3. PostgreSQL: Key (id, token)=(1, X): all values, if one column is of secrets. MariaDB:
 *      Duplicate entry 'X' for key 'token'.
 *   4. Words in quotes, as Redis writes commands: "AUTH" "X" and "SETUSER" "X" to the end of the
 *      line, "requirepass" "X" and other names of secrets the next word.
 *   5. Protocols in clear text: PASS X, AUTH PLAIN X, LOGIN user X.
 *   6. Sentences: a password is X, password 'X', the generated (temporary, initial, new, default,
 *      root's) password ...: X and password for ...: X at the end of the line.
 * In rules 5 and 6 X must not be a word of a language, or each "password is wrong" would be one: it
 * has a digit and a letter, or a mark such as $ or !, or is four digits or more.
 */
#ifndef SONDE_HOST_SECRETS_PROSE_H
#define SONDE_HOST_SECRETS_PROSE_H

#include "loaders/lib/host/secrets/view.h"

void prose_scan(struct hidden *h, struct view v);

#endif
