/* SPDX-License-Identifier: Apache-2.0 */
/*
 * question: from /api/v1/VERB?name=value&... to the command line of `sonde VERB --json`. A list of
 * what is allowed decides:
 *
 *   1. the verb is listed in this file: it only reads the store, reads no other file of this host,
 *      and has JSON;
 *   2. the option is in that verb's table, according to `sonde help --json`, and listed in this
 *      file: none that writes, opens or reads a file;
 *   3. no option whose value is a FILE, DIR or URL, whatever the list says.
 *
 * name=value becomes one word, `--name=value`; a flag is given as name or name=1; `what` (a bare
 * word to select by) and `query` (of sql) follow as words. There is no shell. Only the verb
 * interprets values.
 */
#ifndef SONDE_SERVE_QUESTION_H
#define SONDE_SERVE_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"

#define QUESTION_VALUES 100   /* in one request */
#define QUESTION_VALUE  16384 /* bytes of one value */

struct questions; /* the verbs with their options */

/* `json`: the output of `sonde help --json` (borrowed for the call). EXIT_PREREQUISITE if it is
 * something else. */
int questions_read(const char *json, size_t len, struct questions **out, struct err *e);
void questions_free(struct questions *q);

struct question_value {
	const char *name, *value; /* value NULL: without '=' */
	size_t name_len, value_len;
};

/* The argv of `sonde verb`, NULL-terminated; `store` NULL: default; `seconds`: upper limit for a
 * request; `page`: the verb prints a page rather than JSON. One block, free(). -ENOENT: the verb is
 * not available; -EINVAL: anything else; `e` has the message. */
int question_argv(const struct questions *q, const char *sonde, const char *store, unsigned seconds,
		  const char *verb, bool page, const struct question_value *values, size_t n,
		  const char ***argv, struct err *e);

/* {"verbs": [...]}: the available verbs; the caller owns it. */
char *questions_list(const struct questions *q);
/* Does exit code 1 of this verb also mean an answer? */
bool question_may_fail(const char *verb);

#endif
