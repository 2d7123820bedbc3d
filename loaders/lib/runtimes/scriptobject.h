/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scriptobject: a record of the ring `names` (probes/runtimes/runtime.h): one object of a script
 * language, with its name and file, and the line of each position in it. Pure over (bytes, length):
 * the content is untrusted.
 */
#ifndef SONDE_RUNTIMES_SCRIPTOBJECT_H
#define SONDE_RUNTIMES_SCRIPTOBJECT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/runtimes/pycode.h"
#include "probes/runtimes/runtime.h"

struct scriptobject {
	uint32_t id;    /* of its frames' words */
	uint32_t kind;  /* enum runtime_kind */
	uint32_t image; /* mp_image.id of the interpreter's file */
	struct script_key key;
	uint64_t time_ns;
	struct pycode_object python; /* RUNTIME_PYTHON; below: all others */
	struct script_place place;   /* its line: the first one */
	uint32_t *lines, n_lines;    /* own; of positions, from 1 on: RUNTIME_RUBY */
};

/* 0, or -EBADMSG: not such a record; *out is unchanged. If the object's memory makes no sense it
 * has no function and no file. */
int scriptobject_read(const void *record, size_t size, struct scriptobject *out);
const char *scriptobject_function(const struct scriptobject *o); /* NULL: not known; so below */
const char *scriptobject_file(const struct scriptobject *o);
uint32_t scriptobject_first_line(const struct scriptobject *o); /* 0: not known; so below */
uint32_t scriptobject_line(const struct scriptobject *o, uint32_t position);
void scriptobject_release(struct scriptobject *o);

#endif
