/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes: what is a secret in a line of a log by its shape alone, where no name says so. Pure. In a
 * command line such words are too often something else (names of files, ids): not for those.
 *
 *   1. The number of a payment card: 13 to 19 digits, in groups that single blanks or dashes
 *      separate, or in one; it begins as cards do (2221 to 2720, 3 to 6), and its last digit is
 *      that of Luhn's formula (ISO/IEC 7812-1).
 *   2. What is written in base64: a word of SHAPES_BASE64 bytes or more of its alphabet (RFC 4648,
 *      sections 4 and 5) with small letters, large ones and digits. A path does not count: it
 * begins with a slash, or has many.
 */
#ifndef SONDE_HOST_SECRETS_SHAPES_H
#define SONDE_HOST_SECRETS_SHAPES_H

#include <stddef.h>

#define SHAPES_BASE64 40

/* Length of what begins here; 0: none of these. */
size_t shape_at(const char *p, size_t n);

#endif
