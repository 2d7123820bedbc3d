/* SPDX-License-Identifier: Apache-2.0 */
/*
 * major: page faults that had to read the page, stored as kind `majorfaults`: how many, by the
 * stack that met them, whose leaf says what was read: the path of the file that is mapped there, or
 * "[swap]" of memory without one. Of a private mapping of a file, pages that the process has
 * written come from swap too: their leaf is the file.
 *
 * Which file it is the kernel says at the fault (from 5.17 on), by the names of the file and its
 * folders below the root of its file system, and /proc/PID/maps when the record is stored, by the
 * process's own path: that is taken, unless it is another file by then, or the process is gone.
 * The name of a range is kept for MAJOR_KNOWN_NS. Where neither says it, it is
 * "[unknown file]"; paths beyond the first MAJOR_PATHS of a recording are "[other files]".
 */
#ifndef SONDE_MEM_MAJOR_H
#define SONDE_MEM_MAJOR_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/mem/stall.h"
#include "probes/mem.h"

#define MAJOR_PATHS    1024
#define MAJOR_KNOWN_NS 10000000000

struct major;

struct major *major_new(void);
void major_free(struct major *x); /* NULL is fine */
/* What is mapped where the fault was whose record comes next. */
void major_note(struct major *x, const struct mem_file *f);
void major_store(struct major *x, const struct stall_notes *notes, struct family_host *h,
		 const struct stack_event *ev, struct naming_result *named);

#endif
