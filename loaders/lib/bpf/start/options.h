/* SPDX-License-Identifier: Apache-2.0 */
/* options: the options that every loader has. */
#ifndef SONDE_BPF_OPTIONS_H
#define SONDE_BPF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/cli/options.h"
#include "schema/base/err.h"

struct family;

struct options {
	int64_t duration_ns; /* 0: until stopped */
	int64_t finish_ns;   /* how long its end may take; 0: the usual limits */
	uint32_t freq;       /* 0 where the family has none */
	const char *bucket;
	uint32_t bucket_s; /* the same: 1 or 10 */
	struct option_numbers pids;
	struct option_list cgroups, containers, comms;
	const char *store; /* NULL: the default */
	bool no_lines;
	const char *args;              /* "full", "masked", "none" */
	const char *include, *exclude; /* rules.h; NULL: none */
	const char *maps_socket;       /* NULL: start a private sonde-maps */
	int progress_fd;               /* -1: none */
	int targets_fd;                /* -1: none; see targetfeed.h */
	bool apart;                    /* begin a session */
	uint64_t recording;            /* 0: not part of a recording */
	uint64_t segment_bytes;        /* 0: the store's default */
	uint64_t budget_bytes;         /* of the whole store, 0: no limit */
	int64_t segment_ns;
	uint32_t segment_s; /* the same; 0: the store's default */
	const char *flight; /* the ring's folder (schema/store/write/commit/fine.h); NULL: none */
	uint32_t flight_share; /* 0 is 1 */
	uint64_t flight_bytes; /* 0: the default */
	bool check, json, verbose;
	struct option_words words;
	char **command; /* NULL, or argv after `--`, ended by NULL */
};

/* Fills `o` and the family's own options. 0; 1: it printed help or the version; -EINVAL with
 * EXIT_USAGE. */
int loader_options_read(const struct family *f, const char *prog, int argc, char **argv,
			struct options *o, struct err *e);
void loader_options_release(const struct family *f, struct options *o);

#endif
