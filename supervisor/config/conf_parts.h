/* SPDX-License-Identifier: Apache-2.0 */
/* conf_parts: the table of keys, shared by the reader of one file (confparse.c) and that of all
 * places (conf.c). */
#ifndef SONDE_SUPERVISOR_CONF_PARTS_H
#define SONDE_SUPERVISOR_CONF_PARTS_H

#include "supervisor/config/conf.h"

struct conf_row {
	const char *section, *name, *env, *fallback, *like, *help;
	int (*check)(struct conf *c, const char *text);
};
extern const struct conf_row conf_rows[CONF_KEYS]; /* the fallback of families is theirs: */
const char *conf_fallback(enum conf_key key);

/* Take a value for a key; `origin` as in conf_value. EXIT_USAGE. */
int conf_set(struct conf *c, enum conf_key key, const char *text, const char *origin,
	     struct err *e);

#endif
