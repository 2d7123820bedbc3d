/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_post: what a POST to /mcp asks, by head and body. */
#include <stdlib.h>
#include <string.h>

#include "serve/mcp_post.h"
#include "tests/unit/test.h"

#define META(version) "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version "\"}"
#define MODERN        "2026-07-28"
#define REQUEST       "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":"

/* The status, and whether the answer has this text (NULL: it is empty). */
static void assert_post(const char *text, const struct mcp_head *head, unsigned status,
			const char *has)
{
	char *body = strdup(text);
	struct mcp_post p;

	mcp_post_read(body, strlen(body), head, &p);
	assert_int_equal(p.status, status);
	if (has) {
		assert_non_null(p.error);
		assert_non_null(strstr(p.error, has));
	} else {
		assert_null(p.error);
	}
	assert_null(strchr(body, '\n'));
	mcp_post_release(&p);
	free(body);
}

TEST(a_request_of_an_older_revision_is_asked)
{
	const struct mcp_head plain = {.type = "application/json"},
			      named = {.type = "Application/JSON; charset=utf-8",
				       .version = "2025-06-18"},
			      strange = {.type = "application/json", .version = "2031-01-01"};

	assert_post(REQUEST "\"initialize\",\"params\":{}}", &plain, 0, NULL);
	assert_post("{\n\"jsonrpc\":\"2.0\",\r\n\"id\":\"x\",\"method\":\"tools/list\"}\n", &named,
		    0, NULL);
	assert_post(REQUEST "\"initialize\"}", &strange, 0, NULL);
	assert_post(REQUEST "\"tools/list\"}", &strange, 400, "-32022");
}

TEST(notifications_and_answers_need_nothing)
{
	const struct mcp_head head = {.type = "application/json"};

	assert_post("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", &head, 202,
		    NULL);
	assert_post("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", &head, 202, NULL);
	assert_post("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", &head, 202, NULL);
}

/* What it says of calls: its own id, and the id of the one that it gives up. */
static void assert_ids(const char *text, const char *id, const char *cancels)
{
	const struct mcp_head head = {.type = "application/json"};
	char *body = strdup(text);
	struct mcp_post p;

	mcp_post_read(body, strlen(body), &head, &p);
	if (id)
		assert_string_equal(p.id, id);
	else
		assert_null(p.id);
	if (cancels)
		assert_string_equal(p.cancels, cancels);
	else
		assert_null(p.cancels);
	mcp_post_release(&p);
	free(body);
}

TEST(ids_of_calls_are_told_apart_by_their_type)
{
	assert_ids(REQUEST "\"ping\"}", "7", NULL);
	assert_ids("{\"id\":\"7\",\"method\":\"ping\"}", "\"7\"", NULL);
	assert_ids("{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":0}}", NULL,
		   "0");
	assert_ids("{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}",
		   NULL, "\"a\"");
	assert_ids("{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":[]}}", NULL,
		   NULL);
	assert_ids("{\"method\":\"notifications/cancelled\"}", NULL, NULL);
	assert_ids("{\"method\":\"notifications/initialized\",\"params\":{\"requestId\":1}}", NULL,
		   NULL);
	/* a request is no notification, whatever its name */
	assert_ids(REQUEST "\"notifications/cancelled\",\"params\":{\"requestId\":1}}", "7", NULL);
}

TEST(what_is_no_message_is_refused)
{
	const struct mcp_head head = {.type = "application/json"}, text = {.type = "text/plain"},
			      none = {0};

	assert_post("{}", &text, 415, "-32600");
	assert_post("{}", &none, 415, "-32600");
	assert_post("{}", &(struct mcp_head){.type = "application/jsonp"}, 415, "-32600");
	assert_post("garbage", &head, 400, "-32700");
	assert_post("", &head, 400, "-32700");
	assert_post("[]", &head, 400, "-32600");
	assert_post("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", &head, 400, "-32600");
	assert_post("{\"id\":1.5,\"method\":\"ping\"}", &head, 400, "-32600");
	assert_post("{\"id\":1}", &head, 400, "\"id\":1");
}

TEST(heads_of_the_new_revision_say_what_the_body_says)
{
	static const char call[] =
		REQUEST "\"tools/call\",\"params\":{\"name\":\"sql\"," META(MODERN) "}}",
			  list[] = REQUEST "\"tools/list\",\"params\":{" META(MODERN) "}}",
			  read[] = REQUEST
			  "\"resources/read\",\"params\":{\"uri\":\"sonde://schema\"," META(
				  MODERN) "}}";
	const struct mcp_head right = {"application/json", MODERN, "tools/call", "sql"},
			      no_version = {"application/json", NULL, "tools/call", "sql"},
			      old_version = {"application/json", "2025-11-25", "tools/call", "sql"},
			      no_method = {"application/json", MODERN, NULL, "sql"},
			      other_method = {"application/json", MODERN, "tools/list", "sql"},
			      no_name = {"application/json", MODERN, "tools/call", NULL},
			      other_name = {"application/json", MODERN, "tools/call", "overview"},
			      listing = {"application/json", MODERN, "tools/list", NULL},
			      reading = {"application/json", MODERN, "resources/read",
					 "sonde://schema"};

	assert_post(call, &right, 0, NULL);
	assert_post(list, &listing, 0, NULL);
	assert_post(read, &reading, 0, NULL);
	assert_post(call, &no_version, 400, "-32020");
	assert_post(call, &old_version, 400, "-32020");
	assert_post(call, &no_method, 400, "-32020");
	assert_post(call, &other_method, 400, "-32020");
	assert_post(call, &no_name, 400, "-32020");
	assert_post(call, &other_name, 400, "-32020");
	/* the head alone names the new revision */
	assert_post(REQUEST "\"tools/list\"}", &listing, 0, NULL);
}

TEST(the_status_follows_the_answer_in_the_new_revision_only)
{
	static const char unknown[] = "{\"id\":1,\"error\":{\"code\":-32601}}",
			  version[] = "{\"id\":1,\"error\":{\"code\":-32022}}",
			  good[] = "{\"id\":1}";
	const struct mcp_post modern = {.modern = true}, legacy = {0};

	assert_int_equal(mcp_post_status(&modern, unknown, strlen(unknown)), 404);
	assert_int_equal(mcp_post_status(&legacy, unknown, strlen(unknown)), 200);
	assert_int_equal(mcp_post_status(&modern, version, strlen(version)), 400);
	assert_int_equal(mcp_post_status(&modern, good, strlen(good)), 200);
	assert_int_equal(mcp_post_status(&modern, "", 0), 202);
}
