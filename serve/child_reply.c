/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/child_reply.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "serve/reply.h"

/* Takes the last "PROG: WHAT" and "  fix: FIX" from stderr; what precedes them (the range, notes)
 * is ignored. */
static void error_of(const struct child_answer *a, struct err *e)
{
	char what[sizeof(e->what)] = "", fix[sizeof(e->fix)] = "";

	for (const char *line = a->said; *line;) {
		size_t len = strcspn(line, "\n");

		if (!strncmp(line, "sonde: ", 7))
			snprintf(what, sizeof(what), "%.*s", (int)len - 7, line + 7);
		else if (!strncmp(line, "  fix: ", 7))
			snprintf(fix, sizeof(fix), "%.*s", (int)len - 7, line + 7);
		line += len + (line[len] == '\n');
	}
	err_set(e, -EIO, (enum sonde_exit)a->exit, "%s",
		*what ? what : "sonde failed without a message");
	if (*fix)
		err_fix(e, "%s", fix);
}

static unsigned status_of(int exit)
{
	switch (exit) {
	case EXIT_USAGE:
		return MHD_HTTP_BAD_REQUEST;
	case EXIT_NOTHING:
		return MHD_HTTP_NOT_FOUND;
	case EXIT_PERMISSION:
		return MHD_HTTP_FORBIDDEN;
	case EXIT_STORE:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

enum MHD_Result child_reply_failed(const struct child_limits *limits, struct MHD_Connection *c,
				   const struct child_answer *a)
{
	unsigned status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	struct err e = {0};

	switch (a->end) {
	case CHILD_EXITED:
		error_of(a, &e);
		return reply_error(c, status_of(a->exit), &e, 0);
	case CHILD_OVER_TIME:
		status = MHD_HTTP_GATEWAY_TIMEOUT;
		err_set(&e, -ETIME, EXIT_RUNTIME, "the request was stopped after %u s",
			limits->seconds);
		err_fix(&e,
			"ask for a shorter range, or start the server with: sonde serve --timeout TIME");
		break;
	case CHILD_KILLED:
		err_set(&e, -ENOMEM, EXIT_RUNTIME,
			a->signal == SIGXFSZ ?
				"the answer is larger than %llu MB" :
				"the request was stopped: it needed more than %llu MB of memory, or failed",
			(unsigned long long)((a->signal == SIGXFSZ ? limits->answer_bytes :
								     limits->memory_bytes) >>
					     20));
		err_fix(&e, "ask for a shorter range or fewer rows");
		break;
	case CHILD_LEFT:
		err_set(&e, -ECONNRESET, EXIT_RUNTIME,
			"the connection was closed before the answer");
		break;
	case CHILD_STOPPED:
		status = MHD_HTTP_SERVICE_UNAVAILABLE;
		err_set(&e, -ESHUTDOWN, EXIT_RUNTIME, "the server is shutting down");
		break;
	}
	return reply_error(c, status, &e, 0);
}

enum MHD_Result child_reply_busy(struct MHD_Connection *c)
{
	struct err e = {0};

	err_set(&e, -EBUSY, EXIT_RUNTIME, "too many requests at a time");
	err_fix(&e,
		"try again when others are done, or start the server with: sonde serve --questions N");
	return reply_error(c, MHD_HTTP_SERVICE_UNAVAILABLE, &e, 2);
}
