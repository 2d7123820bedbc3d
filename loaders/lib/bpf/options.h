/* SPDX-License-Identifier: Apache-2.0 */
/* options: the command line that every loader has. One table makes the parser and the help. */
#ifndef SONDE_BPF_OPTIONS_H
#define SONDE_BPF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"

struct family;

#define OPTIONS_LIST_MAX 64

struct options_list { /* of a repeated option; borrowed from argv */
	const char *items[OPTIONS_LIST_MAX];
	size_t n;
};

struct options {
	uint64_t duration_ns;       /* 0: until it is stopped */
	uint32_t freq;              /* 0 where the family has none */
	uint32_t bucket_s;          /* 1 or 10 */
	uint32_t pids[OPTIONS_LIST_MAX];
	size_t n_pids;
	struct options_list cgroups, containers, comms;
	const char *store;          /* NULL: the default */
	bool no_lines;
	const char *args;           /* "full", "masked", "none" */
	const char *include, *exclude; /* rules.h; NULL: none */
	const char *maps_socket;    /* NULL: a sonde-maps of our own */
	int progress_fd;            /* -1: none */
	int targets_fd;             /* -1: none; see targetfeed.h */
	uint64_t recording;         /* 0: alone */
	uint64_t segment_bytes;     /* 0: the store's own */
	uint64_t budget_bytes;      /* of the whole store, 0: none */
	uint32_t segment_s;         /* 0: the store's own */
	bool check, json, verbose, help, version;
	char **command;             /* NULL, or argv after `--` */
};

/* Fills `o` from the command line. -EINVAL with EXIT_USAGE. Nothing is printed. */
int options_parse(const struct family *f, int argc, char **argv, struct options *o, struct err *e);
void options_help(const struct family *f, FILE *out);

/* "500ms", "10s", "5m", "1h30m", "2d", or a bare number of seconds. -EINVAL: none of these, zero, or too long. */
int duration_parse(const char *s, uint64_t *ns);

#endif
