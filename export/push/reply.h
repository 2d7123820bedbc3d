/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply: what a receiver says to a POST, as far as it is read, and what that means. Pure over bytes
 * that a stranger wrote.
 *
 * Of the heads two are read (Retry-After in seconds, Content-Type), of the body its begin. A
 * receiver that says more than REPLY_HEADS_MOST or REPLY_BODY_MOST is not listened to any longer.
 * Nothing of its words is repeated: it may say back what it was sent, a secret too.
 */
#ifndef SONDE_PUSH_REPLY_H
#define SONDE_PUSH_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/push/target.h"
#include "schema/base/err.h"

#define REPLY_TEXT_MOST    4096
#define REPLY_HEADS_MOST   65536
#define REPLY_BODY_MOST    65536
#define REPLY_RETRY_MOST_S 3600

struct reply {
	char text[REPLY_TEXT_MOST + 1]; /* the body's begin */
	size_t len, all, heads;         /* bytes of `text`, of the body, of the heads */
	uint32_t retry_s;               /* what Retry-After asks for, at most an hour, else 0 */
	bool protobuf;                  /* by its Content-Type */
	bool endless;                   /* it said more than is listened to */
};

/* A line of its heads; a part of its body. false: enough, hang up. */
bool reply_head(struct reply *r, const char *line, size_t len);
bool reply_body(struct reply *r, const char *data, size_t len);
/*
 * 0: it took all but *rejected items (of OTLP's partial_success, else 0). -EBADMSG: it will never
 * take it. -EAGAIN: to be tried again. The error names the target, its url and the status.
 */
int reply_judge(const struct reply *r, const struct target *t, long status, uint64_t *rejected,
		struct err *e);

#endif
