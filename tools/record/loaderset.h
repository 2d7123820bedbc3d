/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loaderset: the loaders of one recording, one for each family: started, followed, ended together.
 * Each reports its progress as JSON lines on its own pipe (loaders/lib/bpf/run/progress.h).
 *
 *   1. Ctrl-C and SIGTERM reach all of them: a terminal sends them to all; a signal to one process
 *      is passed on.
 *   2. One that fails does not end the others.
 *   3. All are waited for, also when the reader gives up.
 *   4. With `length_ns` they are ended that long after the last of them was ready, so that all
 *      cover the same time; one that failed is not waited for.
 */
#ifndef SONDE_TOOLS_LOADERSET_H
#define SONDE_TOOLS_LOADERSET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "schema/families/families.h"

struct loader {
	const struct probe_family *family;
	pid_t pid;
	int fd;                          /* -1: it has closed its end */
	int status;                      /* as of wait(2), after loaderset_follow */
	bool ready;                      /* it has said so */
	json_t *done, *error, *progress; /* the last of each, owned; NULL: none */
	struct strbuf line;              /* begun */
};

struct loaderset {
	struct loader v[FAMILIES_MAX];
	size_t n;
	struct mapshare *maps; /* borrowed; NULL: none */
	/* Called for each line as it comes, after `v` took it in. */
	void (*event)(void *ctx, struct loader *l, const char *name, const json_t *ev);
	void *ctx;
	int64_t length_ns; /* 0: they end by themselves */
	int64_t end_ns;    /* boot clock, when they are to end; 0: not known yet */
	bool timed_out;    /* they were ended by time */
};

struct mapshare;

struct argv { /* a command line, ended by NULL */
	char **v;
	size_t n, cap;
};
void argv_add(struct argv *a, const char *s); /* copied; NULL ends it */
void argv_release(struct argv *a);

/* Before the first is started. */
void loaderset_catch_signals(void);
/* Adds a loader's arguments, --progress-fd with `fd` among them. */
typedef void loaderset_fill(struct argv *a, void *ctx, const struct probe_family *f, int fd);
/* Start sonde-NAME. */
int loaderset_start(struct loaderset *s, const struct probe_family *f, loaderset_fill *fill,
		    void *ctx, struct err *e);
/* Until all have ended. */
void loaderset_follow(struct loaderset *s);
/* Ends those that run and waits for them, without reading their progress. */
void loaderset_stop(struct loaderset *s);
void loaderset_release(struct loaderset *s);
/* Runs another program to its end, in a new session; passes signals on to it, too. 0, or -errno: it
 * cannot be started. */
int loaderset_run_apart(char *const *argv, struct err *e);

#endif
