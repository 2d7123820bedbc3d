/* SPDX-License-Identifier: Apache-2.0 */
/*
 * argshare: command lines of one program are mostly alike (a build's compilers above all), so a
 * process keeps what differs: the first `keep` characters of a base, then `middle`, then the base's
 * last `end` characters. Pure.
 *
 * A compiler gets one name several times (x.c, x.o, x.d): such a stem is taken out first. What
 * is shared is then the form of the line, with ARGSHARE_MARK at each place of the stem; no text in
 * the store has that byte by itself.
 */
#ifndef SONDE_STORE_MODEL_ARGSHARE_H
#define SONDE_STORE_MODEL_ARGSHARE_H

#include <stddef.h>

#include "schema/base/strbuf.h"

#define ARGSHARE_MARK '\x1f'

struct argshare {
	size_t keep, end;   /* characters of the base (valid UTF-8, as SQL counts) */
	const char *middle; /* within the args; not NUL-terminated */
	size_t middle_bytes;
};

/* Both valid UTF-8. Prefix and suffix overlap neither in the base nor in the args. */
struct argshare argshare_of(const char *base, const char *args);

/* The name that occurs in `args` most often as the stem of a file name, at least twice; of two
 * equally frequent ones the longer. Returns its length, 0: no such name; *stem points into args. */
size_t argshare_stem(const char *args, const char **stem);
/* Adds `args` with the mark in each place where the stem, which is not empty, is a whole name. */
void argshare_form(const char *args, const char *stem, size_t len, struct strbuf *out);
/* Adds the line that a process keeps as `own` ([mark stem mark] middle) and that many characters of
 * its base, as the view `processes` has it; the whole base if it is shorter. */
void argshare_whole(const char *base, size_t keep, const char *own, size_t end, struct strbuf *out);

#endif
