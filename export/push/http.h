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
	uint32_t retry_s;  /* what Retry-After asks for, at most an hour, else 0 */
	uint64_t rejected; /* of what was taken all but so many items */
};

/* EXIT_PREREQUISITE: libcurl is not there. */
int http_new(struct http **out, struct err *e);
void http_free(struct http *h); /* NULL is fine */
/*
 * POST `body` to the target's url + `path`, as targets of its type have it. 0: the receiver took
 * it: status 200 with an empty body, which is what ClickHouse answers to an INSERT, and Pyroscope
 * to a push; whatever else it says (a page of a gateway, an exception told after the head) is a
 * refusal. Of OTLP it is an answer of its protocol, which may tell of rejected items
 * (partial_success). -EBADMSG: it will never take it, as Pyroscope says of profiles that are too
 * old or too large, and OTLP of bad data. -EAGAIN: to be tried again. -ECANCELED: this program is
 * to end.
 */
int http_post(struct http *h, const struct target *t, const char *path, const void *body,
	      size_t len, struct http_answer *a, struct err *e);

#endif
