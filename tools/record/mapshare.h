/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapshare: the one sonde-maps of a recording by several loaders, so that they share its tables:
 * they cost once, and samples of one loader know the request that another one saw.
 */
#ifndef SONDE_TOOLS_MAPSHARE_H
#define SONDE_TOOLS_MAPSHARE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct mapshare {
	pid_t pid; /* 0: none, and each loader starts its own */
	int fd; /* ours: sonde-maps ends when it is closed, also when we die. What it writes there
		   is ignored */
	unsigned int again; /* how often it was restarted */
	const char *store, *args;
	bool no_lines; /* borrowed: what it is started with */
	char dir[64], socket[96];
};

/* Started and ready to be connected to. Where that cannot be, m->pid is 0. The texts are borrowed
 * until mapshare_end. */
void mapshare_start(struct mapshare *m, const char *store, const char *args, bool no_lines);
/* `fd` is readable: thrown away, so that it never is full. Where sonde-maps has ended it is started
 * again, and the loaders find it where it was. */
void mapshare_drain(struct mapshare *m);
void mapshare_end(struct mapshare *m);

#endif
