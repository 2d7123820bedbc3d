/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kerneltypes: of this kernel's types (BTF) those that a skeleton's programs name, as a file that
 * libbpf relocates them by (btf_custom_path). Else it reads all 150 000 types at each start, and
 * looks through them once for each name: 30 to 50 ms of CPU.
 *
 * 1. <store>/images/kerneltypes-KEY: KEY is a hash of the kernel's own notes (its build-id), its
 *    release and version, and the skeleton: another kernel or other programs have another file. Who
 *    uses it touches it, so that the cache drops it in its turn.
 * 2. It is raw BTF, and behind it a hash of that (u64, as the host writes it): BTF says by itself
 *    where it ends.
 * 3. A type is there if one of the skeleton has its name ("task_struct" of task_struct___maps),
 *    whatever its kind, all of that name; and with it what it holds, all the way down. A pointer
 *    points to nothing (void): libbpf asks no further, each step of a chain names its own type.
 * 4. What is not in the kernel but in one of its modules is not found by it: these programs name
 *    nothing of the kind.
 */
#ifndef SONDE_BPF_KERNELTYPES_H
#define SONDE_BPF_KERNELTYPES_H

#include <linux/limits.h>
#include <stddef.h>

struct btf;

/* The file for this skeleton (its ELF), made if it is not there; NULL: there is none, and libbpf
 * reads the kernel's own. */
const char *kerneltypes_path(const char *store_dir, const void *elf, size_t size,
			     char path[PATH_MAX]);

/* Rule 3, by the types themselves. NULL: out of memory. The caller's (btf__free). */
struct btf *kerneltypes_pick(const struct btf *kernel, const struct btf *programs);

#endif
