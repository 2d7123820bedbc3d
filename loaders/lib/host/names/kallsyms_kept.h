/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms_kept: the kernel's symbols as a file, <store>/images/kallsyms: reading /proc/kallsyms
 * takes the kernel 50 ms of CPU each time, and while a host runs most of it stays as it is. The
 * file is mapped and searched in place.
 *
 * 1. It holds for one boot (random/boot_id) and one set of modules (names, sizes and addresses of
 * /proc/modules); another one is not read.
 * 2. What comes and goes without a word is not in it: BPF programs, and the kernel's trampolines
 * ([__builtin__ftrace] and the like). Neither is what lies right before one of these, nor the last
 * function of each module: nothing says where it ends, and a BPF program may lie there by now. So
 * what it does not know must be looked for in /proc/kallsyms itself.
 * 3. It shows kernel addresses: mode 0600, whatever the store's group.
 *
 * In the byte order of the host, all offsets from the file's beginning, each array padded to 8
 * bytes: struct kallsyms_head    below address[n]              less `first`, u32 each; or u64, as
 * they are, with KALLSYMS_WIDE name[n]                 u32: offset in the pool, with two marks
 * (kallsyms_parts.h) module[n]               u16 modules[n_modules]      {u64 base, u64 offset of
 * the name in the pool}; number 0 is the kernel pool[pool_bytes]        names, each with its 0
 */
#ifndef SONDE_HOST_KALLSYMS_KEPT_H
#define SONDE_HOST_KALLSYMS_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "schema/base/strbuf.h"

#define KALLSYMS_MAGIC "sndksym1"
#define KALLSYMS_WIDE  1

struct kallsyms_head {
	char magic[8];
	uint64_t hash; /* of all that comes after it */
	uint64_t key;  /* of the boot and its modules */
	uint64_t first, text, etext;
	struct kallsyms_orc orc;
	uint32_t flags, n, functions, n_modules;
	uint64_t pool_bytes;
};

/* Pure: appends the file's bytes. */
void kallsyms_pack(const struct kallsyms *k, uint64_t key, struct strbuf *out);
/* Pure: the table in these bytes, which stay the caller's and must outlive it; the hash is not
 * looked at. 0, -ESTALE (another key or version), or -EBADMSG. */
int kallsyms_unpack(const void *data, size_t len, uint64_t key, struct kallsyms **out);

/* As kept below `store_dir` for what runs now; 0, or -errno: read it anew. */
int kallsyms_kept(const char *store_dir, struct kallsyms **out);
/* Keep it, if there is such a folder, and room. Hidden ones are not kept. */
void kallsyms_keep(const struct kallsyms *k, const char *store_dir);

#endif
