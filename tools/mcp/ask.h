/* SPDX-License-Identifier: Apache-2.0 */
/* ask: runs a verb as a child with limits, and sorts out how it ended. */
#ifndef SONDE_TOOLS_ASK_H
#define SONDE_TOOLS_ASK_H

#include <jansson.h>
#include <stddef.h>

#include "tools/mcp/mcp.h"

enum asked_how {
	ASKED_ANSWER,   /* text has it */
	ASKED_NOTHING,  /* nothing matched: no error */
	ASKED_FAILED,   /* why says it */
	ASKED_CANCELLED /* cancel_fd became readable */
};

struct asked {
	enum asked_how how;
	char *text; /* its standard output, ended by NUL; never NULL */
	size_t len;
	char *why, *fix; /* what it said on stderr, and the commands that help; "" if nothing */
};

/* Release in any case. */
void ask(const char *const *argv, const struct mcp_options *o, int cancel_fd, struct asked *out);
void asked_release(struct asked *a);
/* {key: why, "fix": fix}; the caller owns it. */
json_t *asked_reason(const struct asked *a, const char *key);

#endif
