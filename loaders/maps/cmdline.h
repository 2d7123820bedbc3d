/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline: what sonde-maps was asked to do. */
#ifndef SONDE_MAPS_CMDLINE_H
#define SONDE_MAPS_CMDLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"

struct cmdline {
	const char *socket, *store, *args, *index;
	int fd, tables_fd;
	int dump;
	int64_t explain; /* of both -1: no */
	unsigned int rows_mb, images_mb;
	bool print, json, no_lines, dotnet, check, verbose;
};

/* 0; 1: help was asked for and printed; < 0: err_set with EXIT_USAGE. Strings are argv's. */
int cmdline_parse(int argc, char **argv, struct cmdline *o, struct err *e);

#endif
