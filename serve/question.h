/* SPDX-License-Identifier: Apache-2.0 */
/*
 * question: from /api/v1/VERB?name=value&... to the command line of `sonde VERB --json`. What may
 * be asked is a white list:
 *
 *   1. the verb is on the list of this file: it only reads the store, reads no other file of this
 * host, and has JSON;
 *   2. the option is in that verb's own table, as `sonde help --json` tells it, and on the list of
 * this file: none that writes, opens or reads a file;
 *   3. no option whose value is a FILE, DIR or URL, whatever the list says.
 *
 * name=value becomes one word, `--name=value`; a flag is given as name or name=1; `what` (a bare
 * word to select by) and `query` (of sql) come behind, as words. No shell. What the values mean is
 * the verb's business.
 */
#ifndef SONDE_SERVE_QUESTION_H
#define SONDE_SERVE_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"

#define QUESTION_VALUES 100   /* in one question */
#define QUESTION_VALUE  16384 /* bytes of one value */

struct questions; /* the table */

/* What `sonde help --json` printed (borrowed for the call). EXIT_PREREQUISITE if it is no such
 * thing. */
int questions_read(const char *json, size_t len, struct questions **out, struct err *e);
void questions_free(struct questions *q);

struct question_value {
	const char *name, *value; /* value NULL: there was no '=' */
	size_t name_len, value_len;
};

/* The argv of `sonde verb`, NULL-terminated; `store` NULL: none is named; `seconds`: what any may
 * take; `page`: a verb that prints a page, rather than JSON. One block, free(). -ENOENT: no such
 * verb is served; -EINVAL: anything else; `e` has the words. */
int question_argv(const struct questions *q, const char *sonde, const char *store, unsigned seconds,
		  const char *verb, bool page, const struct question_value *values, size_t n,
		  const char ***argv, struct err *e);

/* {"verbs": [...]}: those that are answered; the caller's. */
char *questions_list(const struct questions *q);
/* Its exit code 1 is an answer, too. */
bool question_may_fail(const char *verb);

#endif
