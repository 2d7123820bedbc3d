/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: finds secrets inside of any text, whatever program it is for. Pure and linear.
 *   1. NAME=VALUE, NAME: VALUE, "NAME": "VALUE" (at any level of escapes), NAME => VALUE,
 *      --NAME VALUE, <NAME>VALUE</NAME>, NAME(...'VALUE'...), where name_is_secret(NAME).
 *   2. A header: all of its value. "Bearer X" without its name.
 *   3. URLs: the password of scheme://user:X@host, or the user where it may be a token
 *      (https://X@host); parameters of the query; the paths of webhooks, of Telegram's bots and of
 *      streams, and parts of a path that only a generator writes. DSNs: user:X@tcp(host).
 *   4. SQL: PASSWORD 'X', IDENTIFIED BY X, the values of an INSERT with a column of passwords.
 *   5. Tokens by their shape; private keys in PEM. In a line of a log, also numbers of cards and
 * what is written in base64 (shapes.h).
 */
#ifndef SONDE_HOST_SECRETS_TEXT_H
#define SONDE_HOST_SECRETS_TEXT_H

#include "loaders/lib/host/secrets/view.h"

enum text_kind {
	TEXT_WORD,  /* an argument, without quotes: a value goes on as long as it can */
	TEXT_SHELL, /* shell code: a value ends at a blank or an operator */
	TEXT_LINE   /* prose, a line of a log: the same */
};

void text_scan(struct hidden *h, struct view v, enum text_kind kind);

/* user:SECRET, also user:SECRET@host: hides what follows the separator. False: it has no separator.
 */
bool text_hide_after(struct hidden *h, struct view v, char separator);

#endif
