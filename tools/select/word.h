/* SPDX-License-Identifier: Apache-2.0 */
/*
 * word: what a bare word on the command line means: `sonde flame nginx`. Searched over the
 * containers, units, commands and pids of a store. In this order: the whole name, a part of a name.
 * Where several different names fit, that is an error with the list; where one name is that of a
 * container and of a command, the container is meant.
 */
#ifndef SONDE_TOOLS_WORD_H
#define SONDE_TOOLS_WORD_H

#include <stddef.h>

#include "schema/base/err.h"
#include "schema/base/idmap.h"
#include "schema/store/read/reader.h"
#include "tools/select/filter.h"

/* Names that a word may mean; strings are copied. */
struct names {
	struct name {
		enum filter_kind kind;
		char *text;
		char *id;   /* of a container, "" */
		bool whole; /* a service or project of compose: not found by a part of it */
	} * items;
	size_t n, cap;
	struct idmap known; /* hash of (kind, text) -> 1 */
};
void names_add(struct names *l, enum filter_kind kind, const char *text, const char *id);
/* All of a segment. */
int names_read(struct names *l, const char *segment_path, struct err *e);
void names_release(struct names *l);

/* Pure. Index of the name meant; -ENOENT: none; -EEXIST: several (`e` lists them, EXIT_USAGE). */
int word_resolve(const struct names *l, const char *word, size_t *index, struct err *e);
/* The error for a word that fits nothing, with did-you-mean. Returns -ENOENT. */
int word_unknown(const struct names *l, const char *word, struct err *e);

/* Adds "; did you mean --container 'web'?" for the first plain value that no name of its kind
 * equals and some are near. */
void word_near_filters(const struct names *l, const struct filters *f, struct strbuf *out);

#endif
