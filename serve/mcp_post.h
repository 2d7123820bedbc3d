/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_post: what a POST to /mcp asks, by the rules of the Model Context Protocol over HTTP
 * (modelcontextprotocol.io, "Streamable HTTP" of the revisions 2025-03-26 to 2025-11-25, and of
 * 2026-07-28). Pure: from the head and the body of a request, both a stranger's.
 *
 *   1. The body is one JSON-RPC message (Content-Type: application/json): else 415 or 400.
 *   2. A notification, or an answer, is accepted and needs nothing: 202. notifications/cancelled
 *      names a call that runs (serve/mcp_calls.h).
 *   3. A request of 2026-07-28 names its revision in params._meta, and has MCP-Protocol-Version,
 *      Mcp-Method and, where it asks for something by name, Mcp-Name. They say what the body says:
 *      else 400 with error -32020.
 *   4. A request of an older revision may have MCP-Protocol-Version. One that is not known is 400
 *      with error -32022. Mcp-Method and Mcp-Name, if present, must be those of the body.
 *
 * A session only tells clients' calls apart, and needs no end; the server sends nothing unasked:
 * GET and DELETE are 405. Names of this server are plain ASCII, so a header in the form
 * =?base64?...?= never names one of them.
 */
#ifndef SONDE_SERVE_MCP_POST_H
#define SONDE_SERVE_MCP_POST_H

#include <stdbool.h>
#include <stddef.h>

#define MCP_POST_BYTES (1u << 20) /* of a body */
/* A body up to this long is read to its end before it is refused: many clients look for the answer
 * only after they have sent all. */
#define MCP_READ_BYTES (4u << 20)

/* Fields of the head; NULL: absent. */
struct mcp_head {
	const char *type;    /* Content-Type */
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
};

struct mcp_post {
	unsigned status; /* to answer at once; 0: `sonde mcp` answers */
	char *error;     /* the body of that answer; NULL: it is empty */
	bool modern;     /* by the rules of 2026-07-28 */
	bool begins;     /* `initialize`: the reply names a session */
	char *id;        /* of a request, as JSON; else NULL */
	char *cancels;   /* the id of the request that the client gives up, as JSON; else NULL */
};

/* Line feeds in `body`, which are between values there, become blanks: `sonde mcp` reads lines. */
void mcp_post_read(char *body, size_t len, const struct mcp_head *head, struct mcp_post *out);
void mcp_post_release(struct mcp_post *p);
/* The status of what `sonde mcp` said. Empty: 202. */
unsigned mcp_post_status(const struct mcp_post *p, const char *answer, size_t len);

#endif
