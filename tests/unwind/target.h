/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: a stopped process as the unwinder asks for it: what is mapped where, with the rows of
 * real image indexes, and words of its memory.
 */
#ifndef SONDE_TESTS_UNWIND_TARGET_H
#define SONDE_TESTS_UNWIND_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/lib/host/unwind/unwind.h"

#define TARGET_MAPS  512
#define TARGET_FILES 64

struct target_file {
	char path[512];
	struct image *image; /* NULL: no index could be made */
	struct unwind_section rows;
	bool has_rows;
};

struct target_map {
	uint64_t start, end, offset;
	bool exec;
	int file; /* -1: none */
};

struct target {
	pid_t pid;
	const char *indexer; /* path of sonde-index */
	const char *dir;     /* for indexes */
	struct target_map map[TARGET_MAPS];
	int n_maps;
	struct target_file file[TARGET_FILES];
	int n_files;
	uint64_t stack_at; /* what is copied of the stack */
	size_t stack_len;
	uint64_t stack[4096];
};

/* Reads /proc/PID/maps again; new executable files are indexed. */
void target_maps(struct target *t);
/* Copies the stack from sp on: later reads there cost nothing. */
void target_stack(struct target *t, uint64_t sp);
bool target_read(void *target, uint64_t addr, uint64_t *value);
bool target_where(void *target, uint64_t addr, struct unwind_where *out);
const struct target_map *target_map_of(const struct target *t, uint64_t addr);
/* "libc.so.6 name+0x12", for messages. */
void target_name(const struct target *t, uint64_t addr, char *to, size_t size);

#endif
