/* SPDX-License-Identifier: Apache-2.0 */
/* names: the operations' texts, each once, at most PROTO_OPERATIONS of them; and the places of
 * routes and keys (route.h). */
#ifndef SONDE_PROTOCOLS_NAMES_H
#define SONDE_PROTOCOLS_NAMES_H

#include "loaders/lib/protocols/conn.h"

struct routes;
struct idtable;

/* The text of a number that proto_name gave; lives as long as `s`. */
const char *protocols_name(const struct protocols *s, uint32_t id);
void protocols_emit(const struct protocols *s, const struct proto_request *r);
void protocols_named(const struct protocols *s, const struct proto_named *x);
/* What one connection learns for others: topics by their ids, statements by theirs. */
struct idtable *protocols_shared(struct protocols *s);
/* Another one, without texts, for connections that are read as a trial: it reports nothing. */
struct protocols *protocols_trial(struct protocols *s);

#endif
