/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: sonded itself: one thread that waits for children, signals and questions, and does what is
 * due. Start: sonde-maps, then, once it has greeted, the loaders. End: the loaders first, who still
 * need it, then sonde-maps.
 */
#ifndef SONDE_SUPERVISOR_LOOP_H
#define SONDE_SUPERVISOR_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "supervisor/config/conf.h"

struct loop_opts {
	const char *conf_dir;     /* NULL: the default */
	const char *const *flags; /* as conf_load */
	bool replace;             /* a sonded that keeps the store is told to end */
	int64_t patience_ns;      /* how long sonde may be over a limit */
	struct conf *conf;        /* loaded once by the caller; replaced at a reload */
	void (*ready)(void *ctx); /* called once all that can run does */
	void (*not_recording)(
		void *ctx, const struct err *why); /* before that, for each family that does not */
	bool must_record; /* end with the first failure if no family could be started at all */
	void *ctx;
};

/* Takes the store's supervisor lock, runs until SIGTERM, SIGINT or a "stop". EXIT_STORE: another
 * one keeps this store. With must_record the error of what failed first is the result. */
int loop_run(const struct loop_opts *o, struct err *e);

#endif
