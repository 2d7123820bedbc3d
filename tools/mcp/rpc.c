/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/mcp/rpc.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_SERVER  "io.modelcontextprotocol/serverInfo"
#define KEEP_MS      3600000 /* the tools of one version of sonde do not change */

/* Revisions that begin with `initialize`. */
static const char *const LEGACY[] = {RPC_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"};

json_t *rpc_error(const json_t *id, enum rpc_code code, const char *message, json_t *data)
{
	json_t *error = json_pack("{s:i, s:s}", "code", (int)code, "message", message);

	if (data)
		json_object_set_new(error, "data", data);
	return json_pack("{s:s, s:O?, s:o}", "jsonrpc", "2.0", "id",
			 id ? (json_t *)(uintptr_t)id : NULL, "error", error);
}

static int refuse(struct rpc_message *m, json_t **error, enum rpc_code code, const char *message)
{
	*error = rpc_error(m->id, code, message, NULL);
	if (!m->id)
		json_object_set_new(*error, "id", json_null());
	return -EINVAL;
}

/* The revision that the request names; -EINVAL: one that is not known here. */
static int era_of(struct rpc_message *m, json_t **error)
{
	const json_t *meta = json_object_get(m->params, "_meta"),
		     *version = json_object_get(meta, META_VERSION);

	m->modern = version || !strcmp(m->method, "server/discover");
	if (!version ||
	    (json_is_string(version) && !strcmp(json_string_value(version), RPC_MODERN)))
		return 0;
	if (m->id)
		*error = rpc_error(m->id, RPC_VERSION, "this version of the protocol is not known",
				   json_pack("{s:[s,s], s:O}", "supported", RPC_MODERN, RPC_LEGACY,
					     "requested", (json_t *)(uintptr_t)version));
	return -EINVAL;
}

int rpc_read(const char *line, size_t len, struct rpc_message *m, json_t **error)
{
	const json_t *id, *method;

	*m = (struct rpc_message){0};
	*error = NULL;
	/* a text with NUL is JSON: the refusal needs the message's id, or its client waits */
	m->root = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	if (!m->root)
		return refuse(m, error, RPC_PARSE, "a line is one JSON object; this one is not");
	id = json_object_get(m->root, "id");
	method = json_object_get(m->root, "method");
	if (json_is_string(id) || json_is_integer(id))
		m->id = id;
	if (!json_is_object(m->root) || (id && !m->id))
		return refuse(m, error, RPC_INVALID,
			      "a message is an object, its id a text or a whole number");
	if (!method && (json_object_get(m->root, "result") || json_object_get(m->root, "error")))
		return -EINVAL; /* an answer: this server asks nothing */
	if (!json_is_string(method) ||
	    strlen(json_string_value(method)) != json_string_length(method))
		return refuse(m, error, RPC_INVALID, "the message has no method");
	m->method = json_string_value(method);
	m->params = json_object_get(m->root, "params");
	if (m->params && !json_is_object(m->params))
		return refuse(m, error, RPC_PARAMS, "params is an object");
	return era_of(m, error);
}

void rpc_release(struct rpc_message *m)
{
	json_decref(m->root);
	*m = (struct rpc_message){0};
}

json_t *rpc_result(const struct rpc_message *m, json_t *result, bool list)
{
	if (m->modern) {
		json_object_set_new(result, "resultType", json_string("complete"));
		if (list) {
			json_object_set_new(result, "ttlMs", json_integer(KEEP_MS));
			json_object_set_new(result, "cacheScope", json_string("private"));
		}
	}
	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", (json_t *)(uintptr_t)m->id,
			 "result", result);
}

static json_t *server_info(const char *version)
{
	return json_pack("{s:s, s:s, s:s}", "name", "sonde", "title", "sonde", "version", version);
}

static json_t *capabilities(void)
{
	return json_pack("{s:{}, s:{}, s:{}}", "tools", "resources", "prompts");
}

json_t *rpc_initialized(const struct rpc_message *m, const char *version, const char *instructions)
{
	const char *asked = json_string_value(json_object_get(m->params, "protocolVersion")),
		   *agreed = RPC_LEGACY;

	for (size_t i = 0; asked && i < sizeof(LEGACY) / sizeof(LEGACY[0]); i++)
		if (!strcmp(asked, LEGACY[i]))
			agreed = LEGACY[i];
	return rpc_result(m,
			  json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", agreed,
				    "capabilities", capabilities(), "serverInfo",
				    server_info(version), "instructions", instructions),
			  false);
}

json_t *rpc_discovered(const struct rpc_message *m, const char *version, const char *instructions)
{
	return rpc_result(m,
			  json_pack("{s:[s,s], s:o, s:s, s:{s:o}}", "supportedVersions", RPC_MODERN,
				    RPC_LEGACY, "capabilities", capabilities(), "instructions",
				    instructions, "_meta", META_SERVER, server_info(version)),
			  true);
}
