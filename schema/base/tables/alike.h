/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alike: whether two patterns of log messages (loaders/logs/words.h) are one: they have as many
 * words, and differ in at most one where neither has "*", at least twice as many others, and two,
 * being equal. Who counts and who reads decide it by the same rule: what one recording had, another
 * one has under the same words or under alike ones. Pure.
 */
#ifndef SONDE_BASE_ALIKE_H
#define SONDE_BASE_ALIKE_H

#include <stdbool.h>
#include <stddef.h>

/* Words are what single blanks separate. `general`: what both are, "*" where they differ; it has
 * room for the longer of them and a NUL, else false. NULL: not wanted. */
bool alike(const char *a, const char *b, char *general, size_t size);

#endif
