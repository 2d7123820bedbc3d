/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete: what fits where the cursor stands on a command line of `sonde`, for the shells'
 * completions: verbs, the options of a verb by its tables, values of an option as the newest
 * segment of the store knows them, and bare words.
 */
#ifndef SONDE_TOOLS_COMPLETE_H
#define SONDE_TOOLS_COMPLETE_H

#include <stddef.h>
#include <stdio.h>

/* `words` is what stands after `sonde`; the last one is what is being typed, perhaps "". Prints a
 * line for each that fits: the word, and if there is a help for it a tab and that. "<file>" alone:
 * a path is wanted. Nothing: nothing fits. Says nothing of errors: a store that cannot be read has
 * no names. */
void complete_print(char *const *words, size_t n, FILE *out);

#endif
