/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp: a server of the Model Context Protocol over standard input and output, read-only. Each call
 * of a tool is a thread that runs the tool's verbs as children with limits, one after the other; at
 * most MCP_AT_ONCE calls run at a time, MCP_WAITING more wait. A cancelled call's child is killed,
 * and nothing more is said about it. At the end of standard input the server answers what it was
 * asked and ends.
 */
#ifndef SONDE_TOOLS_MCP_H
#define SONDE_TOOLS_MCP_H

#include "schema/base/err.h"

#define MCP_AT_ONCE 2
#define MCP_WAITING 30
#define MCP_ANSWER  14000 /* bytes of one answer as JSON; a message has it twice, as text too */

struct mcp_options {
	const char *sonde;   /* path of the program that answers */
	const char *store;   /* NULL: the one that it finds */
	const char *version; /* of sonde */
	unsigned seconds;    /* time limit of one verb */
	unsigned memory_mb;  /* its memory */
	int spans_fd;        /* as child_limits has it */
};

/* Runs until standard input ends. 0, or -EIO: standard output is closed. */
int mcp_serve(const struct mcp_options *o, struct err *e);

#endif
