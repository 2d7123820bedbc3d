/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply: the replies to a browser. Every reply has the same strict headers: no script, style or
 * request except from this server, no frames, no guessing of types, no referrer; caches never store
 * data.
 */
#ifndef SONDE_SERVE_REPLY_H
#define SONDE_SERVE_REPLY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "serve/asset.h"

/* {"error": ..., "fix": ... or null, "exit": ...}; retry_s: Retry-After, 0 for none. */
enum MHD_Result reply_error(struct MHD_Connection *c, unsigned status, const struct err *e,
			    unsigned retry_s);
/* 405: only POST is allowed there; else only GET and HEAD. */
enum MHD_Result reply_method(struct MHD_Connection *c, bool post);
/* Unchanged: 304. */
enum MHD_Result reply_asset(struct MHD_Connection *c, const struct asset *a);
/* The content of a file (taken), gzipped if the browser accepts that. download: a file name to save
 * it as, or NULL. */
enum MHD_Result reply_file(struct MHD_Connection *c, const char *type, int fd, uint64_t bytes,
			   const char *download);
/* 303 to the page, with the cookie that holds the token. */
enum MHD_Result reply_cookie(struct MHD_Connection *c, const char *token);
/* 401: a page that asks for the token. wrong: a wrong one was given. */
enum MHD_Result reply_login(struct MHD_Connection *c, int wrong);

/* JSON; `text` is taken, NULL means out of memory. */
enum MHD_Result reply_text(struct MHD_Connection *c, char *text);
/* The same with a status; NULL: without a body. session: Mcp-Session-Id, or NULL. */
enum MHD_Result reply_message(struct MHD_Connection *c, unsigned status, char *text,
			      const char *session);
/* The data from `read`, piece by piece, until its end; `done` is called in any case, with `cls`. */
enum MHD_Result reply_stream(struct MHD_Connection *c, const char *type,
			     MHD_ContentReaderCallback read, MHD_ContentReaderFreeCallback done,
			     void *cls);

#endif
