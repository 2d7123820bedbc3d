/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell: a lexer of shell code, as far as the words of its commands need it. Pure and linear; takes
 * any bytes.
 *   1. Blanks separate words. ; & | newline ( ) and ` end a command, outside of quotes.
 *   2. '...' is taken as it is; in "..." a backslash quotes $ ` " \ and a line end; $'...' has the
 *      escapes of C; outside of quotes a backslash quotes the next byte. A quote that does not end
 *      goes to the end of the text.
 *   3. Redirections: their target is a separate word, which does not belong to the command. "<<<"
 * gives the command a word as its input. Nothing is expanded: variables and patterns stay as they
 * are written.
 */
#ifndef SONDE_HOST_SECRETS_SHELL_H
#define SONDE_HOST_SECRETS_SHELL_H

#include "loaders/lib/host/secrets/view.h"

enum shell_place {
	SHELL_WORD = 0, /* of the same command as the word before */
	SHELL_FIRST,    /* the first word of a command */
	SHELL_PIPED,    /* the same, and it reads what the command before writes */
	SHELL_INPUT,    /* after "<<<" */
	SHELL_HERE,     /* after "<<": what ends the lines that are its input, from the next on */
	SHELL_FILE,     /* the target of any other redirection */
};

struct shell_word {
	struct view text; /* without quotes; lies in the struct shell */
	enum shell_place place;
};

struct shell {
	struct shell_word *words;
	size_t n, cap;
	char *text;
	struct source *src;
	size_t len;
};

void shell_lex(struct shell *s, struct view v);
void shell_release(struct shell *s);

#endif
