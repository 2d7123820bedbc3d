/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/mcp_answer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "serve/child_reply.h"
#include "serve/http_answer.h"
#include "serve/reply.h"

#define TOO_LARGE 413 /* the library's name for it has changed */
#define VERBS_MOST \
	8 /* that one call runs, one after the other, each within the limit of a request */

struct mcp_answer {
	struct strbuf body;
	bool too_long;
};

struct mcp_answer *mcp_answer_new(void)
{
	struct mcp_answer *a = mem_alloc(sizeof(*a));

	*a = (struct mcp_answer){.body = STRBUF_INIT};
	return a;
}

void mcp_answer_free(struct mcp_answer *a)
{
	strbuf_release(&a->body);
	free(a);
}

void mcp_answer_add(struct mcp_answer *a, const char *piece, size_t len)
{
	a->too_long = a->too_long || a->body.len + len > MCP_POST_BYTES;
	if (!a->too_long)
		strbuf_add(&a->body, piece, len);
}

enum MHD_Result mcp_answer_too_long(struct MHD_Connection *c)
{
	struct err e = {0};

	err_set(&e, -E2BIG, EXIT_USAGE, "a message is at most 1 MiB long");
	return reply_error(c, TOO_LARGE, &e, 0);
}

/* A memory file with the message, or -1. */
static int input_make(const struct strbuf *body)
{
	cleanup_fd int fd = memfd_create("message", MFD_CLOEXEC);

	if (fd < 0 || write(fd, body->buf, body->len) != (ssize_t)body->len ||
	    write(fd, "\n", 1) != 1)
		return -1;
	return take_fd(&fd);
}

/* -EBUSY: there was no room. end_fd: readable when it is to end. */
static int run(struct server *s, int in, int end_fd, int socket, struct child_answer *out,
	       struct err *e)
{
	struct child_limits limits = s->limits;
	char seconds[32], memory[32];
	const char *argv[8] = {s->sonde, "mcp", seconds, memory};
	int rc;

	snprintf(seconds, sizeof(seconds), "--timeout=%us", s->limits.seconds);
	snprintf(memory, sizeof(memory), "--memory=%llu",
		 (unsigned long long)(s->limits.memory_bytes >> 20));
	if (s->store) {
		argv[4] = "--store";
		argv[5] = s->store;
	}
	limits.seconds *= VERBS_MOST;
	limits.in_fd = in;
	if (!gate_enter(&s->gate, GATE_WAIT_S))
		return -EBUSY;
	rc = child_ask(argv, &limits, end_fd, socket, out, e);
	gate_leave(&s->gate);
	return rc;
}

/* Its output is one line, or nothing. */
static enum MHD_Result reply_with(struct MHD_Connection *c, const struct mcp_post *p,
				  const struct child_answer *a)
{
	const size_t len = (size_t)a->out_bytes;
	char *text = mem_alloc(len + 1), session[MCP_SESSION];

	if (pread(a->out_fd, text, len, 0) != (ssize_t)len)
		*text = '\0';
	if (len)
		return reply_message(c, mcp_post_status(p, text, strlen(text)), text,
				     p->begins && mcp_session_make(session) ? session : NULL);
	free(text);
	return reply_message(c, MHD_HTTP_ACCEPTED, NULL, NULL);
}

/* *cancelled: by another message. */
static int ask_child(struct server *s, const struct strbuf *body, const char *session,
		     const char *id, int socket, struct child_answer *out, bool *cancelled,
		     struct err *e)
{
	cleanup_fd int in = input_make(body);
	struct mcp_call call;
	int rc;

	if (in < 0 || mcp_calls_enter(&s->calls, s->stop_fd, session, id, &call))
		return err_set(e, -EIO, EXIT_RUNTIME, "cannot pass the message on: %s",
			       strerror(errno));
	rc = run(s, in, call.end_fd, socket, out, e);
	*cancelled = mcp_calls_leave(&s->calls, &call);
	return rc;
}

static enum MHD_Result ask_message(struct server *s, const struct strbuf *body,
				   const struct mcp_post *post, const char *session,
				   struct MHD_Connection *c, int socket)
{
	struct child_answer answer = {.out_fd = -1};
	cleanup_fd int out = -1;
	bool cancelled = false;
	struct err e = {0};
	int rc = ask_child(s, body, session, post->id, socket, &answer, &cancelled, &e);

	out = answer.out_fd;
	if (cancelled)
		return reply_message(c, MHD_HTTP_ACCEPTED, NULL, NULL);
	if (rc == -EBUSY)
		return child_reply_busy(c);
	if (rc)
		return reply_error(c, MHD_HTTP_INTERNAL_SERVER_ERROR, &e, 0);
	return answer.end == CHILD_EXITED && answer.exit == EXIT_OK ?
		       reply_with(c, post, &answer) :
		       child_reply_failed(&s->limits, c, &answer);
}

enum MHD_Result mcp_answer_ask(struct server *s, struct mcp_answer *a, const struct mcp_head *head,
			       const char *session, struct MHD_Connection *c, int socket)
{
	struct mcp_post post;
	enum MHD_Result done;

	if (a->too_long)
		return mcp_answer_too_long(c);
	strbuf_addstr(&a->body, "");
	mcp_post_read(a->body.buf, a->body.len, head, &post);
	if (post.cancels)
		mcp_calls_cancel(&s->calls, session, post.cancels);
	done = post.status ? reply_message(c, post.status, take_ptr(post.error), NULL) :
			     ask_message(s, &a->body, &post, session, c, socket);
	mcp_post_release(&post);
	return done;
}
