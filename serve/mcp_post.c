/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/mcp_post.h"

#include <jansson.h>
#include <microhttpd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schema/base/array.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MODERN       "2026-07-28"

enum code {
	NOT_JSON = -32700,
	NOT_A_MESSAGE = -32600,
	NO_METHOD = -32601,
	HEADER_MISMATCH = -32020,
	UNKNOWN_VERSION = -32022,
	WRONG_PARAMS = -32602
};

/* Revisions that have HTTP in this form and no _meta. */
static const char *const LEGACY[] = {"2025-11-25", "2025-06-18", "2025-03-26"};

static void refuse(struct mcp_post *out, unsigned status, const json_t *id, enum code code,
		   const char *message)
{
	json_t *error = json_pack("{s:s, s:o, s:{s:i, s:s}}", "jsonrpc", "2.0", "id",
				  id ? json_incref((json_t *)(uintptr_t)id) : json_null(), "error",
				  "code", (int)code, "message", message);

	if (code == UNKNOWN_VERSION)
		json_object_set_new(json_object_get(error, "error"), "data",
				    json_pack("{s:[s,s]}", "supported", MODERN, LEGACY[0]));
	out->status = status;
	out->error = json_dumps(error, JSON_COMPACT);
	json_decref(error);
}

/* application/json, with parameters or without. */
static bool is_json(const char *type)
{
	static const char json[] = "application/json";

	return type && !strncasecmp(type, json, sizeof(json) - 1) &&
	       strchr(" \t;", type[sizeof(json) - 1]);
}

static bool is_legacy(const char *version)
{
	for (size_t i = 0; i < ARRAY_SIZE(LEGACY); i++)
		if (!strcmp(version, LEGACY[i]))
			return true;
	return false;
}

/* What Mcp-Name repeats; NULL: nothing. */
static const char *name_of(const char *method, const json_t *params)
{
	const char *key = !strcmp(method, "tools/call") || !strcmp(method, "prompts/get") ? "name" :
			  !strcmp(method, "resources/read")                               ? "uri" :
											    NULL;

	return key ? json_string_value(json_object_get(params, key)) : NULL;
}

/* NULL: the head says what the body says. */
static const char *mismatch(const struct mcp_head *h, bool modern, const char *version,
			    const char *method, const char *name)
{
	if (modern && !h->version)
		return "the header MCP-Protocol-Version is missing";
	if (modern && strcmp(h->version, version ? version : MODERN) != 0)
		return "the header MCP-Protocol-Version is not the version in params._meta";
	if (modern && !h->method)
		return "the header Mcp-Method is missing";
	if (h->method && strcmp(h->method, method) != 0)
		return "the header Mcp-Method is not the method of the body";
	if (modern && name && !h->name)
		return "the header Mcp-Name is missing";
	if (h->name && name && strcmp(h->name, name) != 0)
		return "the header Mcp-Name is not the name in the body";
	return NULL;
}

static void read_request(const json_t *root, const json_t *id, const char *method,
			 const struct mcp_head *h, struct mcp_post *out)
{
	const json_t *params = json_object_get(root, "params");
	const char *version = json_string_value(
			   json_object_get(json_object_get(params, "_meta"), META_VERSION)),
		   *wrong;

	out->begins = !strcmp(method, "initialize");
	out->modern = version || !strcmp(method, "server/discover") ||
		      (h->version && !strcmp(h->version, MODERN));
	wrong = mismatch(h, out->modern, version, method, name_of(method, params));
	if (wrong)
		refuse(out, MHD_HTTP_BAD_REQUEST, id, HEADER_MISMATCH, wrong);
	else if (!out->modern && h->version && !out->begins && !is_legacy(h->version))
		refuse(out, MHD_HTTP_BAD_REQUEST, id, UNKNOWN_VERSION,
		       "this MCP-Protocol-Version is not known here");
}

static bool is_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

static char *id_text(const json_t *id)
{
	return is_id(id) ? json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

static void read_notification(const json_t *root, struct mcp_post *out)
{
	const char *method = json_string_value(json_object_get(root, "method"));

	out->status = MHD_HTTP_ACCEPTED;
	if (method && !strcmp(method, "notifications/cancelled"))
		out->cancels =
			id_text(json_object_get(json_object_get(root, "params"), "requestId"));
}

static void read_message(const json_t *root, const struct mcp_head *h, struct mcp_post *out)
{
	const json_t *id = json_object_get(root, "id"), *method = json_object_get(root, "method");

	out->id = id_text(id);
	if (!json_is_object(root) || (id && !is_id(id)))
		refuse(out, MHD_HTTP_BAD_REQUEST, NULL, NOT_A_MESSAGE,
		       "the body is one message, its id a text or a whole number");
	else if (json_is_string(method) && id)
		read_request(root, id, json_string_value(method), h, out);
	else if (json_is_string(method) || json_object_get(root, "result") ||
		 json_object_get(root, "error"))
		read_notification(root, out);
	else
		refuse(out, MHD_HTTP_BAD_REQUEST, id, NOT_A_MESSAGE, "the message has no method");
}

void mcp_post_read(char *body, size_t len, const struct mcp_head *head, struct mcp_post *out)
{
	json_t *root;

	*out = (struct mcp_post){0};
	if (!is_json(head->type)) {
		refuse(out, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, NULL, NOT_A_MESSAGE,
		       "the body is JSON: Content-Type: application/json");
		return;
	}
	root = json_loadb(body, len, JSON_ALLOW_NUL, NULL);
	if (root)
		read_message(root, head, out);
	else
		refuse(out, MHD_HTTP_BAD_REQUEST, NULL, NOT_JSON, "the body is not JSON");
	json_decref(root);
	for (size_t i = 0; i < len; i++)
		if (body[i] == '\n' || body[i] == '\r')
			body[i] = ' ';
}

void mcp_post_release(struct mcp_post *p)
{
	free(p->error);
	free(p->id);
	free(p->cancels);
	*p = (struct mcp_post){0};
}

unsigned mcp_post_status(const struct mcp_post *p, const char *answer, size_t len)
{
	json_t *root;
	json_int_t code;

	if (!len)
		return MHD_HTTP_ACCEPTED;
	if (!p->modern)
		return MHD_HTTP_OK;
	root = json_loadb(answer, len, 0, NULL);
	code = json_integer_value(json_object_get(json_object_get(root, "error"), "code"));
	json_decref(root);
	return code == NO_METHOD                               ? MHD_HTTP_NOT_FOUND :
	       code == UNKNOWN_VERSION || code == WRONG_PARAMS ? MHD_HTTP_BAD_REQUEST :
								 MHD_HTTP_OK;
}
