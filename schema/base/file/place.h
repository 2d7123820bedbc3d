/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: is a folder, such as the store's, still where it was opened? Who writes there keeps a
 * descriptor of it, which follows the folder if it is renamed, and tells when it is removed.
 */
#ifndef SONDE_BASE_FILE_PLACE_H
#define SONDE_BASE_FILE_PLACE_H

#include <limits.h>
#include <sys/types.h>

struct place {
	int fd; /* own; -1: none */
	dev_t dev;
	ino_t ino;
};

enum place_state {
	PLACE_SAME,
	PLACE_MOVED, /* it has another path now */
	PLACE_GONE   /* it is removed, or its file system is unmounted */
};

/* 0 or -errno; then fd is -1. Closes what was open. */
int place_open(struct place *p, const char *dir);
/* `dir`: the path that it had. `now`: its path, if it moved. One that is not open is PLACE_SAME. */
enum place_state place_look(const struct place *p, const char *dir, char now[PATH_MAX]);
void place_close(struct place *p);

#endif
