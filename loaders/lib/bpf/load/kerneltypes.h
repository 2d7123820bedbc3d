/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kerneltypes: a file with the kernel types (BTF) that a skeleton's programs name, for libbpf's
 * relocations (btf_custom_path). Without it libbpf reads all 150 000 types at each start and
 * searches them for each name: 30 to 50 ms of CPU.
 *
 * 1. <store>/images/kerneltypes-KEY: KEY is a hash of the kernel's notes (its build-id), its
 *    release and version, and the skeleton, so another kernel or other programs use another file.
 *    Each use touches the file: the cache drops the least recently used.
 * 2. It is raw BTF, followed by a hash of it (u64, in host order); BTF contains its own length.
 * 3. It has each type with the name of one in the skeleton ("task_struct" of task_struct___maps),
 *    of any kind, all of that name; and everything that these contain, recursively. Pointers point
 *    to void: libbpf does not follow them, since each step of a chain names its own type.
 * 4. Types of kernel modules are missing; our programs name none.
 */
#ifndef SONDE_BPF_KERNELTYPES_H
#define SONDE_BPF_KERNELTYPES_H

#include <bpf/libbpf.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct btf;

/* The file for this skeleton (its ELF), made on first use. NULL: there is none, and libbpf reads
 * the kernel's own types. */
const char *kerneltypes_path(const char *store_dir, const void *elf, size_t size,
			     char path[PATH_MAX]);

/* static struct NAME_bpf *skel_open(const char *store_dir): NULL with errno: it cannot be
 * opened. */
#define SKELETON_OPEN(name_)                                                                  \
	static struct name_##_bpf *skel_open(const char *store_dir)                           \
	{                                                                                     \
		char path[PATH_MAX];                                                          \
		size_t size;                                                                  \
		const void *elf = name_##_bpf__elf_bytes(&size);                              \
		LIBBPF_OPTS(bpf_object_open_opts, o,                                          \
			    .btf_custom_path = kerneltypes_path(store_dir, elf, size, path)); \
                                                                                              \
		return name_##_bpf__open_opts(&o);                                            \
	}

/* The value of an enumerator of the kernel, whose enum may have no name. false: it has no such one.
 */
bool kerneltypes_enumerator(const struct btf *kernel, const char *name, uint32_t *value);

/* Rule 3, on the types themselves. NULL: out of memory. The caller frees it (btf__free). */
struct btf *kerneltypes_pick(const struct btf *kernel, const struct btf *programs);

#endif
