/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: the files that a probe names, as this process opens them.
 *
 *   /PATH            that file
 *   CONTAINER/PATH   in each container of that name, its PATH
 *   NAME             programs and libraries of that file name that processes have mapped now; *
 *                    matches anything. If no process has one: all that a container of that name has
 *                    mapped
 *
 * A file that several processes have is one, by device and inode.
 */
#ifndef SONDE_PROBE_FILES_H
#define SONDE_PROBE_FILES_H

#include <stddef.h>
#include <sys/stat.h>

#include "schema/base/err.h"
#include "schema/probespec/spec.h"

#define FILES_MOST 64

struct files {
	struct file {
		char path[PROBESPEC_PATH];
		dev_t dev;
		ino_t ino;
	} v[FILES_MOST];
	size_t n;
};

/* EXIT_USAGE: no file matches. */
int files_find(const char *what, struct files *out, struct err *e);

#endif
