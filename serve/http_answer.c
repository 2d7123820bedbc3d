/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http_answer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "serve/child_reply.h"
#include "serve/mcp_answer.h"
#include "serve/reply.h"

#define API           "/api/v1/"
#define REPORT        "/report.html"
#define LIVE          API "live"
#define METRICS       "/metrics"
#define MCP           "/mcp"
#define WRONG_TOKEN_S 1
#define LIVE_QUIET_S  5 /* a client that has gone is noticed within this time */

/* --- connections --- */

static struct connection *connection_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static int socket_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	return i ? i->connect_fd : -1;
}

void http_answer_connection(void *cls, struct MHD_Connection *c, void **own,
			    enum MHD_ConnectionNotificationCode what)
{
	struct server *s = cls;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*own = connections_add(&s->connections, socket_of(c));
	else if (*own)
		connections_remove(&s->connections, take_ptr(*own));
}

void http_answer_done(void *cls, struct MHD_Connection *c, void **request,
		      enum MHD_RequestTerminationCode how)
{
	struct server *s = cls;

	(void)how;
	if (*request && *request != s)
		mcp_answer_free(take_ptr(*request));
	if (connection_of(c))
		connections_mark(&s->connections, connection_of(c), true);
}

/* --- heads --- */

static const char *head_of(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_host(void *cls, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	(void)kind;
	(void)value;
	*(unsigned *)cls += !strcasecmp(name, "Host");
	return MHD_YES;
}

static enum guard_answer ask_guard(const struct server *s, struct MHD_Connection *c, bool page)
{
	const struct guard_head head = {
		.host = head_of(c, "Host"),
		.origin = head_of(c, "Origin"),
		.site = head_of(c, "Sec-Fetch-Site"),
		.mode = head_of(c, "Sec-Fetch-Mode"),
		.cookie = head_of(c, "Cookie"),
		.authorization = head_of(c, "Authorization"),
	};
	unsigned hosts = 0;

	MHD_get_connection_values(c, MHD_HEADER_KIND, count_host, &hosts);
	return hosts > 1 ? GUARD_HOST : guard_ask(&s->guard, &head, page, s->check_host);
}

static enum MHD_Result refuse(struct MHD_Connection *c, enum guard_answer why)
{
	const char *host = head_of(c, "Host");
	struct err e = {0};

	if (why == GUARD_ORIGIN) {
		err_set(&e, -EPERM, EXIT_PERMISSION, "a page of another site sent this request");
		return reply_error(c, MHD_HTTP_FORBIDDEN, &e, 0);
	}
	if (why == GUARD_TOKEN) {
		err_set(&e, -EACCES, EXIT_PERMISSION, "this server needs a token");
		err_fix(&e,
			"send Authorization: Bearer TOKEN, or open the page once and enter the token");
		return reply_error(c, MHD_HTTP_UNAUTHORIZED, &e, 0);
	}
	err_set(&e, -EPERM, EXIT_PERMISSION, "host name '%.100s' is not allowed", host ? host : "");
	err_fix(&e, "use a numeric address, or start the server with: sonde serve --host NAME");
	return reply_error(
		c, why == GUARD_HOST ? MHD_HTTP_MISDIRECTED_REQUEST : MHD_HTTP_BAD_REQUEST, &e, 0);
}

static bool has_body(struct MHD_Connection *c)
{
	const char *length = head_of(c, "Content-Length");

	return head_of(c, "Transfer-Encoding") || (length && strcmp(length, "0"));
}

static enum MHD_Result refuse_body(struct MHD_Connection *c)
{
	struct err e = {0};

	err_set(&e, -EINVAL, EXIT_USAGE,
		"request bodies are not supported; put everything in the URL");
	return reply_error(c, MHD_HTTP_BAD_REQUEST, &e, 0);
}

/* --- questions --- */

struct values {
	struct question_value items[QUESTION_VALUES + 1];
	size_t n;
};

static enum MHD_Result take_value(void *cls, enum MHD_ValueKind kind, const char *name,
				  size_t name_len, const char *value, size_t value_len)
{
	struct values *v = cls;

	(void)kind;
	v->items[v->n++] = (struct question_value){name, value, name_len, value_len};
	return v->n <= QUESTION_VALUES;
}

/* -EBUSY: there was no room. */
static int ask_child(struct server *s, struct MHD_Connection *c, const char *const *argv,
		     struct child_answer *a, struct err *e)
{
	int rc;

	if (!gate_enter(&s->gate, GATE_WAIT_S))
		return -EBUSY;
	rc = child_ask(argv, &s->limits, s->stop_fd, socket_of(c), a, e);
	gate_leave(&s->gate);
	return rc;
}

/* The answer of this request's child, or of another client's child with the same request; if that
 * client hung up, of a new child. */
static int ask_once(struct server *s, struct MHD_Connection *c, const char *const *argv,
		    struct child_answer *a, struct err *e)
{
	bool own;
	int rc;

	do {
		struct asked_one *x = asked_enter(&s->asked, argv, &own);

		*a = (struct child_answer){.out_fd = -1};
		*e = (struct err){0};
		if (own) {
			rc = ask_child(s, c, argv, a, e);
			asked_done(&s->asked, x, rc, a, e);
		} else {
			rc = asked_wait(&s->asked, x, a, e);
		}
		asked_leave(&s->asked, x);
		if (!own && !rc && a->end == CHILD_LEFT)
			close(a->out_fd);
	} while (!own && !rc && a->end == CHILD_LEFT);
	return rc;
}

static enum MHD_Result run(struct server *s, struct MHD_Connection *c, const char *const *argv,
			   const char *type, const char *download, bool may_fail)
{
	struct child_answer a;
	struct err e;
	enum MHD_Result done;
	int rc = ask_once(s, c, argv, &a, &e);

	if (rc == -EBUSY)
		return child_reply_busy(c);
	if (rc)
		return reply_error(c, MHD_HTTP_INTERNAL_SERVER_ERROR, &e, 0);
	if (a.end == CHILD_EXITED &&
	    (a.exit == EXIT_OK || (may_fail && a.exit == EXIT_RUNTIME && a.out_bytes)))
		return reply_file(c, type, a.out_fd, a.out_bytes, download);
	done = child_reply_failed(&s->limits, c, &a);
	close(a.out_fd);
	return done;
}

static enum MHD_Result ask(struct server *s, struct MHD_Connection *c, const char *verb,
			   bool report)
{
	cleanup_free const char **argv = NULL;
	struct values values = {.n = 0};
	struct err e = {0};
	int rc;

	MHD_get_connection_values_n(c, MHD_GET_ARGUMENT_KIND, take_value, &values);
	rc = question_argv(s->questions, s->sonde, s->store, s->limits.seconds, verb, report,
			   values.items, values.n, &argv, &e);
	if (rc)
		return reply_error(c, rc == -ENOENT ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST, &e,
				   0);
	return report ? run(s, c, argv, "text/html; charset=utf-8", "sonde-report.html", false) :
			run(s, c, argv, "application/json", NULL, question_may_fail(verb));
}

static enum MHD_Result list_verbs(const struct server *s, struct MHD_Connection *c)
{
	char *text = questions_list(s->questions);

	return reply_text(c, text);
}

/* --- looking on --- */

struct looker {
	struct store_watch *watch;
	uint64_t seen;
	int socket;
	bool greeted;
};

static bool has_gone(int socket)
{
	char c;

	return recv(socket, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Writes events; a comment if nothing was written to the store, so that a client that has gone is
 * noticed. */
static ssize_t look_on(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct looker *l = cls;
	enum store_watch_said said = STORE_WATCH_QUIET;
	int n;

	(void)pos;
	if (l->greeted)
		said = store_watch_wait(l->watch, &l->seen, LIVE_QUIET_S);
	if (said == STORE_WATCH_CLOSED || has_gone(l->socket))
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!l->greeted)
		n = snprintf(buf, max, "retry: 3000\n\n");
	else
		n = snprintf(buf, max,
			     said == STORE_WATCH_CHANGED ?
				     "event: changed\ndata: {\"n\":%llu}\n\n" :
				     ": %llu\n\n",
			     (unsigned long long)l->seen);
	l->greeted = true;
	return n;
}

static void looked(void *cls)
{
	struct looker *l = cls;

	store_watch_leave(l->watch);
	free(l);
}

static enum MHD_Result live(struct server *s, struct MHD_Connection *c)
{
	struct looker *l = mem_alloc(sizeof(*l));

	*l = (struct looker){.watch = &s->watch, .socket = socket_of(c)};
	store_watch_enter(&s->watch);
	store_watch_wait(&s->watch, &l->seen, 0);
	return reply_stream(c, "text/event-stream", look_on, looked, l);
}

static enum MHD_Result metrics(struct server *s, struct MHD_Connection *c)
{
	const char *accept = head_of(c, "Accept"), *argv[6] = {s->exporter, "metrics"};
	bool open = accept && strstr(accept, "application/openmetrics-text");
	size_t n = 2;

	if (open)
		argv[n++] = "--openmetrics";
	if (s->store) {
		argv[n++] = "--store";
		argv[n++] = s->store;
	}
	return run(s, c, argv,
		   open ? "application/openmetrics-text; version=1.0.0; charset=utf-8" :
			  "text/plain; version=0.0.4; charset=utf-8",
		   NULL, false);
}

/* --- routes --- */

static enum MHD_Result login(const struct server *s, struct MHD_Connection *c, const char *token)
{
	bool right = guard_token_is(&s->guard, token, strlen(token));

	if (right)
		return reply_cookie(c, s->guard.token);
	sleep(WRONG_TOKEN_S);
	return reply_login(c, 1);
}

static enum MHD_Result nothing_there(struct MHD_Connection *c, const char *url)
{
	struct err e = {0};

	err_set(&e, -ENOENT, EXIT_USAGE, "there is no '%.200s' here", url);
	err_fix(&e, "the page is /, data is " API "VERB");
	return reply_error(c, MHD_HTTP_NOT_FOUND, &e, 0);
}

static enum MHD_Result route(struct server *s, struct MHD_Connection *c, const char *url)
{
	const char *token = s->guard.token && !strcmp(url, "/") ?
				    MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token") :
				    NULL;
	const struct asset *a = asset_find(url);
	bool measured = !strcmp(url, METRICS) && s->exporter,
	     data = !strncmp(url, API, strlen(API)) || !strcmp(url, REPORT) || !strcmp(url, MCP) ||
		    measured;
	enum guard_answer may = ask_guard(s, c, !data);

	if (may == GUARD_WELCOME || may == GUARD_TOKEN) {
		if (token)
			return login(s, c, token);
		if (may == GUARD_TOKEN && a)
			return !strcmp(url, "/app.css") ? reply_asset(c, a) : reply_login(c, 0);
	}
	if (may != GUARD_WELCOME)
		return refuse(c, may);
	if (a)
		return reply_asset(c, a);
	if (!strcmp(url, MCP))
		return reply_method(c, true);
	if (!data)
		return nothing_there(c, url);
	if (!strcmp(url, LIVE))
		return live(s, c);
	if (!strcmp(url, API))
		return list_verbs(s, c);
	if (measured)
		return metrics(s, c);
	return !strcmp(url, REPORT) ? ask(s, c, "report", true) :
				      ask(s, c, url + strlen(API), false);
}

/* --- /mcp --- */

/* The body owes as a head does: within seconds. */
static enum MHD_Result post_begin(struct server *s, struct MHD_Connection *c, void **request)
{
	const enum guard_answer may = ask_guard(s, c, false);
	const char *length = head_of(c, "Content-Length");

	if (may != GUARD_WELCOME)
		return refuse(c, may);
	if (length && strtoull(length, NULL, 10) > MCP_READ_BYTES)
		return mcp_answer_too_long(c);
	if (connection_of(c))
		connections_mark(&s->connections, connection_of(c), true);
	*request = mcp_answer_new();
	return MHD_YES;
}

static enum MHD_Result post_more(struct server *s, struct MHD_Connection *c, struct mcp_answer *a,
				 const char *upload, size_t *upload_size)
{
	const struct mcp_head head = {
		.type = head_of(c, "Content-Type"),
		.version = head_of(c, "MCP-Protocol-Version"),
		.method = head_of(c, "Mcp-Method"),
		.name = head_of(c, "Mcp-Name"),
	};
	const size_t n = *upload_size;

	*upload_size = 0;
	if (n)
		return mcp_answer_add(a, upload, n), MHD_YES;
	if (connection_of(c))
		connections_mark(&s->connections, connection_of(c), false);
	return mcp_answer_ask(s, a, &head, head_of(c, "Mcp-Session-Id"), c, socket_of(c));
}

enum MHD_Result http_answer(void *cls, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_size, void **request)
{
	struct server *s = cls;
	bool first = !*request;

	(void)version;
	if (!first && *request != s)
		return post_more(s, c, *request, upload, upload_size);
	*request = s;
	if (first && !strcmp(method, "POST") && !strcmp(url, MCP))
		return post_begin(s, c, request);
	if (connection_of(c))
		connections_mark(&s->connections, connection_of(c), false);
	/* A reply at the first call ends the connection: a body is never read. */
	if (first && strcmp(method, "GET") && strcmp(method, "HEAD"))
		return reply_method(c, !strcmp(url, MCP));
	if (first && has_body(c))
		return refuse_body(c);
	return first ? MHD_YES : route(s, c, url);
}
