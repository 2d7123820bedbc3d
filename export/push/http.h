/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: one POST. libcurl is loaded when it is first needed, so that the program starts, and says
 * what is missing, without it.
 *
 * Redirects are not followed, only http and https are spoken, and a secret is in a head of the
 * request alone: no error has it. A request takes at most the target's timeout, whatever the
 * receiver does, and little of what it says is kept (reply.h).
 */
#ifndef SONDE_PUSH_HTTP_H
#define SONDE_PUSH_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "export/push/target.h"
#include "schema/base/err.h"

struct http;

struct http_answer {
	uint32_t retry_s;  /* Retry-After, at most an hour; else 0 */
	uint64_t rejected; /* items of an accepted request that the receiver rejected */
};

/* EXIT_PREREQUISITE: libcurl is not there. */
int http_new(struct http **out, struct err *e);
void http_free(struct http *h); /* NULL is fine */
/* POSTs `body` to the target's url + `path`. 0: the receiver accepted it, which is status 200 with
 * an empty body from ClickHouse (INSERT) and Pyroscope (push); any other answer (a gateway's page,
 * an exception after the head) is a refusal. An OTLP receiver answers with a message that may count
 * rejected items (partial_success). -EBADMSG: it will never accept this, as Pyroscope says of
 * profiles that are too old or too large and OTLP of bad data. -EAGAIN: try again. -ECANCELED: this
 * program is about to end. */
int http_post(struct http *h, const struct target *t, const char *path, const void *body,
	      size_t len, struct http_answer *a, struct err *e);

#endif
