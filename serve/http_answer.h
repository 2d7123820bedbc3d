/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_answer: one request, from its head to its reply. GET and HEAD only, but for /mcp.
 *
 *   /, /app.js, /app.css   the page
 *   /api/v1/VERB?...       `sonde VERB --json`, byte for byte (question.h); if that failed,
 *                          {"error", "fix", "exit"} with its exit code and a status: 400 wrong
 *                          request, 403 no permission, 404 nothing found, 503 store error or too
 *                          many requests, 504 timeout, 500 anything else
 *   /api/v1/               the available verbs: {"verbs": [...]}
 *   /api/v1/live           server-sent events: `changed` whenever something was written to the
 *                          store (store_watch.h)
 *   /report.html?...       the range as the page of `sonde report`, to save
 *   /mcp                   POST: a message of the Model Context Protocol, which a child `sonde mcp`
 *                          answers (serve/mcp_post.h)
 *   /metrics               `sonde-export metrics`, in OpenMetrics format if the client accepts it
 */
#ifndef SONDE_SERVE_HTTP_ANSWER_H
#define SONDE_SERVE_HTTP_ANSWER_H

#include <microhttpd.h>

#include "serve/asked.h"
#include "schema/base/limits/child.h"
#include "serve/connections.h"
#include "serve/gate.h"
#include "serve/guard.h"
#include "serve/mcp_calls.h"
#include "serve/question.h"
#include "serve/store_watch.h"

struct server {
	const char *sonde;    /* the sonde program */
	const char *exporter; /* sonde-export; NULL: not installed */
	const char *store;    /* NULL: default */
	struct guard guard;
	bool check_host;
	struct child_limits limits;
	struct questions *questions;
	struct gate gate;
	struct asked asked;
	struct mcp_calls calls;
	struct store_watch watch;
	struct connections connections;
	int stop_fd; /* eventfd: readable when the server ends */
};

/* MHD_AccessHandlerCallback, cls: struct server. */
enum MHD_Result http_answer(void *cls, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_size, void **request);
/* MHD_NotifyConnectionCallback and MHD_RequestCompletedCallback: track which connections owe a
 * head. */
void http_answer_connection(void *cls, struct MHD_Connection *c, void **own,
			    enum MHD_ConnectionNotificationCode what);
void http_answer_done(void *cls, struct MHD_Connection *c, void **request,
		      enum MHD_RequestTerminationCode how);

#endif
