/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces: which request was made for which (view request_spans), as trees.
 *
 * A node is one exchange: of the side that asked, the side that answered, or of both if both were
 * kept. These are joined by
 *
 *   - bytes: both ends of one connection have the same byte of the same stream
 *   - header: no connection shows it, but both carry the same trace and span, and no other kept
 *     request does
 *
 * Its parent is the request that was being served when it was asked, as is known by
 *
 *   - thread: the thread that asked had the parent open, and no other request
 *   - goroutine: the same of a goroutine
 *   - opener: the connection was opened by the thread while it served the parent, and these were
 *     its first bytes. A thread that serves several requests opened it right after it had read the
 *     parent: that is an order in time, and all that can be seen
 *
 * A question that was asked before its parent came, or after that was answered, is not linked. A
 * node without a parent says why it has none.
 */
#ifndef SONDE_TOOLS_TRACES_H
#define SONDE_TOOLS_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

struct trace_row { /* one side's view */
	char *container, *comm, *lang, *protocol, *service, *operation, *status, *result, *why,
		*trace, *how;
	int64_t pid, tid, at_ns, first_us, total_us; /* -1: none */
	uint64_t span, parent, caller;               /* 0: none */
	bool server, partial, wanted;                /* wanted: of a process that is asked for */
};

#define TRACE_NONE UINT32_MAX
struct trace_node {
	uint32_t asked, answered; /* rows; TRACE_NONE */
	uint32_t parent, child,
		next;     /* nodes: the first child, the next of the same parent, by time */
	const char *how;  /* static: "thread", "goroutine", "opener"; "" without a parent */
	const char *lone; /* static: why it has no parent. "several": its thread had several
			     requests open; "order": the time of the one that its thread served does
			     not include it; "" */
	bool by_header;   /* asked and answered are joined by header */
	bool lost_parent; /* it was made for a request that was not kept */
	uint32_t size;    /* nodes from here down */
};

#define TRACES_RING 100000
struct traces {
	struct trace_row *rows;
	size_t n_rows;
	struct trace_node *nodes;
	size_t n_nodes;
	uint32_t *roots;
	size_t n_roots;         /* the slowest first */
	size_t asked, unlinked; /* kept requests; those whose parent is unknown */
	bool known;             /* family l7 was recorded in the range */
	size_t ring;            /* rows of kept windows of the flight ring */
	size_t left;            /* more of these than TRACES_RING: left out */
};

/* Trees in which a process of the selection takes part. Release in any case. */
int traces_read(const struct selection *sel, struct traces *out, struct err *e);
void traces_release(struct traces *t);
/* Nodes and trees of rows that the caller has read, each span and side once; traces_read does the
 * same with its rows. */
void traces_link(struct traces *t);

/* What all of a node's sides agree in: that of who asked, else of who answered. */
const struct trace_row *traces_row(const struct traces *t, uint32_t node);
int64_t traces_us(const struct traces *t, uint32_t node);
/* The next node in the order in which a tree is read, from `root` down; *depth goes with it (0 at
 * the root). TRACE_NONE: that was the last. */
uint32_t traces_next(const struct traces *t, uint32_t root, uint32_t node, unsigned *depth);
/* Is this text the id of a trace that the node carries (whole, or 8 digits of its beginning or
 * more), or of one of its sides? */
bool traces_named(const struct traces *t, uint32_t node, const char *id);

#endif
