/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: the words of a command, and what of them is a secret by the tables of `programs`. Finds
 * the program behind others that only run it (sudo, env, docker exec, any unknown one). Pure.
 */
#ifndef SONDE_HOST_SECRETS_COMMAND_H
#define SONDE_HOST_SECRETS_COMMAND_H

#include "loaders/lib/host/secrets/view.h"

/* Flags of a word. */
enum {
	WORD_KNOWN = 1, /* a rule says what it is, or the value of what */
	WORD_CODE = 2,  /* it is shell code */
};

/* Sets `known`, the flags of each word. `code`: the command is part of shell code. */
void command_scan(struct hidden *h, const struct view *words, uint8_t *known, size_t n, bool code);

/* Hides the word after an option whose name says that it takes a secret, such as --password. */
void command_named_options(struct hidden *h, const struct view *words, const uint8_t *known,
			   size_t n);

/* Does this command read a secret from its input? Is it one that writes its arguments? */
bool command_reads_secret(const struct view *words, size_t n);
bool command_is_echo(const struct view *words, size_t n);

#endif
