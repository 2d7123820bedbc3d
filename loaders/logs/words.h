/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words: the pattern of a message: the words that stay, "*" for what changes. Pure and linear.
 *
 *   1. Words are what blanks separate. "*" replaces what has a digit, a path, an address with @, a
 *      word of 8 hex letters or more, what is longer than 64 bytes, and text in quotes; of
 *      name=value the name stays. What is around a word (brackets, commas) is left out.
 *   2. Of a JSON object the message counts (msg, message, event, @m), and its error; of logfmt too.
 *      An object without a message: its keys.
 *   3. Times, numbers of processes and names of days, months and zones before the first word are
 *      left out, and so is the word of the level.
 *   4. WORDS_MOST words, WORDS_BYTES bytes.
 */
#ifndef SONDE_LOGS_WORDS_H
#define SONDE_LOGS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_MOST  48
#define WORDS_BYTES 400

struct words {
	uint16_t n, len;
	struct {
		uint16_t at, len;
	} word[WORDS_MOST];
	char text[WORDS_BYTES + 1]; /* with one blank between words */
};

void words_of(const char *s, size_t len, struct words *out);
uint64_t words_hash(const struct words *w);

#endif
