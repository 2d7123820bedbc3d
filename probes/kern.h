/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kern: the few kernel types the BPF programs read, written by hand; libbpf relocates each field against the running
 * kernel's BTF (CO-RE). Only fields that are read stand here. Differences between kernels go to core_fixes.bpf.h.
 */
#ifndef SONDE_PROBES_KERN_H
#define SONDE_PROBES_KERN_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#endif
