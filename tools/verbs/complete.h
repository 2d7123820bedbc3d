/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete: the words that fit at the cursor of a `sonde` command line, for the shells'
 * completions: verbs, the options of a verb from its tables, values of an option from the newest
 * segment of the store, and bare words.
 */
#ifndef SONDE_TOOLS_COMPLETE_H
#define SONDE_TOOLS_COMPLETE_H

#include <stddef.h>
#include <stdio.h>

/*
 * `words` are the words after `sonde`; the last one is being typed and may be "". Prints one line
 * for each word that fits: the word, and a tab and its help if it has one. "<file>" alone means a
 * path; no output means that nothing fits. Reports no errors: a store that cannot be read has no
 * names.
 */
void complete_print(char *const *words, size_t n, FILE *out);

#endif
