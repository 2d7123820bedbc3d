/* SPDX-License-Identifier: Apache-2.0 */
/*
 * major: page faults that had to read the page, stored as kind `majorfaults`: how many, by the
 * stack that met them, whose leaf says what was read: the path of the file that is mapped there, or
 * "[swap]" of memory without one. Of a private mapping of a file, pages that the process has
 * written come from swap too: their leaf is the file.
 *
 * Which file it is /proc/PID/maps says when the record is stored. What is known of a range holds
 * for MAJOR_KNOWN_NS. A process that is gone by then, or whose file cannot be read, has
 * "[unknown file]"; paths beyond the first MAJOR_PATHS of a recording are "[other files]".
 */
#ifndef SONDE_MEM_MAJOR_H
#define SONDE_MEM_MAJOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/mem/stall.h"
#include "probes/mem.h"

#define MAJOR_PATHS    1024
#define MAJOR_PATH_LEN 200 /* of a longer one the end is kept */
#define MAJOR_KNOWN_NS 10000000000

struct major;

struct major *major_new(void);
void major_free(struct major *x); /* NULL is fine */
void major_store(struct major *x, const struct stall_notes *notes, struct family_host *h,
		 const struct stack_event *ev, struct naming_result *named);
/* What is mapped at this address, by the bytes of /proc/PID/maps: [*start, *end), and its name as
 * above. False: nothing is, or the bytes are no such file. Pure. */
bool major_named(const char *maps, size_t len, uint64_t address, uint64_t *start, uint64_t *end,
		 char name[MAJOR_PATH_LEN + 1]);

#endif
