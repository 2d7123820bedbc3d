/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: sonded's one thread: it waits for children, signals and requests, and does what is due. It
 * starts sonde-maps and, once that has said hello, the loaders. At the end it stops the loaders
 * first, which still need sonde-maps.
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
	bool replace;             /* stop a sonded that is using the store */
	int64_t patience_ns;      /* how long sonde may exceed a limit */
	struct conf *conf;        /* loaded once by the caller; replaced at a reload */
	void (*ready)(void *ctx); /* called once all families that can run do */
	void (*not_recording)(
		void *ctx, const struct err *why); /* before that, for each family that does not */
	bool must_record; /* ready: the store has something of each; end with the first failure if
			     no family records */
	void *ctx;
};

/* Takes the store's supervisor lock and runs until SIGTERM, SIGINT or a "stop". EXIT_STORE: another
 * sonded is using this store, or what was held at the end could not be stored. With must_record,
 * returns the error of the first failure. -ESTALE: the store's folder was renamed or removed; all
 * has ended in order and *o->conf is as it was then: call it again. */
int loop_run(const struct loop_opts *o, struct err *e);

#endif
