/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_calls: which calls of /mcp run, so that another message can end one. A client names a call by
 * its own id, and two clients may choose the same; what tells them apart is the session, a random
 * text that `initialize` gives and the client repeats. Nothing else is kept of a session: any is
 * accepted, and it needs no end.
 */
#ifndef SONDE_SERVE_MCP_CALLS_H
#define SONDE_SERVE_MCP_CALLS_H

#include <pthread.h>
#include <stdbool.h>

#define MCP_SESSION 33 /* bytes of a session, NUL included */

struct mcp_call {
	struct mcp_call *next;
	const char *session, *id; /* borrowed until mcp_calls_leave; NULL: none */
	int cancel_fd;
	int end_fd; /* readable when the server ends or the call is cancelled */
	bool cancelled;
};

struct mcp_calls {
	pthread_mutex_t lock;
	struct mcp_call *first;
};

void mcp_calls_init(struct mcp_calls *c);
void mcp_calls_release(struct mcp_calls *c);
/* stop_fd: readable when the server ends. 0, or -errno: then it is not among them. */
int mcp_calls_enter(struct mcp_calls *c, int stop_fd, const char *session, const char *id,
		    struct mcp_call *x);
/* Whether it was cancelled. */
bool mcp_calls_leave(struct mcp_calls *c, struct mcp_call *x);
/* The one call with this id in this session (NULL: in no session). False: no call has it, or
 * several do, which happens only without a session; then no call is cancelled. */
bool mcp_calls_cancel(struct mcp_calls *c, const char *session, const char *id);
/* A new session, from the kernel's random numbers; false: the kernel gives no number. */
bool mcp_session_make(char text[static MCP_SESSION]);

#endif
