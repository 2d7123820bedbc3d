/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_answer: a POST to /mcp, from the first byte of its body to its reply: a child `sonde mcp`
 * gets the message as its standard input, and what it prints is the reply (serve/mcp_post.h says
 * with which status). A client that hangs up ends the child, and so its call; so does one that
 * posts notifications/cancelled with the call's id, and then the call's reply is an empty 202.
 */
#ifndef SONDE_SERVE_MCP_ANSWER_H
#define SONDE_SERVE_MCP_ANSWER_H

#include <microhttpd.h>
#include <stddef.h>

#include "serve/mcp_post.h"

struct server;
struct mcp_answer;

struct mcp_answer *mcp_answer_new(void);
void mcp_answer_free(struct mcp_answer *a);
/* A piece of the body; of one above MCP_POST_BYTES nothing is kept. */
void mcp_answer_add(struct mcp_answer *a, const char *piece, size_t len);
/* After the last piece: replies. session: the head Mcp-Session-Id, or NULL. */
enum MHD_Result mcp_answer_ask(struct server *s, struct mcp_answer *a, const struct mcp_head *head,
			       const char *session, struct MHD_Connection *c, int socket);
/* 413 */
enum MHD_Result mcp_answer_too_long(struct MHD_Connection *c);

#endif
