/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer: one request, from its head to its reply. GET and HEAD only.
 *
 *   /, /app.js, /app.css     the page
 *   /api/v1/VERB?...         `sonde VERB --json`, byte for byte (question.h); where that failed,
 * {"error", "fix", "exit"} with its exit code and a status: 400 the question, 403 no right, 404
 * nothing there, 503 the store or too many at a time, 504 over time, 500 all else /api/v1/ which
 * verbs there are: {"verbs": [...]} /api/v1/live             server-sent events: `changed`,
 * whenever something was written into the store (watch.h) /report.html?...         the range as the
 * page of `sonde report`, to be saved /metrics                 `sonde-export metrics`, in
 * OpenMetrics' format for who accepts it
 */
#ifndef SONDE_SERVE_HTTP_ANSWER_H
#define SONDE_SERVE_HTTP_ANSWER_H

#include <microhttpd.h>

#include "serve/asked.h"
#include "serve/child.h"
#include "serve/connections.h"
#include "serve/gate.h"
#include "serve/guard.h"
#include "serve/question.h"
#include "serve/store_watch.h"

struct server {
	const char *sonde;    /* the program that is asked */
	const char *exporter; /* sonde-export; NULL: it is not there */
	const char *store;    /* NULL: none is named */
	struct guard guard;
	bool check_host;
	struct child_limits limits;
	struct questions *questions;
	struct gate gate;
	struct asked asked;
	struct store_watch watch;
	struct connections connections;
	int stop_fd; /* eventfd: readable when the server ends */
};

/* MHD_AccessHandlerCallback, cls: struct server. */
enum MHD_Result http_answer(void *cls, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_size, void **request);
/* MHD_NotifyConnectionCallback and MHD_RequestCompletedCallback: who owes a head. */
void http_answer_connection(void *cls, struct MHD_Connection *c, void **own,
			    enum MHD_ConnectionNotificationCode what);
void http_answer_done(void *cls, struct MHD_Connection *c, void **request,
		      enum MHD_RequestTerminationCode how);

#endif
