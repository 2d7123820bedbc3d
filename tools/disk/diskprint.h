/* SPDX-License-Identifier: Apache-2.0 */
/* diskprint: rows about disks, as tables and as JSON. Tables are the caller's to print and free. */
#ifndef SONDE_TOOLS_DISKPRINT_H
#define SONDE_TOOLS_DISKPRINT_H

#include <jansson.h>

#include "tools/disk/diskfiles.h"
#include "tools/disk/diskfull.h"
#include "tools/disk/diskrows.h"
#include "tools/disk/diskuse.h"
#include "tools/print/table.h"

struct table *diskprint_disks(const struct diskuse *u);
struct table *diskprint_who(const struct diskuse *u, size_t n);
json_t *diskprint_disk_json(const struct diskuse *u, const struct diskuse_disk *d);
json_t *diskprint_who_json(const struct diskuse *u, const struct diskuse_who *w);

struct table *diskprint_rows(const struct diskrows *r, enum diskrows_what what, size_t n);
json_t *diskprint_row_json(const struct diskrow *x, enum diskrows_what what);

struct table *diskprint_files(const struct diskfiles *f, size_t n);
json_t *diskprint_file_json(const struct diskfile *x);
struct table *diskprint_full(const struct diskfull *f, size_t n);
json_t *diskprint_full_json(const struct diskfull_mount *m);
struct table *diskprint_held(const struct diskhelds *h, size_t n);
json_t *diskprint_held_json(const struct diskheld *x);

#endif
