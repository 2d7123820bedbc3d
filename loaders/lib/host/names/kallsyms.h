/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms: the kernel's own functions, from the text of /proc/kallsyms ("ADDRESS TYPE NAME
 * [\t[MODULE]]", one line a symbol), as a compact table: about 2 MB for 122 000 lines, the text
 * itself is not kept.
 *
 * Functions are the types t T w W. All other symbols, and the ends of text sections (_etext,
 * _einittext), only end the function before them. There are no sizes: a function ends where the
 * next symbol begins, at most 1 MiB behind its start (64 KiB in a module or BPF program, which are
 * followed by unmapped space). Of several names at one address it takes the one that perf shows: a
 * strong one before a weak, a global before a local, the one with fewer underscores in front, the
 * longer.
 *
 * With kernel.kptr_restrict all addresses are 0: the table is then empty and kallsyms_hidden says
 * so.
 */
#ifndef SONDE_HOST_KALLSYMS_H
#define SONDE_HOST_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

#define KALLSYMS_FILE_MAX (256u << 20)

struct kallsyms;

struct kallsyms_symbol {
	const char *name;   /* borrowed; valid until the next call on this table */
	const char *module; /* "" for the kernel, "nf_tables", "bpf" */
	uint64_t start;     /* address of the function's first byte */
	uint64_t base; /* what offsets are counted from: _text, the module's first symbol, the BPF
			  program's start */
};

/* Pure. Malformed lines are skipped and counted; 0, or -E2BIG when the names exceed 1 GiB. */
int kallsyms_parse(const char *data, size_t len, struct kallsyms **out);
/* Read and parse a file (NULL: /proc/kallsyms). 0 or -errno. */
int kallsyms_load(const char *path, struct kallsyms **out);
void kallsyms_free(struct kallsyms *k); /* NULL is fine */

/* False: no function is known there. */
bool kallsyms_find(struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out);
/* Is it inside the kernel image itself (between _text and _etext)? Elsewhere a later load may know
 * more. */
bool kallsyms_is_text(const struct kallsyms *k, uint64_t addr);
uint64_t kallsyms_text(const struct kallsyms *k); /* address of _text (or _stext); 0: unknown */
bool kallsyms_hidden(const struct kallsyms *k);
/* Where the kernel keeps its own unwind tables. */
struct kallsyms_orc {
	uint64_t text, text_end; /* _stext, _etext */
	uint64_t ips, ips_end;   /* __start_orc_unwind_ip, __stop_orc_unwind_ip */
	uint64_t entries;        /* __start_orc_unwind */
	uint64_t hook;           /* arch_rethook_trampoline, 0: none */
};
/* false: hidden, or incomplete. */
bool kallsyms_orc(const struct kallsyms *k, struct kallsyms_orc *out);
size_t kallsyms_count(const struct kallsyms *k);   /* functions */
size_t kallsyms_skipped(const struct kallsyms *k); /* malformed lines */
size_t kallsyms_bytes(const struct kallsyms *k);   /* memory it holds */

/* ---- kept in a file ---- */

/*
 * <store>/images/kallsyms: reading /proc/kallsyms takes the kernel 50 ms of CPU each time, and most
 * of it does not change while a host runs. The file is mapped and searched in place.
 *
 * 1. It is valid for one boot (random/boot_id) and one set of modules (names, sizes and addresses
 *    of /proc/modules); any other file is ignored.
 * 2. It leaves out what comes and goes without notice: BPF programs and the kernel's trampolines
 *    ([__builtin__ftrace] and others). It also leaves out the function right before one of these,
 *    and the last function of each module: nothing says where it ends, and a BPF program may be
 *    there by now. So look up in /proc/kallsyms itself what this file does not know.
 * 3. It shows kernel addresses: mode 0600, whatever the store's group.
 *
 * In the byte order of the host, offsets from the file's beginning, each array padded to 8 bytes:
 *    struct kallsyms_head    below
 *    address[n]              less `first`, u32 each; or whole, u64 each, with KALLSYMS_WIDE
 *    name[n]                 u32: offset in the pool, with two marks (kallsyms.c)
 *    module[n]               u16
 *    modules[n_modules]      {u64 base, u64 offset of the name in the pool}; number 0 is the kernel
 *    pool[pool_bytes]        names, each with its 0
 */
#define KALLSYMS_MAGIC "sndksym1"
#define KALLSYMS_WIDE  1

struct kallsyms_head {
	char magic[8];
	uint64_t hash; /* of everything after it */
	uint64_t key;  /* of the boot and its modules */
	uint64_t first, text, etext;
	struct kallsyms_orc orc;
	uint32_t flags, n, functions, n_modules;
	uint64_t pool_bytes;
};

/* Pure: appends the file's bytes. */
void kallsyms_pack(const struct kallsyms *k, uint64_t key, struct strbuf *out);
/* Pure: the table in these bytes, which the caller keeps until it frees the table; does not check
 * the hash. 0, -ESTALE (another key or version), or -EBADMSG. */
int kallsyms_unpack(const void *data, size_t len, uint64_t key, struct kallsyms **out);

/* The file below `store_dir`, if it fits the running kernel; 0, or -errno: read /proc/kallsyms. */
int kallsyms_kept(const char *store_dir, struct kallsyms **out);
/* Write the file, if its folder exists and has room. Hidden symbols are not kept. */
void kallsyms_keep(const struct kallsyms *k, const char *store_dir);

#endif
