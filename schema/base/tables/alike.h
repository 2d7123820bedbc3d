/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alike: whether two patterns of log messages (loaders/logs/words.h) may be one: they have as many
 * words, and where neither has "*" they differ in at most `most`, at least twice as many, and two,
 * being equal. With most 0 one covers the other: who reads takes them for one. Who counts makes "*"
 * of a word when a third one comes in its place. Pure.
 */
#ifndef SONDE_BASE_ALIKE_H
#define SONDE_BASE_ALIKE_H

#include <stdbool.h>
#include <stddef.h>

/* Words are what single blanks separate. `general`: what both are, "*" where they differ; it has
 * room for the longer of them and a NUL, else false. NULL: not wanted. */
bool alike(const char *a, const char *b, size_t most, char *general, size_t size);

#endif
