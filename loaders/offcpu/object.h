/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object: what a thread waited on, for people: "/var/lib/x/data", "pipe:[4711]", "10.0.0.5:5432",
 * "[::1]:80", "port 8080", "futex 0x7f12ab34". A file's path is read from /proc, and used only if
 * that descriptor still has the same inode: else "inode 4711". A program may choose any bytes for a
 * path: the store replaces unprintable ones.
 *
 * A program may wait on new objects all the time: after OBJECTS_HOURLY different ones in an hour,
 * new ones are "[others]".
 */
#ifndef SONDE_OFFCPU_OBJECT_H
#define SONDE_OFFCPU_OBJECT_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/offcpu.h"
#include "schema/base/idmap.h"

#define OBJECT_LEN     256
#define OBJECTS_HOURLY 4096

struct objects {
	struct idmap
		paths; /* of process, descriptor and inode -> its path; at most OBJECTS_HOURLY */
	struct idmap told; /* hashes of what was named in this hour */
	uint64_t hour;
};

void objects_release(struct objects *o);
/* NULL: it waited on nothing that has a name. `buf` holds OBJECT_LEN bytes. */
const char *object_name(struct objects *o, const struct offcpu_end *e, char *buf);
/* Without asking /proc: of a file "inode N". */
void object_format(const struct offcpu_object *on, char *buf);

#endif
