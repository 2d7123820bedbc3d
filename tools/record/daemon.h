/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: asking the sonded that keeps a store, over STORE/control.sock (a JSON object there, one
 * back). */
#ifndef SONDE_TOOLS_DAEMON_H
#define SONDE_TOOLS_DAEMON_H

#include <jansson.h>
#include <stdbool.h>

#include "schema/base/err.h"

/* Takes the reference of `request`. The answer is the caller's (json_decref). -ENOENT with
 * EXIT_NOTHING: no sonded keeps this store. What sonded refuses comes as its own error, with its
 * exit code. */
int daemon_ask(const char *store, json_t *request, json_t **answer, struct err *e);
/* Lines for `sonde status`: the recorders, since when, at what cost; the state of the store. */
void daemon_print(const json_t *status);

#endif
