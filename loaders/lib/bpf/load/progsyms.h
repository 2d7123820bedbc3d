/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progsyms: symbols of the loaded BPF programs, named as in /proc/kallsyms ("bpf_prog_TAG_NAME",
 * module "bpf"), from bpf(2): a few system calls a program, while the kernel needs 50 ms of CPU to
 * write all its symbols. Trampolines are not included.
 *
 * It reads them again when it does not know an address, after a pause that doubles as long as the
 * set stays the same; and every ten minutes, because a program may have replaced another one at its
 * address. Needs CAP_SYS_ADMIN; without it no address is known.
 */
#ifndef SONDE_BPF_PROGSYMS_H
#define SONDE_BPF_PROGSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct kallsyms_symbol;
struct progsyms;

struct progsyms *progsyms_new(void);
void progsyms_free(struct progsyms *p); /* NULL is fine */
/* Like kallsyms_find, for the address of a program or one of its functions; `ctx` is the progsyms.
 * The result is valid until the next call. */
bool progsyms_find(void *ctx, uint64_t addr, struct kallsyms_symbol *out);

#endif
