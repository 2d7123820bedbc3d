/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc: the messages of the Model Context Protocol: JSON-RPC 2.0, one message a line.
 * Source: modelcontextprotocol.io, revisions 2025-11-25 (and those before it, which begin with
 * `initialize`) and 2026-07-28 (each request carries the revision in its _meta; there is no
 * handshake).
 *
 * A request with that _meta, and server/discover, is answered as 2026-07-28 says, all others as
 * 2025-11-25 does. Pure.
 */
#ifndef SONDE_TOOLS_RPC_H
#define SONDE_TOOLS_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define RPC_MODERN "2026-07-28"
#define RPC_LEGACY "2025-11-25"
#define RPC_LINE   (1u << 20) /* bytes of one message */

enum rpc_code {
	RPC_PARSE = -32700,
	RPC_INVALID = -32600,
	RPC_NO_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_BUSY = -32000,
	RPC_VERSION = -32022
};

struct rpc_message {
	json_t *root;         /* owned; rpc_release */
	const json_t *id;     /* a text or a whole number; NULL: a notification, to which there is
				 no answer */
	const char *method;   /* borrowed */
	const json_t *params; /* an object, or NULL */
	bool modern;
};

/* Reads one line. 0; or -EINVAL: *error is the reply to send (the caller's), NULL if nothing
 * to send. Release in any case. */
int rpc_read(const char *line, size_t len, struct rpc_message *m, json_t **error);
void rpc_release(struct rpc_message *m);

/* Replies; the caller owns them. `result` and `data` are taken. `list`: a list or a resource, which
 * the client may keep for a while. */
json_t *rpc_result(const struct rpc_message *m, json_t *result, bool list);
json_t *rpc_error(const json_t *id, enum rpc_code code, const char *message, json_t *data);
/* The reply to `initialize`: the client's revision if it is one of those known, else RPC_LEGACY. */
json_t *rpc_initialized(const struct rpc_message *m, const char *version, const char *instructions);
/* The reply to server/discover. */
json_t *rpc_discovered(const struct rpc_message *m, const char *version, const char *instructions);

#endif
